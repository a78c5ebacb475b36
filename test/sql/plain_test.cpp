#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "einsum/graph/vertex_facts.h"
#include "lang/corpus.h"
#include "run/compile.h"
#include "sql/plain_documents.h"
#include "sql/program/run.h"
#include "sql/sqlite/database.h"

namespace einrel::test {
namespace {

namespace fs = std::filesystem;

Outputs outputs_in_sqlite(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  const EinGraph ordered = compile("document", graph).graph;
  sql::SqliteDatabase database(":memory:");
  sql::DatabaseRun run{
      .graph = ordered, .scalars = scalars, .inputs = {}, .outputs = {}, .chunked = {}, .is_element = true};
  for (const auto& [name, tensor] : inputs) run.inputs.emplace(name, tensor);
  return sql::run(database, run).tensors;
}

/// Documents that plain SQL cannot compute, or not as the language defines it, and what of them it is.
const PlainExceptions& exceptions() {
  static const PlainExceptions all{
      {"13_functions", {"no erf"}},
      {"14_accurate_functions", {"no erf"}},
      {"22_nan_and_infinity",
       {"Max: element 0", "Min: element 0", "Sum: element 0", "Mean: element 0", "Lse: element 0", "ArgMax: element 0",
        "ArgMin: element 0"}},
      {"30_casts", {"no floats that narrow"}},
      {"34_integers_wrap", {"powers of whole numbers"}},
      {"37_integer_products", {"no whole number, as i64 wants"}},  // whole numbers beyond 64 bits become floats
      {"38_numbers_alone", {"powers of whole numbers"}},
      {"39_narrow_casts", {"no floats that narrow"}},
      {"3a_statements_round_once", {"no floats that narrow"}},
      {"90_inverse", {"no linear algebra"}},
      {"90_qr", {"no linear algebra"}},
      {"91_random_numbers", {"random numbers"}},
      {"92_gathers", {"does not check an index"}},
      {"94_complex", {"does not check an index"}},
      {"97_gradients_of_reads", {"no linear algebra"}},
      {"98_gradients_of_gathers", {"does not check an index"}},
      {"9a_state_random", {"random numbers"}},
      {"9h_any_of_selections", {"ofFloats: element 2"}},  // SQLite has no NaN
      {"embedding", {"random numbers"}},
      {"ridge_regression", {"no linear algebra"}},
      {"train_dropout", {"random numbers"}},
  };
  return all;
}

class PlainSql : public testing::TestWithParam<fs::path> {};

TEST_P(PlainSql, ComputesWhatTheReferenceDoesOrSaysWhyNot) {
  expect_in_plain_sql(GetParam(), exceptions(), outputs_in_sqlite);
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) { return info.param.stem().string(); }

INSTANTIATE_TEST_SUITE_P(All, PlainSql, testing::ValuesIn(documents_and_examples()), test_name);

}  // namespace
}  // namespace einrel::test
