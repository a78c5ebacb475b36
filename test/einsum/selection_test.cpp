#include "einsum/graph/selection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/passes/selection_split.h"
#include "einsum/reference.h"
#include "support/program.h"
#include "support/random_integers.h"
#include "tensor/convert.h"

namespace einrel {
namespace {

const std::string declarations =
    "dims v=90 s=7 t=5 d=4 x=21 y=9 k=3\ninput T[s] : i32\ninput U[s,t], B[] : i64\n"
    "input E[v,d], X[s,d], Y[s,t], G[y], K[k], P[y,k], N[v], W[x], R[s], D[d]\n";

std::string form_text(const SelectingForm& form, const EinSum& einsum, const Vertex& vertex, const EinGraph& graph) {
  std::string text = index_text(form.labels, einsum.labels);
  for (const ElementTerm& term : form.elements) {
    text +=
        fmt::format("{:+}*{}", term.coefficient,
                    access_text(einsum.operands[term.operand], graph[vertex.inputs[term.operand]].name, einsum.labels));
  }
  return text;
}

/// "v at 0+1*T[s]", for each label that the last vertex of a program selects, and what is left of its body.
std::vector<std::string> selections_of(const std::string& statement) {
  const EinGraph graph = graph_of(declarations + statement);
  Vertex vertex = graph.vertices.back();
  EinSum& einsum = std::get<EinSum>(vertex.op);
  const std::optional<Selected> found = selected(einsum);
  std::vector<std::string> texts;
  if (!found) return texts;
  for (const Selection& selection : found->selections) {
    texts.push_back(fmt::format("{} at {}", einsum.labels[selection.label].name,
                                form_text(selection.position, einsum, vertex, graph)));
  }
  einsum.body = found->value;
  const std::string text = formula(vertex, graph);
  texts.push_back(text.substr(text.find("] ", text.find("] = ") + 4) + 2));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Selected, FindsLabelsThatElementsDecide) {
  EXPECT_EQ(selections_of("Z[s,d] = sum[v] where(v == T[s], E[v,d], 0)\n"), (Texts{"v at 0+1*T[s]", "E[v,d]"}));
  EXPECT_EQ(selections_of("Z[s,d] = sum[v] where(T[s] == v, E[v,d], 0)\n"), (Texts{"v at 0+1*T[s]", "E[v,d]"}));
  EXPECT_EQ(selections_of("Z[v,d] = sum[s] where(v == T[s], X[s,d], 0)\n"), (Texts{"v at 0+1*T[s]", "X[s,d]"}));
  EXPECT_EQ(selections_of("Z[s] = sum[v] where(v - 3 == 2 * U[s,0] - s, N[v], 0)\n"),
            (Texts{"v at -s+3+2*U[s,0]", "N[v]"}));
}

TEST(Selected, FindsConditionsInFactors) {
  EXPECT_EQ(selections_of("Z[s,d] = sum[v] f32(v == T[s]) * E[v,d]\n"), (Texts{"v at 0+1*T[s]", "E[v,d]"}));
  EXPECT_EQ(selections_of("Z[s,d] = sum[v] E[v,d] * (v == T[s])\n"), (Texts{"v at 0+1*T[s]", "E[v,d]"}));
  EXPECT_EQ(selections_of("Z[s,d] = sum[v] -(N[v] * (v == T[s]) * E[v,d]) / D[d]\n"),
            (Texts{"v at 0+1*T[s]", "-(N[v] * E[v,d]) / D[d]"}));
  EXPECT_EQ(selections_of("Z[v] = sum[s] (v == T[s])\n"), (Texts{"v at 0+1*T[s]", "1"}));
  EXPECT_EQ(selections_of("Z[v,x] = sum[s,t] where((v == T[s]) * (x == U[s,t]) * (t < 2), Y[s,t], 0)\n").size(), 3U);
}

TEST(Selected, FindsWindows) {
  EXPECT_EQ(selections_of("Z[x] = sum[y,k] where(x == 2 * y + k, G[y] * K[k], 0)\n"),
            (Texts{"x at 2*y+k", "G[y] * K[k]"}));
  EXPECT_EQ(selections_of("Z[y] = sum[x] where(2 * y + 1 == x, W[x], 0)\n"), (Texts{"x at 2*y+1", "W[x]"}));
}

/// As where a kernel is cut out: positions begin somewhere.
TEST(Selected, FindsPositionsOfChunks) {
  EXPECT_EQ(selections_of("Z[s,d] = sum[v] where(i32(v + B[]) == T[s], E[v,d], 0)\n"),
            (Texts{"v at 0-1*B[]+1*T[s]", "E[v,d]"}));
}

TEST(Selected, FindsNothingWhereEveryPositionCounts) {
  for (const char* const statement :
       {"Z[s,d] = sum[v] where(v < T[s], E[v,d], 0)\n", "Z[s,d] = sum[v] where(v == T[s], E[v,d], 1)\n",
        "Z[s,d] = max[v] where(v == T[s], E[v,d], 0)\n", "Z[s,d] = sum[v] where(2 * v == T[s], E[v,d], 0)\n",
        "Z[s,d] = sum[v] where(v == T[s], 0, E[v,d])\n", "Z[s,d] = sum[v] ((v == T[s]) + E[v,d])\n",
        "Z[s,v] = where(v == T[s], 1, 0)\n", "Z[s] = sum[t] where(t == U[s,t], Y[s,t], 0)\n",
        "Z[s,d] = sum[v] where(f32(v) == X[s,0], E[v,d], 0)\n", "Z[s,d] = mean[v] where(v == T[s], E[v,d], 0)\n"}) {
    EXPECT_EQ(selections_of(statement), Texts{}) << statement;
  }
}

TEST(Selected, CountsNoOperationsForPositionsThatDoNotCount) {
  const EinGraph gather = graph_of(declarations + "Z[s,d] = sum[v] where(v == T[s], E[v,d], 0)\n");
  EXPECT_EQ(flops(gather.vertices.back()), 7 * 4 * 3);  // ==, where, +
  const EinGraph window = graph_of(declarations + "Z[x] = sum[y,k] where(x == 2 * y + k, P[y,k], 0)\n");
  EXPECT_EQ(flops(window.vertices.back()), 9 * 3 * 5);
  // Kernels loop over what is computed on the way, unless it is split.
  const EinGraph whole = graph_of(declarations + "Z[x] = sum[y,k] where(x == 2 * y + k, G[y] * K[k], 0)\n");
  EXPECT_EQ(flops(whole.vertices.back()), 21 * 9 * 3 * 6);
}

std::vector<std::string> formulas_of_selections(const std::string& statement) {
  const EinGraph graph = split_selections(graph_of(declarations + statement));
  verify(graph);
  std::vector<std::string> all;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) all.push_back(formula(vertex, graph));
  }
  return all;
}

