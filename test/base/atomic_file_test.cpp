#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/limited_file_size.h"
#include "base/temporary_folder.h"

namespace einrel {
namespace {

namespace fs = std::filesystem;
using test::contents_of;
using test::LimitedFileSize;
using test::put_file;
using test::TemporaryFolder;
using Names = std::set<std::string>;

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

std::string user_error(const std::string& path) {
  try {
    AtomicFile file(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no UserError";
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  file.write(bytes("one "));
  file.write(bytes("two"));
  EXPECT_FALSE(fs::exists(folder / "a"));
  file.commit();
  EXPECT_EQ(contents_of(folder / "a"), "one two");
  EXPECT_EQ(folder.names(), Names{"a"});
}

TEST(AtomicFile, WithoutCommitNothingHasChanged) {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write(bytes("new"));
    file.close();
  }
  EXPECT_EQ(contents_of(folder / "a"), "old");
  EXPECT_EQ(folder.names(), Names{"a"});
}

TEST(AtomicFile, ReplacesWhatWasThere) {
  const TemporaryFolder folder;
  put_file(folder / "a", "a long old text");
  AtomicFile file(folder / "a");
  file.write(bytes("new"));
  file.commit();
  EXPECT_EQ(contents_of(folder / "a"), "new");
}

TEST(AtomicFile, RewritesBytesInTheMiddleWithoutMovingTheEnd) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  file.write(bytes("0123456789"));
  file.rewrite(3, bytes("xyz"));
  file.write(bytes("!"));
  file.commit();
  EXPECT_EQ(contents_of(folder / "a"), "012xyz6789!");
}

TEST(AtomicFile, SeveralMayBeOpenAndMovedInOneFolder) {
  const TemporaryFolder folder;
  std::vector<AtomicFile> files;
  for (const char* name : {"a", "b", "c"}) {
    AtomicFile file(folder / name);
    file.write(bytes(name));
    files.push_back(std::move(file));
  }
  files[0].commit();
  files[2].commit();
  files.clear();
  EXPECT_EQ(folder.names(), (Names{"a", "c"}));
  EXPECT_EQ(contents_of(folder / "c"), "c");
}

TEST(AtomicFile, ANameAsLongAsTheSystemAllowsIsWritten) {
  const TemporaryFolder folder;
  const std::string name(255, 'n');
  AtomicFile(folder / name).commit();
  EXPECT_EQ(folder.names(), Names{name});
  EXPECT_NE(user_error(folder / std::string(256, 'n')).find("File name too long"), std::string::npos);
}

mode_t permissions(const std::string& path) {
  struct stat status {};
  stat(path.c_str(), &status);
  return status.st_mode & 0777U;
}

TEST(AtomicFile, ANewFileHasThePermissionsThatTheUmaskGives) {
  const TemporaryFolder folder;
  const mode_t before = umask(0027);
  AtomicFile(folder / "a").commit();
  umask(before);
  EXPECT_EQ(permissions(folder / "a"), 0640U);
}

TEST(AtomicFile, AReplacedFileKeepsItsPermissions) {
  const TemporaryFolder folder;
  put_file(folder / "a", "private");
  chmod((folder / "a").c_str(), 0600);
  AtomicFile(folder / "a").commit();
  EXPECT_EQ(permissions(folder / "a"), 0600U);
}

TEST(AtomicFile, ItsStandInHasThePermissionsOfWhatItReplacesFromTheBeginning) {
  const TemporaryFolder folder;
  put_file(folder / "a", "private");
  chmod((folder / "a").c_str(), 0600);
  const AtomicFile file(folder / "a");
  EXPECT_EQ(permissions(file.temporary()), 0600U);
}

TEST(AtomicFile, NobodyForeseesTheNameOfItsStandIn) {
  const TemporaryFolder folder;
  std::set<std::string> names;
  for (int i = 0; i < 20; ++i) names.insert(AtomicFile(folder / "a").temporary());
  EXPECT_EQ(names.size(), 20U);
  for (const std::string& name : names) EXPECT_EQ(name.find(std::to_string(getpid())), std::string::npos) << name;
}

TEST(AtomicFile, ASymbolicLinkStaysOneAndItsTargetIsReplaced) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "real");
  put_file(folder / "real/a", "old");
  fs::create_symlink("real/a", folder / "link");
  AtomicFile file(folder / "link");
  file.write(bytes("new"));
  file.commit();
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(contents_of(folder / "real/a"), "new");
}

