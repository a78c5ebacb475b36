#include <einrel/einrel.h>
#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "errors.h"

namespace {

using einrel::DatabaseResult;
using einrel::Program;
using einrel::run_in_database;
using einrel::Tensor;
using einrel::test::message_of;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// An empty file is an empty database.
class InDatabase : public testing::Test {
 protected:
  InDatabase() {
    path_ = std::filesystem::temp_directory_path() /
            (std::string("einrel-") + testing::UnitTest::GetInstance()->current_test_info()->name() + ".db");
    const std::ofstream made(path_, std::ios::trunc);
  }
  ~InDatabase() override { std::filesystem::remove(path_); }

  std::string database() const { return "sqlite:" + path_.string(); }

  std::filesystem::path path_;
  Program product_ = Program::parse("input X[i,j], Y[j]\nZ[i] = sum[j] X[i,j] * Y[j]\n");
  Tensor x_{{2, 2}, std::vector<float>{1, 2, 3, 4}};
  Tensor y_{{2}, std::vector<float>{10, 1}};
};

TEST_F(InDatabase, OutputsBecomeTablesThatAreInputs) {
  const DatabaseResult made = run_in_database(product_, database(), {{"X", x_}, {"Y", y_}}, {.tables = {{"Z", "z"}}});
  EXPECT_TRUE(made.outputs.empty());
  const DatabaseResult again = run_in_database(product_, database(), {{"X", x_}, {"Y", "table:z"}});
  EXPECT_THAT(again.outputs.at("Z").values<float>(), ElementsAre(12 + 2 * 34, 3 * 12 + 4 * 34));
}

TEST_F(InDatabase, AbsentElementsAreZerosOfWhatIsSparse) {
  const DatabaseResult made =
      run_in_database(product_, database(), {{"X", x_}, {"Y", "sparse:query:SELECT 1 AS j, 10 AS value"}});
  EXPECT_THAT(made.outputs.at("Z").values<float>(), ElementsAre(20, 40));
}

TEST(ProgramsAsSql, AreExplainedWithoutARun) {
  const Program product = Program::parse("dims i=20 j=30\ninput X[i,j], Y[j]\nZ[i] = sum[j] X[i,j] * Y[j]\n");
  const einrel::DatabaseAnalysis explained = einrel::explain_sql(product, {.formats = "X=row-strip-10"});
  EXPECT_THAT(explained.text, AllOf(HasSubstr("row-strip-10"), HasSubstr("as --formats says")));
  EXPECT_THAT(explained.json, AllOf(HasSubstr("\"row-strip-10\""), HasSubstr("\"weights\"")));
  EXPECT_THAT(message_of([&] { einrel::explain_sql(product, {.formats = "element"}); }), HasSubstr("'element'"));
}

TEST_F(InDatabase, StepsGoOn) {
  const Program doubling = Program::parse("input A[i]\nstate x[i] = A[i]\nnext x[i] = 2 * x[i]\noutput next_x\n");
  const DatabaseResult made =
      run_in_database(doubling, database(), {{"A", y_}}, {.tables = {{"next_x", "x"}}, .steps = 3});
  EXPECT_EQ(made.steps, 3);
  const DatabaseResult more = run_in_database(doubling, database(), {{"A", y_}, {"x", "table:x"}});
  EXPECT_THAT(more.outputs.at("next_x").values<float>(), ElementsAre(160, 16));
}

TEST_F(InDatabase, OutputsStayInChunks) {
  const DatabaseResult made =
      run_in_database(product_, database(), {{"X", x_}, {"Y", y_}},
                      {.tables = {{"Z", "z"}}, .chunks = {{"Z", "chunks"}}, .formats = "Z=row"});
  EXPECT_TRUE(made.outputs.empty());
  EXPECT_FALSE(made.analysis);
  const DatabaseResult again =
      run_in_database(product_, database(), {{"X", x_}, {"Y", "table:chunks"}}, {.analyze = true});
  EXPECT_THAT(again.outputs.at("Z").values<float>(), ElementsAre(12 + 2 * 34, 3 * 12 + 4 * 34));
  ASSERT_TRUE(again.analysis);
  EXPECT_THAT(again.analysis->text, AllOf(HasSubstr("measured"), HasSubstr("as it lies")));
  EXPECT_THAT(again.analysis->json, AllOf(HasSubstr("\"measured\""), HasSubstr("\"weights\"")));
}

/// A query without an end: of what the extents are, and of the elements themselves.
TEST_F(InDatabase, AStatementThatRunsEndsWhenAskedTo) {
  const std::string endless =
      "query:WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n) SELECT i, i AS value FROM n WHERE i < 0";
  for (const char* const text : {"input x[i]\nz[i] = x[i]\n", "dims i=2\nstate x[i] = 0.0\nz[i] = x[i]\noutput z\n"}) {
    std::stop_source stop;
    std::jthread asking([&stop] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      stop.request_stop();
    });
    const auto run = [&] {
      run_in_database(Program::parse(text), database(), {{"x", endless}},
                      {.tables = {{"z", "z"}}, .stop = stop.get_token()});
    };
    EXPECT_EQ(message_of<einrel::RunError>(run), "the run was stopped");
    EXPECT_EQ(message_of<einrel::RunError>(run), "the run was stopped");  // asked for before
  }
  EXPECT_EQ(std::filesystem::file_size(path_), 0U);
  run_in_database(product_, database(), {{"X", x_}, {"Y", y_}}, {.tables = {{"Z", "z"}}});
}

TEST_F(InDatabase, CalibratingEndsWhenAskedTo) {
  std::stop_source stop;
  stop.request_stop();
  const std::filesystem::path settings = path_.string() + "-settings";
  setenv("XDG_CONFIG_HOME", settings.c_str(), 1);
  EXPECT_THROW(einrel::calibrate_database(database(), stop.get_token()), einrel::RunError);
  EXPECT_THAT(message_of([&] { einrel::calibrate_database(path_.string()); }), HasSubstr("sqlite:FILE"));
  EXPECT_FALSE(std::filesystem::exists(settings / "einrel" / "databases.json"));
  std::filesystem::remove_all(settings);
}

TEST_F(InDatabase, WhatIsWrongIsSaid) {
  EXPECT_THAT(message_of([&] { run_in_database(product_, path_.string(), {}); }), HasSubstr("sqlite:FILE"));
  EXPECT_THAT(message_of([&] { run_in_database(product_, database(), {{"X", x_}}); }), HasSubstr("missing input Y"));
  EXPECT_THAT(message_of([&] {
                run_in_database(product_, database(), {{"X", x_}, {"Y", "table:none"}});
              }),
              HasSubstr("no table 'none'"));
}

}  // namespace
