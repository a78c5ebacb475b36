#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "plan/formats/implementations.h"
#include "run/compile.h"
#include "sql/program/run.h"
#include "support/program.h"
#include "support/random_integers.h"

/// Computations of "Automatic Matrix Format Exploration for Large Scale Linear Algebra", section 9.1, in any way
/// that plan/formats knows, run in a database and compared with the reference.
namespace einrel::test {

/// 25 x 30 and 30 x 20: in chunks of 10 and 1, or whole.
inline constexpr const char* declarations =
    "dims i=25 j=30 k=20\ninput X[i,j], Y[j,k], Z[i,j] : f64\ninput r[j], c[i] : f64\ninput S[k,l] : f64\ndims l=20\n";

/// Runs a graph that is cut so, and compares with the reference.
inline void expect_right(sql::Database& database, const EinGraph& graph, const sql::ChunkedGraph& chunked,
                         const std::string& what) {
  std::mt19937 random(3);
  TensorBindings inputs = random_integers(graph, random);
  if (const auto s = inputs.find("S"); s != inputs.end()) {  // a matrix that has an inverse
    std::vector<double> values = values_of(s->second);
    for (std::size_t d = 0; d < 20; ++d) values[d * 21] += 100;
    s->second = tensor_of(DType::f64, s->second.shape(), values);
  }
  ScalarBindings scalars;
  for (const ScalarDeclaration& scalar : graph.scalars) scalars[scalar.name] = -0.375;
  const std::vector<Tensor> wanted = evaluate_reference(graph, inputs, scalars);
  sql::DatabaseRun run{.graph = graph, .scalars = scalars, .inputs = {}, .outputs = {}, .chunked = chunked};
  for (const auto& [name, tensor] : inputs) run.inputs.emplace(name, tensor);
  const std::map<std::string, Tensor> found = sql::run(database, run).tensors;
  for (std::size_t o = 0; o < wanted.size(); ++o) {
    const std::vector<double> got = values_of(found.at(graph[graph.outputs[o]].name));
    const std::vector<double> want = values_of(wanted[o]);
    ASSERT_EQ(got.size(), want.size()) << what;
    for (std::size_t at = 0; at < want.size(); ++at)
      ASSERT_NEAR(got[at], want[at], 1e-12 * std::max(1.0, std::abs(want[at]))) << what << ", element " << at;
  }
}

inline EinGraph program(const std::string& statements) {
  return compile("p.ein", needed_for_outputs(einrel::graph_of(declarations + statements))).graph;
}

/// A way to compute a vertex, whose operands lie as it wants them.
inline sql::ChunkedGraph in_this_way(const EinGraph& graph, std::size_t v, const Implementation& way) {
  sql::ChunkedGraph chunked;
  for (const Vertex& vertex : graph.vertices) {
    chunked.cuts.parts.emplace_back(label_extents(vertex).size(), 1);
    chunked.reasons[vertex.name] = "as tested";
  }
  chunked.cuts.parts[v] = way.parts;
  for (const NeededFormat& need : way.reads) {
    if (!is_input(graph.vertices[need.tensor])) continue;  // it is brought there
    for (std::size_t d = 0; d < need.format.size(); ++d) chunked.cuts.parts[need.tensor][d] = need.format[d].parts;
  }
  return chunked;
}

inline std::string formats_of(const EinGraph& graph, std::size_t v, const Implementation& way) {
  std::string text;
  for (const NeededFormat& need : way.reads)
    text += (text.empty() ? "" : " x ") + format_text(need.format, graph.vertices[need.tensor].bound);
  return text + " -> " + format_text(way.result, graph.vertices[v].bound);
}

struct Computation {
  const char* name;
  const char* statement;
};

/// Of its 16 computations the paper names seven (transpose_and_multiply to reduce_to_row). The others are those that
/// its networks need, and what vectors beside matrices do.
inline std::vector<Computation> computations() {
  return {Computation{"transpose_and_multiply", "P[j,b] = sum[i] X[i,j] * X[i,b]\ndims b=30"},
          Computation{"plus", "P[i,j] = X[i,j] + Z[i,j]"},
          Computation{"minus", "P[i,j] = X[i,j] - Z[i,j]"},
          Computation{"times", "P[i,j] = X[i,j] * Z[i,j]"},
          Computation{"divide", "P[i,j] = X[i,j] / (Z[i,j] + 10)"},
          Computation{"relu_derivative", "P[i,j] = step(X[i,j])"},
          Computation{"reduce_to_row", "P[j] = sum[i] X[i,j]"},
          Computation{"multiply", "P[i,k] = sum[j] X[i,j] * Y[j,k]"},
          Computation{"transpose", "P[j,i] = X[i,j]"},
          Computation{"by_a_number", "P[i,j] = 2.5 * X[i,j]"},
          Computation{"by_a_scalar", "scalar eta\nP[i,j] = eta * X[i,j]"},
          Computation{"relu", "P[i,j] = relu(X[i,j])"},
          Computation{"sigmoid", "P[i,j] = sigmoid(X[i,j])"},
          Computation{"sigmoid_derivative", "P[i,j] = sigmoid(X[i,j]) * (1 - sigmoid(X[i,j]))"},
          Computation{"softmax_of_rows", "P[i,j] = softmax[j](X[i,j])"},
          Computation{"reduce_to_column", "P[i] = max[j] X[i,j]"},
          Computation{"reduce_to_number", "P[] = sum[i,j] X[i,j]"},
          Computation{"add_row", "P[i,j] = X[i,j] + r[j]"},
          Computation{"add_column", "P[i,j] = X[i,j] + c[i]"},
          Computation{"times_column", "P[i,j] = X[i,j] * c[i]"},
          Computation{"inverse", "P[k,l] = inverse[k,l](S[k,l])"}};
}

inline std::string name_of_computation(const testing::TestParamInfo<Computation>& info) { return info.param.name; }

/// Every way to compute each vertex of a program while the others are not cut.
inline void expect_right_in_every_format(sql::Database& database, const Computation& computation) {
  const EinGraph graph = program(computation.statement);
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v])) continue;
    const Implementations found = implementations_of(graph, v, {});
    EXPECT_TRUE(found.are_all);
    for (const Implementation& way : found.ways)
      expect_right(database, graph, in_this_way(graph, v, way), formats_of(graph, v, way));
  }
}

}  // namespace einrel::test
