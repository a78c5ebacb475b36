#include "sql/plain.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "einsum/vertex_facts.h"
#include "engine/choose_formats.h"
#include "engine/compile.h"
#include "lang/corpus.h"
#include "sql/element_tables.h"
#include "sql/plain_documents.h"
#include "sql/sqlite/database.h"

namespace einrel::test {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> dimension_columns(std::size_t rank) {
  std::vector<std::string> names;
  for (std::size_t d = 0; d < rank; ++d) names.push_back(fmt::format("d{}", d));
  return names;
}

/// A table of elements as the tensor it is, through a program that only reads it.
Tensor read_table(sql::Database& database, const Vertex& vertex) {
  std::string labels;
  for (std::size_t d = 0; d < vertex.bound.size(); ++d)
    labels += fmt::format("{}d{}={}", d == 0 ? "" : " ", d, vertex.bound[d].value());
  std::string indices;
  for (std::size_t d = 0; d < vertex.bound.size(); ++d) indices += fmt::format("{}d{}", d == 0 ? "" : ",", d);
  const std::string text = fmt::format("{}{}\ninput X[{}] : {}\nR[{}] = X[{}]\n", labels.empty() ? "" : "dims ", labels,
                                       indices, name_of(vertex.dtype), indices, indices);
  const EinGraph graph = *parse_and_check(SourceText("read.ein", text), {}).graph;
  const ScalarBindings none;
  sql::DatabaseRun run{.graph = graph, .scalars = none, .inputs = {}, .outputs = {}, .chunked = {}};
  run.chunked = chunked_graph(graph, choose_formats(graph, {}));
  run.inputs.emplace("X", sql::open_table(database, "table:" + vertex.name, dimension_columns(vertex.bound.size())));
  return sql::run(database, run).tensors.at("R");
}

Outputs in_plain_sql(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  const EinGraph ordered = compile("document", graph).graph;
  sql::SqliteDatabase database(":memory:");
  std::map<std::string, std::vector<std::string>> labels;
  for (const Vertex& vertex : ordered.vertices) {
    if (!is_input(vertex)) continue;
    labels[vertex.name] = dimension_columns(vertex.bound.size());
  }
  const sql::Script script = sql::plain_script(ordered, labels, scalars, sql::Dialect::sqlite);
  for (const auto& [name, columns] : labels) make_element_table(database, name, inputs.at(name), columns);
  for (const sql::Statement& statement : script) database.execute(statement.text);
  Outputs outputs;
  for (const VertexId id : ordered.outputs) outputs.emplace(ordered[id].name, read_table(database, ordered[id]));
  return outputs;
}

/// Documents that plain SQL cannot compute, or not as the language defines it, and what of them it is.
const PlainExceptions& exceptions() {
  static const PlainExceptions all{
      {"11_reductions_bind", "no product of a column"},
      {"12_comparisons", "F: element 3"},  // NaN is NULL
      {"13_functions", "no erf"},
      {"14_accurate_functions", "no erf"},
      {"20_reductions", "no product"},
      {"22_nan_and_infinity", "no product"},
      {"23_empty", "a table without rows"},
      {"24_reductions_agree", "no product"},
      {"30_casts", "no floats that narrow"},
      {"32_types_of_reductions", "no product"},
      {"34_integers_wrap", "no product"},
      {"37_integer_products", "no whole number, as i64 wants"},  // whole numbers beyond 64 bits become floats
      {"38_numbers_alone", "powers of whole numbers"},
      {"39_narrow_casts", "no floats that narrow"},
      {"81_names", "the same name"},
      {"82_other_notations", "NotANumber"},  // NaN is NULL
      {"90_inverse", "no linear algebra"},
      {"91_random_numbers", "random numbers"},
      {"92_gathers", "does not check an index"},
      {"96_gradients_at_kinks", "the same name"},
      {"97_gradients_of_reads", "the same name"},
      {"98_gradients_of_gathers", "the same name"},
      {"9a_state_random", "random numbers"},
      {"9c_minimize", "the same name"},
      {"9e_selections_exact", "B: element 0"},              // i32 does not wrap
      {"9g_selections_without_reads", "wraps: element 0"},  // i32 does not wrap
      {"embedding", "random numbers"},
      {"ridge_regression", "no linear algebra"},
  };
  return all;
}

class PlainSql : public testing::TestWithParam<fs::path> {};

TEST_P(PlainSql, ComputesWhatTheReferenceDoesOrSaysWhyNot) {
  expect_in_plain_sql(GetParam(), exceptions(), in_plain_sql);
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) { return info.param.stem().string(); }

INSTANTIATE_TEST_SUITE_P(All, PlainSql, testing::ValuesIn(documents_and_examples()), test_name);

}  // namespace
}  // namespace einrel::test
