#include "base/same_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace einrel {
namespace {

namespace fs = std::filesystem;

TEST(SameFile, IsSeenThroughLinksAndDetours) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "file";
  std::ofstream(file) << "x";
  fs::create_hard_link(file, folder / "hard");
  fs::create_symlink("file", folder / "soft");
  fs::create_directory(folder / "below");
  for (const std::string& other : {file, folder / "hard", folder / "soft", folder / "below/../file"})
    EXPECT_TRUE(is_same_file(file, other)) << other;
  EXPECT_FALSE(is_same_file(file, folder / "below/file"));
}

TEST(SameFile, IsSeenBeforeAnythingIsThere) {
  const test::TemporaryFolder folder;
  const std::string file = folder / "new";
  fs::create_directory(folder / "below");
  fs::create_symlink("new", folder / "soft");
  fs::create_symlink(folder / "soft", folder / "below/softer");
  for (const std::string& other :
       {file, folder / "./new", folder / "below/../new", folder / "soft", folder / "below/softer"})
    EXPECT_TRUE(is_same_file(file, other)) << other;
  EXPECT_FALSE(is_same_file(file, folder / "newer"));
  EXPECT_THAT([&] { refuse_same_file({folder / "soft"}, {file}, "name another file"); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("it is a file that is read")));
}

TEST(SameFile, EndsWhereLinksLeadInACircle) {
  const test::TemporaryFolder folder;
  fs::create_symlink("second", folder / "first");
  fs::create_symlink("first", folder / "second");
  EXPECT_FALSE(is_same_file(folder / "first", folder / "other"));
}

}  // namespace
}  // namespace einrel
