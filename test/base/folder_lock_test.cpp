#include "base/folder_lock.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace einrel {
namespace {

TEST(FolderLock, IsHadByOneAtATime) {
  const test::TemporaryFolder folder;
  std::optional<FolderLock> first(std::in_place, folder.path().string(), "--save there");
  try {
    const FolderLock second(folder.path().string(), "--save there");
    ADD_FAILURE() << "two have it";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("--save there: another process"), std::string::npos) << error.what();
  }
  FolderLock moved(std::move(*first));
  first.reset();
  EXPECT_THROW(FolderLock(folder.path().string(), "x"), UserError);
}

TEST(FolderLock, EndsWithItsValue) {
  const test::TemporaryFolder folder;
  { const FolderLock first(folder.path().string(), "x"); }
  EXPECT_NO_THROW(FolderLock(folder.path().string(), "x"));
}

TEST(FolderLock, OfAFolderThatIsNotThereIsHad) { EXPECT_NO_THROW(FolderLock("/nowhere/at/all", "x")); }

}  // namespace
}  // namespace einrel