TEST(SplitSelections, ComputesWhatIsScatteredFirst) {
  EXPECT_EQ(formulas_of_selections("Z[v,d] = sum[s] where(v == T[s], X[s,d] * R[s], 0)\n"),
            (Texts{"Z_1[s,d] = X[s,d] * R[s]", "Z[v,d] = sum[s] where(v == i64(T[s]), Z_1[s,d], 0)"}));
  EXPECT_EQ(formulas_of_selections("Z[x] = sum[y,k] where(x == 2 * y + k, G[y] * K[k], 0)\n"),
            (Texts{"Z_1[y,k] = G[y] * K[k]", "Z[x] = sum[y,k] where(x == y * 2 + k, Z_1[y,k], 0)"}));
  EXPECT_EQ(formulas_of_selections("Z[v] = sum[s,d] where(v == T[s], X[s,d] * D[d], 0)\n"),
            (Texts{"Z_1[s] = sum[d] X[s,d] * D[d]", "Z[v] = sum[s] where(v == i64(T[s]), Z_1[s], 0)"}));
}

TEST(SplitSelections, GathersFirst) {
  EXPECT_EQ(formulas_of_selections("Z[s] = sum[v,d] f32(v == T[s]) * E[v,d] * X[s,d]\n"),
            (Texts{"Z_1[s,d] = sum[v] where(v == i64(T[s]), E[v,d], 0)",
                   "Z[s] = sum[d] where(i64(T[s]) >= 0, where(i64(T[s]) < 90, Z_1[s,d] * X[s,d], 0), 0)"}));
  // What has been checked is in range.
  EXPECT_EQ(formulas_of_selections(
                "C[s] = in_range_at(T[s], s, T[7], E[90])\nZ[s] = sum[v,d] where(v == C[s], exp(E[v,d]), 0)\n"),
            (Texts{"C[s] = in_range_at(i64(T[s]), s, T[7], E[90])", "Z_1[s,d] = sum[v] where(v == C[s], E[v,d], 0)",
                   "Z[s] = sum[d] exp(Z_1[s,d])"}));
}