TEST(AtomicFile, ALinkToNothingYetIsFollowed) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "real");
  fs::create_symlink("real", folder / "short");
  fs::create_symlink("short/../real/./a", folder / "link");
  AtomicFile file(folder / "link");
  file.write(bytes("new"));
  file.commit();
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
  EXPECT_EQ(contents_of(folder / "real/a"), "new");
}

TEST(AtomicFile, LinksInACircleAreTheUsersError) {
  const TemporaryFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  EXPECT_NE(user_error(folder / "a").find("Too many levels of symbolic links"), std::string::npos);
}

TEST(AtomicFile, NothingIsFoundBehindAFolderThatIsNotThere) {
  const TemporaryFolder folder;
  EXPECT_NE(user_error(folder / "none/../a").find("does not exist"), std::string::npos);
}

/// A folder where all may put links, as /tmp is, and one of somebody else's.
class SharedFolder : public testing::Test {
 protected:
  static constexpr uid_t other = 54321;
  static constexpr mode_t shared_mode = 01777;
  // Only the superuser can make links of others.
  const bool can_give_away = geteuid() == 0;

  void SetUp() override {
    for (const char* name : {"shared", "private"}) fs::create_directory(folder / name);
    chmod((folder / "shared").c_str(), shared_mode);
    put_file(folder / "private/a", "old");
  }
  void link(const std::string& target, const std::string& name, uid_t owner) const {
    fs::create_symlink(target, folder / name);
    ASSERT_EQ(lchown((folder / name).c_str(), owner, owner), 0);
  }
  /// That `name` is refused because of the link `culprit`, and that nothing has come of it.
  void expect_refused(const std::string& name, const std::string& culprit) const {
    const std::string message = user_error(folder / name);
    EXPECT_EQ(message.find("cannot write '" + (folder / name) + "': the link '"), 0U) << message;
    EXPECT_NE(message.find(culprit + "' belongs to user 54321 and is not followed"), std::string::npos) << message;
    EXPECT_THROW(check_replaceable(folder / name), UserError);
    EXPECT_EQ(contents_of(folder / "private/a"), "old");
    EXPECT_EQ(fs::exists(folder / "private/new"), false);
  }
  void expect_followed(const std::string& name) const {
    AtomicFile file(folder / name);
    file.write(bytes("new"));
    file.commit();
    EXPECT_EQ(contents_of(folder / "private/a"), "new");
    put_file(folder / "private/a", "old");
  }

  const TemporaryFolder folder;
};

TEST_F(SharedFolder, LinksOfOthersAreNotFollowed) {
  if (!can_give_away) return;
  link("../private/a", "shared/relative", other);
  link(folder / "private/a", "shared/absolute", other);
  link("../private/new", "shared/dangling", other);
  link("../private", "shared/folder", other);
  for (const std::string name : {"shared/relative", "shared/absolute", "shared/dangling"}) expect_refused(name, name);
  expect_refused("shared/folder/a", "shared/folder");
  expect_refused("shared/folder/new", "shared/folder");
}

TEST_F(SharedFolder, NorOnTheWayOfAChain) {
  if (!can_give_away) return;
  link("../private/a", "shared/last", other);
  link("last", "shared/own", 0);
  link("../shared/own", "private/first", 0);
  expect_refused("shared/own", "shared/last");
  expect_refused("private/first", "shared/last");
  fs::current_path(folder / "shared");
  EXPECT_NE(user_error("last").find("/shared/last' belongs to user 54321"), std::string::npos);
  fs::current_path("/");
}

