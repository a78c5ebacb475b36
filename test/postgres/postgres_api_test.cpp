#include <einrel/einrel.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "api/errors.h"
#include "postgres/server.h"

namespace {

using einrel::DatabaseResult;
using einrel::Program;
using einrel::run_in_database;
using einrel::Tensor;
using einrel::test::message_of;
using einrel::test::PostgresServer;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string& url() {
  static std::string of_the_server;
  return of_the_server;
}

/// What a program that uses the library does with a database of PostgreSQL.
class PostgresApi : public testing::Test {
 protected:
  Program product_ = Program::parse("input X[i,j], Y[j]\nZ[i] = sum[j] X[i,j] * Y[j]\n");
  Tensor x_{{2, 2}, std::vector<float>{1, 2, 3, 4}};
  Tensor y_{{2}, std::vector<float>{10, 1}};
};

TEST_F(PostgresApi, OutputsBecomeTablesThatAreInputs) {
  const DatabaseResult made =
      run_in_database(product_, url(), {{"X", x_}, {"Y", y_}},
                      {.tables = {{"Z", "z"}}, .chunks = {{"Z", "kept"}}, .formats = "X=row,Z=row", .analyze = true});
  EXPECT_TRUE(made.outputs.empty());
  EXPECT_THAT(made.analysis->text, AllOf(HasSubstr("sum[j] X[i,j] * Y[j]"), HasSubstr("measured")));
  for (const char* source : {"table:z", "table:public.kept", "query:SELECT i, value FROM z"}) {
    const DatabaseResult again = run_in_database(product_, url(), {{"X", x_}, {"Y", source}});
    EXPECT_THAT(again.outputs.at("Z").values<float>(), ElementsAre(12 + 2 * 34, 3 * 12 + 4 * 34)) << source;
  }
}

TEST_F(PostgresApi, StepsGoOn) {
  const Program doubling = Program::parse("input A[i]\nstate x[i] = A[i]\nnext x[i] = 2 * x[i]\noutput next_x\n");
  EXPECT_EQ(run_in_database(doubling, url(), {{"A", y_}}, {.tables = {{"next_x", "x"}}, .steps = 3}).steps, 3);
  const DatabaseResult more = run_in_database(doubling, url(), {{"A", y_}, {"x", "table:x"}});
  EXPECT_THAT(more.outputs.at("next_x").values<float>(), ElementsAre(160, 16));
}

TEST_F(PostgresApi, MistakesAreNamedAndTheProgramGoesOn) {
  const std::string with_null = "query:SELECT j, nullif(j, 1) AS value FROM (VALUES (0), (1)) AS y(j)";
  EXPECT_THAT(message_of([&] {
                run_in_database(product_, url(), {{"X", x_}, {"Y", with_null}});
              }),
              AllOf(HasSubstr("the query"), HasSubstr("'value' is NULL at j=1")));
  EXPECT_THAT(message_of([&] {
                run_in_database(product_, url() + "&user=nobody_at_all", {{"X", x_}, {"Y", y_}});
              }),
              AllOf(HasSubstr("cannot connect"), HasSubstr("nobody_at_all")));
  EXPECT_THAT(run_in_database(product_, url(), {{"X", x_}, {"Y", y_}}).outputs.at("Z").values<float>(),
              ElementsAre(12, 34));
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const PostgresServer server({argv + 1, argv + argc});
  url() = server.url();
  return RUN_ALL_TESTS();
}
