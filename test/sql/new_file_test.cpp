#include "sql/sqlite/new_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/temporary_folder.h"

namespace einrel::test {
namespace {

using testing::ElementsAre;

TEST(NewFileOfSqlite, HasItsNameOnceItIsKeptAndNoOther) {
  const TemporaryFolder folder;
  {
    sql::NewFile file(folder / "a.db");
    put_file(file.temporary(), "tables");
    EXPECT_EQ(folder.names().count("a.db"), 0U);
    file.keep();
    EXPECT_THAT(folder.names(), ElementsAre("a.db"));
    file.keep();  // as after a second transaction
    EXPECT_THAT(folder.names(), ElementsAre("a.db"));
  }
  EXPECT_EQ(contents_of(folder / "a.db"), "tables");
}

TEST(NewFileOfSqlite, IsNotMadeWhereNothingIsInIt) {
  const TemporaryFolder folder;
  {
    sql::NewFile file(folder / "a.db");
    put_file(file.temporary(), "");
    file.keep();
  }
  EXPECT_TRUE(folder.names().empty());
}

TEST(NewFileOfSqlite, TakesNobodyElsesPlace) {
  const TemporaryFolder folder;
  {
    sql::NewFile file(folder / "a.db");
    put_file(file.temporary(), "tables");
    put_file(folder / "a.db", "of somebody else");
    EXPECT_THROW(file.keep(), RunError);
  }
  EXPECT_THAT(folder.names(), ElementsAre("a.db"));
  EXPECT_EQ(contents_of(folder / "a.db"), "of somebody else");
}

}  // namespace
}  // namespace einrel::test