TEST_F(SharedFolder, OnesOwnAndThoseOfItsOwnerAre) {
  if (!can_give_away) return;
  link("../private/a", "shared/own", 0);
  expect_followed("shared/own");
  ASSERT_EQ(chown((folder / "shared").c_str(), other, other), 0);
  chmod((folder / "shared").c_str(), shared_mode);
  link("../private/a", "shared/owners", other);
  expect_followed("shared/owners");
  expect_followed("shared/own");
}

TEST_F(SharedFolder, ElsewhereLinksOfOthersAreOrdinary) {
  if (!can_give_away) return;
  link("../private/a", "shared/link", other);
  for (const mode_t mode : {0777U, 01775U, 0755U}) {
    chmod((folder / "shared").c_str(), mode);
    expect_followed("shared/link");
  }
}

TEST(AtomicFile, ARelativeNameMeansTheWorkingFolder) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  AtomicFile("a").commit();
  fs::current_path(before);
  EXPECT_EQ(folder.names(), Names{"a"});
}

TEST(AtomicFile, ATargetThatCannotBeAFileIsTheUsersError) {
  const TemporaryFolder folder;
  put_file(folder / "file", "");
  EXPECT_NE(user_error(folder.path().string()).find("it is a folder"), std::string::npos);
  EXPECT_NE(user_error("/dev/null").find("it is a pipe or a device"), std::string::npos);
  EXPECT_NE(user_error(folder / "none/a").find("does not exist"), std::string::npos);
  EXPECT_NE(user_error(folder / "file/a").find("is not a folder"), std::string::npos);
  EXPECT_NE(user_error(folder / "a/").find("names no file"), std::string::npos);
  EXPECT_NE(user_error("").find("names no file"), std::string::npos);
  EXPECT_EQ(folder.names(), Names{"file"});
}

TEST(AtomicFile, PermissionIsAskedBeforeTheWorkIsDone) {
  const TemporaryFolder folder;
  put_file(folder / "a", "keep");
  chmod((folder / "a").c_str(), 0400);
  // The superuser may write anyway; everybody else must be told.
  EXPECT_EQ(user_error(folder / "a"),
            geteuid() == 0 ? "no UserError" : "cannot write '" + (folder / "a") + "': Permission denied");
}

TEST(AtomicFile, AFullDiskIsAFailureOfTheRunThatLeavesNothingBehind) {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  const std::string large(100'000, 'x');
  try {
    const LimitedFileSize limit(4096);
    AtomicFile file(folder / "a");
    file.write(bytes(large));
    FAIL() << "the limit was not reached";
  } catch (const RunError& error) {
    EXPECT_EQ(std::string(error.what()), "cannot write '" + fs::canonical(folder / "a").string() + "': File too large");
  }
  EXPECT_EQ(contents_of(folder / "a"), "old");
  EXPECT_EQ(folder.names(), Names{"a"});
}

TEST(AtomicFile, AFolderThatAppearedInItsPlaceIsAFailureOfTheRun) {
  const TemporaryFolder folder;
  AtomicFile file(folder / "a");
  fs::create_directory(folder / "a");
  EXPECT_THROW(file.commit(), RunError);
}

TEST(AtomicFile, LeftoversOfThoseThatWereKilledGoAndNothingElse) {
  const TemporaryFolder folder;
  const Names stay{"data.csv", ".einrel-notes.tmp", "einrel-0123456789abcdef.tmp", ".einrel-0123456789abcdef.tmp2"};
  for (const std::string& name : stay) put_file((folder.path() / name).string(), "x");
  {
    AtomicFile file((folder.path() / "new").string());
    put_file((folder.path() / ".einrel-0123456789abcdef.tmp").string(), "x");
    file.write(bytes("whole"));
    file.commit();
  }
  remove_leftovers(folder.path().string());
  Names wanted = stay;
  wanted.insert("new");
  EXPECT_EQ(folder.names(), wanted);
}

}  // namespace
}  // namespace einrel