TEST(SplitSelections, LeavesOthersAsTheyAre) {
  for (const char* const statement :
       {"Z[s,d] = sum[v] where(v < T[s], E[v,d], 0)", "Z[s,d] = X[s,d] * 2", "Z[v] = sum[d] E[v,d] * E[v,d]"}) {
    EXPECT_EQ(formulas_of_selections(std::string(statement) + "\n"), Texts{statement});
  }
}

/// "Z: it changes the dtype", for each vertex that selects labels and that no kernel computes without their loops.
std::string looped_in(const EinGraph& graph) {
  for (const Vertex& vertex : graph.vertices) {
    const EinSum* const einsum = einsum_of(vertex);
    const std::optional<Selected> found = einsum == nullptr ? std::nullopt : selected(*einsum);
    if (!found) continue;
    std::vector<DType> dtypes;
    for (const VertexId input : vertex.inputs) dtypes.push_back(graph[input].dtype);
    const std::string reason = not_selected_as_it_is(*einsum, *found, dtypes, vertex.dtype);
    if (!reason.empty()) return formula(vertex, graph) + ": " + reason;
  }
  return "";
}

/// A formula and the labels that stand in it.
struct Part {
  std::string text;
  std::string labels;
};

const std::vector<Part> conditions{{"v == T[s]", "vs"},           {"v == T[s]", "vs"},
                                   {"v == pad(T[s+2], 1)", "vs"}, {"v + 1 == T[s]", "vs"},
                                   {"v == i64(T[s]) + t", "vst"}, {"v == T[s] + 1", "vs"},
                                   {"2 - T[s] == v", "vs"},       {"v == i64(2 * T[s]) - t", "vst"},
                                   {"v - T[s] == t", "vst"},      {"i64(v + t - T[s]) == 1", "vst"},
                                   {"i32(T[s]) + 1 == v", "vs"}};
const std::vector<Part> numbers{{"X[s,d]", "d"},
                                {"X[s,d] * D[d]", "d"},
                                {"i64(s)", ""},
                                {"i64(v)", ""},
                                {"1", ""},
                                {"i64(9007199254740993)", ""},
                                {"3 + t", "t"},
                                {"pad(X[s+1,d], 5)", "d"},
                                {"pad(E[v+1,d], 5)", "d"},
                                {"E[v,d]", "d"},
                                {"pad(E[v-1,d], 0)", "d"},
                                {"c", ""},
                                {"E[v,d] * X[s,d]", "d"}};
const std::vector<Part> truths{{"X[s,d] > 0", "d"}, {"E[v,d] > D[d]", "d"}, {"B[v]", ""}, {"s < 2", ""}};

/// A statement that selects v, whose sums are exact in any order.
std::string random_statement(std::mt19937& random) {
  const auto one_of = [&](const auto& all) { return all[random() % all.size()]; };
  const Part condition = one_of(conditions);
  const bool counts = random() % 3 == 0;
  const Part value = random() % 5 == 0 ? Part{"", ""} : one_of(counts ? truths : numbers);
  const auto occurs = [&](char label) { return (condition.labels + value.labels).find(label) != std::string::npos; };
  std::vector<std::string> output;
  std::vector<std::string> reduced;
  for (const char label : {'v', 's', 'd', 't'}) {
    if (occurs(label)) (random() % 2 == 0 ? output : reduced).emplace_back(1, label);
  }
  std::string formula = fmt::format("where({}, {}, 0)", condition.text, value.text);
  if (counts) formula = fmt::format("min({}, {})", condition.text, value.text);
  if (value.text.empty()) formula = fmt::format("({})", condition.text);
  const std::string reducer = random() % (counts ? 2 : 4) == 0 ? "any" : "sum";
  if (!reduced.empty()) formula = fmt::format("{}[{}] {}", reducer, fmt::join(reduced, ","), formula);
  if (random() % 3 == 0)
    formula = fmt::format("{}({})", one_of(std::vector<std::string>{"bf16", "f16", "f32", "i64"}), formula);
  return fmt::format("Z[{}] = {}\n", fmt::join(output, ","), formula);
}

