#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace einrel {
namespace {

using test::put_file;
using test::TemporaryFolder;

std::string text_of(const FileBytes& file) {
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

TEST(MappedFile, GivesTheBytesOfTheFileUnderItsName) {
  const TemporaryFolder folder;
  const std::string contents("one\0two\n", 8);
  put_file(folder / "a", contents);
  const FileBytes file = map_file(folder / "a");
  EXPECT_EQ(text_of(file), contents);
  EXPECT_EQ(file.name, folder / "a");
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  put_file(folder / "empty", "");
  EXPECT_TRUE(map_file(folder / "empty").bytes.empty());
}

TEST(MappedFile, BytesOutliveTheNameAndTheFirstOwner) {
  const TemporaryFolder folder;
  put_file(folder / "a", "still here");
  FileBytes copy;
  {
    const FileBytes file = map_file(folder / "a");
    copy = file;
  }
  std::filesystem::remove(folder / "a");
  EXPECT_EQ(text_of(copy), "still here");
}

TEST(MappedFile, ReplacingTheFileByRenameLeavesTheMappedBytesAlone) {
  const TemporaryFolder folder;
  put_file(folder / "a", "old");
  put_file(folder / "b", "new!");
  const FileBytes file = map_file(folder / "a");
  std::filesystem::rename(folder / "b", folder / "a");
  EXPECT_EQ(text_of(file), "old");
}

std::string message_for(const std::string& path) {
  try {
    map_file(path);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no UserError";
}

TEST(MappedFile, AMissingFileIsTheUsersError) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_for(folder / "none"), "cannot read '" + (folder / "none") + "': No such file or directory");
  EXPECT_NE(message_for("").find("No such file"), std::string::npos);
}

TEST(MappedFile, AFolderIsTheUsersError) {
  const TemporaryFolder folder;
  EXPECT_NE(message_for(folder.path().string()).find("it is a folder"), std::string::npos);
}

TEST(MappedFile, APipeOrADeviceIsRefusedWithoutWaitingForIt) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_NE(message_for(folder / "pipe").find("it is a pipe or a device"), std::string::npos);
  EXPECT_NE(message_for("/dev/zero").find("it is a pipe or a device"), std::string::npos);
}

TEST(MappedFile, ALinkThatLeadsInACircleIsTheUsersError) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  EXPECT_NE(message_for(folder / "loop").find("symbolic links"), std::string::npos);
}

}  // namespace
}  // namespace einrel