TEST(SplitSelections, LeavesWhatKernelsSelectAndKeepsTheValues) {
  std::mt19937 random(11);
  const std::array<std::string, 7> types{"f32", "f64", "i32", "i64", "bf16", "f16", "bool"};
  for (int round = 0; round < 1500; ++round) {
    const std::string& type = types.at(random() % 6);
    const std::string text =
        fmt::format("dims v=5 s=6 d=3 t=2\ninput T[s] : {}\ninput X[s,d] : {}\ninput E[v,d] : {}\ninput D[d] : {}\n",
                    random() % 2 == 0 ? "i32" : "i64", type, random() % 4 == 0 ? types.at(random() % 6) : type, type) +
        "input B[v] : bool\nscalar c = 2\n" + random_statement(random);
    SCOPED_TRACE(text);
    const EinGraph graph = graph_of(text);
    const EinGraph split = split_selections(graph);
    verify(split);
    EXPECT_EQ(looped_in(split), "");
    const TensorBindings inputs = test::random_integers(graph, random);
    const Tensor expected = evaluate_reference(graph, inputs, {{"c", 2}}).front();
    const Tensor found = evaluate_reference(split, inputs, {{"c", 2}}).front();
    ASSERT_EQ(found.dtype(), expected.dtype());
    ASSERT_EQ(values_of(found), values_of(expected));
  }
}

/// Infinity counts as 0 where it is not selected, whatever type says the position.
TEST(SplitSelections, CountNothingElsewhereWhateverTypeSaysThePosition) {
  for (const char* const type : {"i32", "i64"}) {
    for (const char* const condition :
         {"v == T[s] + 1", "T[s] + 1 == v", "v - T[s] == 1", "v == i64(T[s]) + 1", "v == i64(T[s] + 1)",
          "i64(v - T[s]) == 1", "v == i32(i64(T[s]) + 1)", "v + k == T[s] + 1", "v == 2 * T[s] - T[s] + 1 - k",
          "v == -(-1 - T[s])", "i32(v + k) == T[s] + 1"}) {
      for (const char* const statement :
           {"Z[v] = sum[s,k] f64({}) * f64(k == 0) * X[s]", "Z[s] = sum[v,k] f64({}) * f64(k == 0) * Y[v]",
            "Z[v,s] = sum[k] f64({}) * f64(k == 0) * X[s]"}) {
        const std::string text = fmt::format("dims v=5 s=3 k=2\ninput T[s] : {}\ninput X[s], Y[v] : f64\n", type) +
                                 fmt::format(fmt::runtime(statement), condition) + "\n";
        SCOPED_TRACE(text);
        const EinGraph split = split_selections(graph_of(text));
        verify(split);
        const double infinity = std::numeric_limits<double>::infinity();
        const DType dtype = dtype_named(type).value();
        const TensorBindings inputs{{"T", tensor_of(dtype, {Extent(3)}, {0, 2, -2})},
                                    {"X", tensor_of(DType::f64, {Extent(3)}, {infinity, 2, 3})},
                                    {"Y", tensor_of(DType::f64, {Extent(5)}, {infinity, 1, infinity, 3, infinity})}};
        const Tensor found = evaluate_reference(split, inputs, {}).front();
        const std::vector<double> expected =
            statement[2] == 's' ? std::vector<double>{1, 3, 0}
            : found.rank() == 1 ? std::vector<double>{0, infinity, 0, 2, 0}
                                : std::vector<double>{0, 0, 0, infinity, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0};
        EXPECT_EQ(values_of(found), expected);
      }
    }
  }
}

}  // namespace
}  // namespace einrel
