#include "tra/from_einsum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/random_selection.h"
#include "tra/infer.h"
#include "tra/interpret.h"

namespace einrel::test {
namespace {

using einrel::graph_of;  // of a program's text, besides that of a random vertex
using testing::ElementsAre;
using testing::HasSubstr;

/// The operations of a program in order, by name.
std::vector<std::string> operations(const TraExpr& program) {
  struct Name {
    std::string operator()(const StoredRelation& op) const { return op.name; }
    std::string operator()(const LabelPositions&) const { return "positions"; }
    std::string operator()(const Aggregate& op) const { return "aggregate" + to_string(op.group_by); }
    std::string operator()(const Join& op) const { return "join" + to_string(op.keys_left) + to_string(op.keys_right); }
    std::string operator()(const ReKey& op) const {
      std::string keys;
      for (const KeyExpr& key : op.map.outputs) keys += (keys.empty() ? "" : ",") + to_string(key);
      return "rekey<" + keys + ">";
    }
    std::string operator()(const Filter& op) const { return "filter " + to_string(op.predicate); }
    std::string operator()(const Transform&) const { return "transform"; }
    std::string operator()(const Tile&) const { return "tile"; }
    std::string operator()(const Concat&) const { return "concat"; }
    std::string operator()(const Repartition&) const { return "repartition"; }
  };
  std::vector<std::string> names;
  for (const TraNode& node : program.nodes) names.push_back(std::visit(Name{}, node.op));
  return names;
}

/// Every vertex with as many parts as `parts` says for labels of that name, at most their extents; inputs by the names
/// that `input_labels` gives their dimensions.
GraphCuts cuts_by_label(const EinGraph& graph, const std::map<std::string, std::int64_t>& parts,
                        const std::map<std::string, std::vector<std::string>>& input_labels = {}) {
  const auto parts_of = [&](const std::string& label) {
    const auto found = parts.find(label);
    return found == parts.end() ? std::int64_t{1} : found->second;
  };
  GraphCuts cuts;
  for (const Vertex& vertex : graph.vertices) {
    std::vector<std::int64_t>& own = cuts.parts.emplace_back();
    if (const EinSum* einsum = einsum_of(vertex)) {
      for (const Label& label : einsum->labels) own.push_back(parts_of(label.name));
    } else if (const View* view = view_of(vertex)) {
      for (const Label& label : view->labels) own.push_back(parts_of(label.name));
    } else if (const auto known = input_labels.find(vertex.name); known != input_labels.end()) {
      for (const std::string& label : known->second) own.push_back(parts_of(label));
    } else {
      own.assign(vertex.bound.size(), 1);
    }
  }
  return cuts;
}

/// The program's outputs as whole tensors, in the order of the graph's.
std::vector<Tensor> run(const EinGraph& graph, const GraphCuts& cuts, const TensorBindings& inputs,
                        const ScalarBindings& scalars = {}) {
  const std::map<std::string, Relation> relations = interpret(from_einsum(graph, cuts), inputs, scalars);
  std::vector<Tensor> outputs;
  for (const VertexId id : graph.outputs) {
    const Vertex& vertex = graph[id];
    outputs.push_back(assemble(relations.at(vertex.name), vertex.dtype, vertex.bound.size()));
  }
  return outputs;
}

/// The program lowered with these cuts gives exactly what the reference gives.
testing::AssertionResult same_as_reference(const EinGraph& graph, const GraphCuts& cuts, const TensorBindings& inputs) {
  const std::vector<Tensor> got = run(graph, cuts, inputs);
  const std::vector<Tensor> want = evaluate_reference(graph, inputs, {});
  for (std::size_t i = 0; i < want.size(); ++i) {
    const std::vector<double> nothing(static_cast<std::size_t>(want[i].count()), 0);
    auto result = agree(got[i], want[i], nothing);
    if (!result) return result << " in " << graph[graph.outputs[i]].name;
  }
  return testing::AssertionSuccess();
}

std::string refusal(const EinGraph& graph, const GraphCuts& cuts) {
  try {
    from_einsum(graph, cuts);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

const char* const matrix_multiply = "dims i=4 j=7 k=5\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]";

TEST(FromEinsum, AMatrixMultiplicationIsAJoinAndAnAggregationOfOneTuplePerCellOfThePartitionVector) {
  const EinGraph graph = graph_of(matrix_multiply);
  const GraphCuts cuts = cuts_by_label(graph, {{"i", 2}, {"j", 3}, {"k", 2}}, {{"X", {"i", "j"}}, {"Y", {"j", "k"}}});
  const TraExpr program = from_einsum(graph, cuts);
  EXPECT_THAT(operations(program), ElementsAre("X", "Y", "join<1><0>", "aggregate<0,2>"));
  EXPECT_EQ(infer(program)[2].chunks.size(), 2U * 3U * 2U);
  EXPECT_EQ(program.nodes[3].name, "Z");
  EXPECT_EQ(program.outputs.front().name, "Z");
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
}

TEST(FromEinsum, LabelsThatAreReducedButNotCutNeedNoAggregation) {
  const EinGraph graph = graph_of(matrix_multiply);
  const GraphCuts cuts = cuts_by_label(graph, {{"i", 4}, {"k", 3}}, {{"X", {"i", "j"}}, {"Y", {"j", "k"}}});
  EXPECT_THAT(operations(from_einsum(graph, cuts)), ElementsAre("X", "Y", "join<1><0>", "rekey<k0,k2>"));
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
}

TEST(FromEinsum, TensorsAreRecutOncePerCutThatSomeoneWants) {
  const EinGraph graph =
      graph_of("dims i=6\ninput X[i]\nY[i] = X[i] + 1\nZ[i] = X[i] * 2\nV[i] = Y[i] + Z[i]\noutput V");
  const GraphCuts cuts = cuts_by_label(graph, {{"i", 3}});
  EXPECT_THAT(operations(from_einsum(graph, cuts)),
              ElementsAre("X", "repartition", "transform", "transform", "join<0><0>"));
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
}

TEST(FromEinsum, ATransposeIsATransformAndARekey) {
  const EinGraph graph = graph_of("dims i=5 j=4\ninput X[i,j]\nZ[j,i] = X[i,j]");
  const GraphCuts cuts = cuts_by_label(graph, {{"i", 2}, {"j", 3}}, {{"X", {"i", "j"}}});
  EXPECT_THAT(operations(from_einsum(graph, cuts)), ElementsAre("X", "transform", "rekey<k1,k0>"));
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
}

TEST(FromEinsum, ADiagonalIsTheChunksOnTheDiagonal) {
  const EinGraph graph = graph_of("dims i=5 j=2\ninput X[i,j,i]\nZ[j,i] = X[i,j,i]");
  const GraphCuts cuts = cuts_by_label(graph, {{"i", 3}, {"j", 2}}, {{"X", {"i", "j", "i"}}});
  EXPECT_THAT(operations(from_einsum(graph, cuts)),
              ElementsAre("X", "filter k0 == k2", "rekey<k0,k1>", "transform", "rekey<k1,k0>"));
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
}

TEST(FromEinsum, OneTensorReadTwiceAlikeIsOneOperandAndReadAcrossIsJoinedWithItself) {
  const EinGraph square = graph_of("dims i=4\ninput X[i]\nZ[i] = X[i] * X[i]");
  EXPECT_THAT(operations(from_einsum(square, cuts_by_label(square, {{"i", 2}}, {{"X", {"i"}}}))),
              ElementsAre("X", "transform"));
  const EinGraph across = graph_of("dims i=4 j=4\ninput X[i,j]\nZ[i,j] = X[i,j] * X[j,i]");
  const GraphCuts cuts = cuts_by_label(across, {{"i", 2}, {"j", 2}}, {{"X", {"i", "j"}}});
  EXPECT_THAT(operations(from_einsum(across, cuts)), ElementsAre("X", "join<0,1><1,0>"));
  EXPECT_TRUE(same_as_reference(across, cuts, counted_inputs(across)));
}

TEST(FromEinsum, KernelsTakeWhereTheirChunkBeginsForValuesOfLabelsThatAreCut) {
  const EinGraph graph = graph_of("dims t=5 s=4\ninput X[t,s]\nZ[t,s] = where(s <= t, X[t,s], -inf)");
  const GraphCuts one = cuts_by_label(graph, {{"t", 3}}, {{"X", {"t", "s"}}});
  EXPECT_THAT(operations(from_einsum(graph, one)), ElementsAre("X", "transform"));
  EXPECT_TRUE(same_as_reference(graph, one, counted_inputs(graph)));
  const GraphCuts none = cuts_by_label(graph, {});
  EXPECT_THAT(operations(from_einsum(graph, none)), ElementsAre("X", "transform"));
  EXPECT_TRUE(same_as_reference(graph, none, counted_inputs(graph)));
  const GraphCuts both = cuts_by_label(graph, {{"t", 3}, {"s", 2}}, {{"X", {"t", "s"}}});
  EXPECT_THAT(operations(from_einsum(graph, both)), ElementsAre("X", "transform"));
  EXPECT_TRUE(same_as_reference(graph, both, counted_inputs(graph)));
}

TEST(FromEinsum, ABroadcastLabelThatIsCutIsReadFromPositions) {
  const EinGraph graph = graph_of("dims i=5 j=4\ninput X[i]\nZ[j,i] = X[i]");
  const GraphCuts cuts = cuts_by_label(graph, {{"i", 2}, {"j", 3}}, {{"X", {"i"}}});
  EXPECT_THAT(operations(from_einsum(graph, cuts)), ElementsAre("X", "positions", "join<><>", "rekey<k1,k0>"));
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
}

TEST(FromEinsum, ANumberForEveryPositionStartsFromPositions) {
  const EinGraph graph = graph_of("dims i=5 j=4 k=3\nZ[i,j,k] = 3");
  for (const std::int64_t parts : {1, 2, 3}) {
    const GraphCuts cuts = cuts_by_label(graph, {{"i", parts}, {"j", parts}, {"k", parts}});
    EXPECT_TRUE(same_as_reference(graph, cuts, {})) << parts;
  }
}

TEST(FromEinsum, ThreeOperandsAreOneJoin) {
  const EinGraph graph = graph_of("dims i=5 j=4\ninput A[i,j], B[j], C[i]\nZ[i] = max[j] A[i,j] * B[j] - C[i]");
  const GraphCuts cuts = cuts_by_label(graph, {{"i", 2}, {"j", 2}}, {{"A", {"i", "j"}}, {"B", {"j"}}, {"C", {"i"}}});
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
  const EinGraph sum = graph_of("dims i=5\ninput A[i], B[i], C[i]\nZ[i] = A[i] * B[i] - C[i]");
  EXPECT_THAT(operations(from_einsum(sum, cuts_by_label(sum, {}))), ElementsAre("A", "B", "C", "join<0,0><0,1>"));
}

TEST(FromEinsum, ConditionAndValueOfAWhereOverThreeTensorsMeetWithoutLoss) {
  const EinGraph graph = graph_of("dims i=5\ninput C[i] : f64\ninput A[i], B[i] : i32\nZ[i] = where(C[i], A[i], B[i])");
  const GraphCuts cuts = cuts_by_label(graph, {{"i", 2}}, {{"A", {"i"}}, {"B", {"i"}}, {"C", {"i"}}});
  EXPECT_THAT(operations(from_einsum(graph, cuts)), ElementsAre("C", "A", "B", "join<0,0><0,1>"));
  TensorBindings inputs = counted_inputs(graph);
  // Neither truncating 0.25 to i32 nor rounding 1e-300 may make it 0.
  inputs["C"] = tensor_of(DType::f64, make_shape({5}), {0.25, 0, 1e-300, std::nan(""), -0.0});
  EXPECT_TRUE(same_as_reference(graph, cuts, inputs));
}

TEST(FromEinsum, PartialSumsOfNarrowTypesAreRoundedOnce) {
  // 2048 + 1 + 1 in f16: rounding partial sums would lose both ones, since f16 counts in twos from 2048 on.
  const EinGraph graph = graph_of("dims i=3\ninput X[i] : f16\nZ[] = sum[i] X[i]");
  const GraphCuts cuts = cuts_by_label(graph, {{"i", 3}}, {{"X", {"i"}}});
  EXPECT_THAT(operations(from_einsum(graph, cuts)), ElementsAre("X", "transform", "aggregate<>", "transform"));
  const std::vector<Tensor> z = run(graph, cuts, {{"X", tensor_of(DType::f16, make_shape({3}), {2048, 1, 1})}});
  EXPECT_EQ(values_of(z.front()), std::vector<double>{2050});
}

TEST(FromEinsum, AMeanIsASumDividedByTheNumberOfItsValues) {
  const EinGraph graph = graph_of("dims i=5 j=3 k=2\ninput X[i,j,k] : i32\nZ[k] = mean[i,j] X[i,j,k]");
  const GraphCuts cuts = cuts_by_label(graph, {{"i", 3}, {"k", 2}}, {{"X", {"i", "j", "k"}}});
  EXPECT_THAT(operations(from_einsum(graph, cuts)), ElementsAre("X", "transform", "aggregate<2>", "transform"));
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
}

TEST(FromEinsum, OfAWindowTheLongestLabelMayBeCut) {
  const EinGraph graph =
      graph_of("dims n=5 x=7 k=3 c=2\ninput X[n,x], W[k,c]\nZ[n,c,x] = sum[k] pad(X[n,x+k-1], 0) * W[k,c]\noutput Z");
  const Vertex& vertex = graph[graph.outputs.front()];
  const std::vector<std::string> reasons = cannot_be_cut(vertex, graph);
  const std::vector<std::string> apart = cannot_be_cut_apart(vertex, graph);
  const std::vector<Label>& labels = std::get<EinSum>(vertex.op).labels;
  for (std::size_t l = 0; l < labels.size(); ++l) {
    const std::string in_window = "it is part of the window index x+k-1 of X[n,x+k-1]";
    EXPECT_EQ(reasons[l], labels[l].name == "k" ? in_window : "");
    EXPECT_EQ(apart[l], labels[l].name == "k" || labels[l].name == "x" ? in_window : "");
  }
  for (const std::int64_t parts : {1, 2, 3, 7}) {
    const GraphCuts cuts = cuts_by_label(graph, {{"n", 3}, {"c", 2}, {"x", parts}}, {{"X", {"n", "x"}}});
    EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
  }
}

TEST(FromEinsum, APlainReadOfPartOfATensorIsCutAsAWindow) {
  const EinGraph graph = graph_of("dims n=4 x=6\ninput X[n,x]\nZ[n,o] = X[n,o+1] - X[n,o]");
  const GraphCuts cuts = cuts_by_label(graph, {{"n", 3}, {"o", 2}}, {{"X", {"n", "x"}}});
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
  const EinGraph longer = graph_of("dims n=4 x=3 long=5\ninput X[n,x]\nZ[n,long] = pad(X[n,long], 2)");
  EXPECT_TRUE(same_as_reference(longer, cuts_by_label(longer, {{"n", 3}, {"long", 4}}), counted_inputs(longer)));
}

TEST(FromEinsum, PaddingThatNoChunkCanHoldKeepsALabelWhole) {
  const EinGraph narrow = graph_of("dims x=6\ninput X[x] : bf16\nZ[x] = pad(X[x-1], 0.1)");
  EXPECT_THAT(refusal(narrow, cuts_by_label(narrow, {{"x", 2}})),
              HasSubstr("X is read beyond its end in X[x-1], and no bf16 is its padding 0.1"));
  const EinGraph far = graph_of("dims x=6 y=20\ninput X[x]\nZ[y] = pad(X[3*y], 0)");
  EXPECT_THAT(refusal(far, cuts_by_label(far, {{"y", 2}})), HasSubstr("most of what it reads is padding of X[3*y]"));
}

TEST(FromEinsum, ACutThatALabelDoesNotAllowIsRefusedWithLabelAndReason) {
  const EinGraph window = graph_of("dims x=6 k=2\ninput X[x]\nZ[o] = max[k] X[2*o+k]");
  EXPECT_EQ(refusal(window, cuts_by_label(window, {{"k", 2}})),
            "label 'k' of Z cannot be cut into 2 parts: it is part of the window index 2*o+k of X[2*o+k]; at most 1");
  const EinGraph view = graph_of("dims h=2 d=4\ninput X[h,d]\nZ[(d h)] = view X[h,d]");
  EXPECT_EQ(refusal(view, cuts_by_label(view, {{"h", 2}})),
            "label 'h' of Z cannot be cut into 2 parts: it is not the first label of the group (d h); at most 1");
  const EinGraph multiply = graph_of(matrix_multiply);
  EXPECT_EQ(refusal(multiply, cuts_by_label(multiply, {{"i", 5}})),
            "label 'i' of Z cannot be cut into 5 parts: its extent is 4; at most 4");
  EXPECT_EQ(refusal(multiply, cuts_by_label(multiply, {{"k", 0}})),
            "label 'k' of Z cannot be cut into 0 parts: its extent is 5; at most 5");
  EXPECT_EQ(refusal(multiply, cuts_by_label(multiply, {{"j", 8}}, {{"X", {"i", "j"}}})),
            "dimension 1 of X cannot be cut into 8 parts: its extent is 7; at most 7");
}

TEST(FromEinsum, DefaultCutsTakeEveryLabelThatCanBeCutLargestFirst) {
  const EinGraph graph =
      graph_of("dims a=3 b=2 c=9 d=5 e=1 x=20 k=2\ninput X[a,b,c,d,e,x]\nZ[a,b,c,d,e,o] = max[k] X[a,b,c,d,e,o+k]");
  const GraphCuts cuts = default_cuts(graph, 4);
  ASSERT_EQ(cuts.parts.size(), 2U);
  EXPECT_THAT(cuts.parts[0], ElementsAre(3, 2, 4, 4, 1, 4));
  std::map<std::string, std::int64_t> parts;
  const std::vector<Label>& labels = std::get<EinSum>(graph.vertices[1].op).labels;
  for (std::size_t l = 0; l < labels.size(); ++l) parts[labels[l].name] = cuts.parts[1][l];
  const std::map<std::string, std::int64_t> expected{{"a", 3}, {"b", 2}, {"c", 4}, {"d", 4},
                                                     {"e", 1}, {"o", 1}, {"k", 1}};
  EXPECT_EQ(parts, expected);
}

TEST(FromEinsum, DefaultCutsKeepTheKernelCallsOfAVertexFew) {
  const EinGraph graph = graph_of("dims i=100 j=200 k=300\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]");
  EXPECT_THAT(default_cuts(graph, 10).parts[2], testing::UnorderedElementsAre(10, 10, 10));
  EXPECT_THAT(default_cuts(graph, 16).parts[2], testing::UnorderedElementsAre(16, 16, 4));  // 1024 in all
  EXPECT_THAT(default_cuts(graph, 5000).parts[2], testing::UnorderedElementsAre(300, 3, 1));
}

// Reducers whose labels are cut

TEST(FromEinsum, ReducersTreatSpecialValuesInChunksAsTheReferenceDoes) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double nan = std::nan("");
  const std::vector<std::vector<double>> rows{{nan, 1, nan, 2, 0},
                                              {1, 2, nan, infinity, nan},
                                              {infinity, 1, infinity, 0, -infinity},
                                              {-0.0, 0, -0.0, 0, 0},
                                              {1, 3, 3, -1, 3},
                                              {2, 1, 5, 1, 1},
                                              {-infinity, -infinity, -infinity, -infinity, -infinity},
                                              {-infinity, nan, 0, infinity, 1},
                                              {infinity, infinity, infinity, infinity, infinity},
                                              {0, 0, 0, 0, 0},
                                              {1, 1, 1, 1, 1}};
  std::vector<double> values;
  for (const std::vector<double>& row : rows) values.insert(values.end(), row.begin(), row.end());
  for (const std::string reducer :
       {"sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin", "logsumexp"}) {
    for (const std::string body : {"X[n,i]", "X[n,i] * 1 + 0"}) {
      const EinGraph graph = graph_of("dims n=11 i=5\ninput X[n,i] : f64\nZ[n] = " + reducer + "[i] " +
                                      (body == "X[n,i]" ? body : "(" + body + ")"));
      const TensorBindings inputs{{"X", tensor_of(DType::f64, make_shape({11, 5}), values)}};
      const Tensor want = evaluate_reference(graph, inputs, {}).front();
      for (const std::int64_t parts : {2, 3, 5}) {
        const GraphCuts cuts = cuts_by_label(graph, {{"i", parts}, {"n", 2}});
        // logsumexp of the finite rows is rounded at every fold.
        const std::vector<double> allowed(rows.size(), reducer == "logsumexp" ? 1e-14 : 0);
        EXPECT_TRUE(agree(run(graph, cuts, inputs).front(), want, allowed))
            << reducer << " of " << body << ", " << parts;
      }
    }
  }
}

TEST(FromEinsum, PositionsOfExtremesCountOverAllLabelsInTheirOrder) {
  for (const std::string order : {"i,j,k", "k,i,j", "j,k"}) {
    for (const std::string reducer : {"argmax", "argmin"}) {
      const bool some = order == "j,k";
      const EinGraph graph = graph_of("dims i=3 j=4 k=5\ninput X[i,j,k] : i64\nZ[" + std::string(some ? "i" : "") +
                                      "] = " + reducer + "[" + order + "] X[i,j,k] * X[i,j,k]");
      for (const auto& parts : std::vector<std::map<std::string, std::int64_t>>{
               {{"i", 3}}, {{"j", 2}, {"k", 2}}, {{"i", 2}, {"j", 3}, {"k", 4}}, {{"k", 5}}}) {
        EXPECT_TRUE(same_as_reference(graph, cuts_by_label(graph, parts), counted_inputs(graph))) << order;
      }
    }
  }
}

TEST(FromEinsum, EmptyTensorsAndReductionsAreAsTheReferenceHasThem) {
  const EinGraph graph = graph_of(
      "dims n=0 m=5\ninput X[m,n] : f64\nS[m] = sum[n] X[m,n]\nM[m] = mean[n] X[m,n]\nL[m] = logsumexp[n] X[m,n]\n"
      "P[] = prod[m,n] X[m,n]\nE[n,m] = X[m,n] + m\nV[(m n)] = view X[m,n]\nW[n,m] = view V[(m n)]\n"
      "output S, M, L, P, E, V, W");
  GraphCuts cuts = cuts_by_label(graph, {{"m", 3}}, {{"X", {"m", "n"}}});
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (std::holds_alternative<View>(graph.vertices[v].op)) cuts.parts[v].assign(2, 1);
  }
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
}

TEST(FromEinsum, ReadsOfNothingMayLieAnywhere) {
  const EinGraph graph = graph_of(
      "dims n=0 m=5\ninput X[m,n], Y[m]\nS[m] = sum[n] (X[9,n] * Y[m] + X[m,n])\nE[n,m] = X[7,n] + Y[m]\noutput S, E");
  EXPECT_TRUE(same_as_reference(graph, cuts_by_label(graph, {{"m", 3}}), counted_inputs(graph)));
}

// Random vertices under random cuts

/// Random parts for every label that can be cut, at most `most` cells in all.
GraphCuts random_cuts(Random& random, const EinGraph& graph, std::int64_t most) {
  GraphCuts cuts;
  for (const Vertex& vertex : graph.vertices) {
    Shape extents = vertex.bound;
    const auto take = [&](const std::vector<Label>& labels) {
      extents.clear();
      for (const Label& label : labels) extents.push_back(label.extent);
    };
    if (const EinSum* einsum = einsum_of(vertex)) take(einsum->labels);
    if (const View* view = view_of(vertex)) take(view->labels);
    const std::vector<std::string> reasons = cannot_be_cut(vertex, graph);
    std::int64_t cells = 1;
    std::vector<std::int64_t>& parts = cuts.parts.emplace_back();
    for (std::size_t l = 0; l < extents.size(); ++l) {
      const std::int64_t limit = std::min({extents[l].value(), most / cells, std::int64_t{4}});
      const bool cut = reasons[l].empty() && limit > 1 && random.chance(0.7);
      parts.push_back(cut ? random.between(2, limit) : 1);
      cells *= parts.back();
    }
  }
  return cuts;
}

/// The chunks that every output element is folded from.
std::int64_t folded_chunks(const EinSum& einsum, const std::vector<std::int64_t>& parts) {
  std::int64_t count = 1;
  for (const std::size_t label : einsum.reduced) count *= parts[label];
  return count;
}

/// The reduction of f(value) as f64 instead, by the reference.
std::vector<double> reduced_with(const RandomEinsum& random, Reducer reducer,
                                 const std::vector<UnaryFunction>& functions) {
  Vertex vertex = random.vertex;
  auto& einsum = std::get<EinSum>(vertex.op);
  einsum.body.steps.push_back({DType::f64, Convert{}});
  for (const UnaryFunction function : functions) einsum.body.steps.push_back({DType::f64, ApplyUnary{function}});
  einsum.reducer = reducer;
  vertex.dtype = DType::f64;
  return values_of(evaluate_reference(vertex, random.operands, random.scalars));
}

/// How far a fold of `chunks` partial results may be from the reduction of all values: infinite where partial results
/// may leave the range of their type.
std::vector<double> allowed_errors(const RandomEinsum& random, const Tensor& want, std::int64_t chunks) {
  const EinSum& einsum = random.einsum();
  std::vector<double> allowed(static_cast<std::size_t>(want.count()), 0);
  if (chunks == 1 || !is_float(want.dtype())) return allowed;
  const DType partial = reduced_type(*einsum.reducer, einsum.body.type());
  double count = 1;
  for (const std::size_t label : einsum.reduced) count *= static_cast<double>(einsum.labels[label].extent.value());
  const double unit = epsilon(partial) * static_cast<double>(chunks + 2) + epsilon(DType::f64) * count;
  const double rounded = want.dtype() == partial ? 0 : 1.01 * epsilon(want.dtype());
  const double least = partial == DType::f32 ? 0x1p-149 : 0;
  const double largest = partial == DType::f32 ? 1e38 : 1e300;
  const std::vector<double> values = values_of(want);
  std::vector<double> scale(allowed.size(), 0);
  if (*einsum.reducer == Reducer::sum || *einsum.reducer == Reducer::mean) {
    const std::vector<double> magnitudes = reduced_with(random, Reducer::sum, {UnaryFunction::abs});
    const std::vector<double> own = reduced_with(random, *einsum.reducer, {UnaryFunction::abs});
    for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = magnitudes[i] < largest ? own[i] : INFINITY;
  } else if (*einsum.reducer == Reducer::sumsq) {  // all terms have one sign
    for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = values[i] < largest ? values[i] : INFINITY;
  } else if (*einsum.reducer == Reducer::prod) {
    const std::vector<double> logs =
        reduced_with(random, Reducer::sum, {UnaryFunction::abs, UnaryFunction::log, UnaryFunction::abs});
    for (std::size_t i = 0; i < scale.size(); ++i)
      scale[i] = logs[i] < std::log(largest) ? std::abs(values[i]) : INFINITY;
  } else if (*einsum.reducer == Reducer::logsumexp) {
    for (std::size_t i = 0; i < scale.size(); ++i) scale[i] = 4 * (std::abs(values[i]) + 12);
  } else {
    return allowed;
  }
  const double narrow_least = want.dtype() == DType::f16 ? 0x1p-24 : least;
  for (std::size_t i = 0; i < allowed.size(); ++i)
    allowed[i] = unit * scale[i] + rounded * std::abs(values[i]) + narrow_least;
  return allowed;
}

/// `agree` where an allowed error is finite.
testing::AssertionResult agree_where_known(const Tensor& got, const Tensor& want, std::vector<double> allowed) {
  if (!is_float(want.dtype()) || got.dtype() != want.dtype() || got.shape() != want.shape())
    return agree(got, want, allowed);
  std::vector<double> known = values_of(got);
  const std::vector<double> wanted = values_of(want);
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (std::isfinite(allowed[i]) || std::isnan(wanted[i])) continue;
    known[i] = wanted[i];
    allowed[i] = 0;
  }
  return agree(tensor_of(want.dtype(), want.shape(), known), want, allowed);
}

std::string describe(const GraphCuts& cuts) {
  std::string text;
  for (const auto& parts : cuts.parts) {
    text += "cut";
    for (const std::int64_t count : parts) text += " " + std::to_string(count);
    text += "; ";
  }
  return text;
}

/// A vertex under random cuts against the reference; `chunks`: how many partial results were folded.
testing::AssertionResult is_the_same_in_chunks(const RandomEinsum& vertex, std::int64_t& chunks) {
  const EinGraph graph = graph_of(vertex);
  Random random(vertex.seed);
  const GraphCuts cuts = random_cuts(random, graph, 24);
  TensorBindings inputs;
  for (std::size_t x = 0; x < vertex.operands.size(); ++x) inputs["X" + std::to_string(x)] = vertex.operands[x];
  const Tensor want = evaluate_reference(vertex.vertex, vertex.operands, vertex.scalars);
  chunks = folded_chunks(vertex.einsum(), cuts.parts.back());
  return agree_where_known(run(graph, cuts, inputs, vertex.scalars).front(), want, allowed_errors(vertex, want, chunks))
         << describe(vertex) << describe(cuts);
}

class RandomVertices : public testing::TestWithParam<int> {};

TEST_P(RandomVertices, AreTheSameInChunks) {
  constexpr int per_instance = 300;
  int cut = 0;
  for (int i = 0; i < per_instance; ++i) {
    std::int64_t chunks = 0;
    ASSERT_TRUE(
        is_the_same_in_chunks(random_einsum(static_cast<std::uint64_t>(GetParam() * per_instance + i)), chunks));
    if (chunks > 1) ++cut;
  }
  EXPECT_GT(cut, per_instance / 10);
}

/// Also where nothing reads the label that is selected.
TEST_P(RandomVertices, SelectTheSameInChunks) {
  constexpr int per_instance = 100;
  int cut = 0;
  for (int i = 0; i < per_instance; ++i) {
    std::int64_t chunks = 0;
    const auto seed = static_cast<std::uint64_t>(GetParam() * per_instance + i);
    ASSERT_TRUE(is_the_same_in_chunks(random_selection(seed, 500), chunks));
    if (chunks > 1) ++cut;
  }
  EXPECT_GT(cut, per_instance / 10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomVertices, testing::Range(0, 10));

/// A view with random groups on both sides, of an input X.
EinGraph random_view(Random& random) {
  View view;
  const std::int64_t count = random.between(0, 5);
  std::vector<std::size_t> order;
  for (std::int64_t l = 0; l < count; ++l) {
    view.labels.push_back(
        {std::string(1, static_cast<char>('a' + l)), Extent(random.chance(0.05) ? 0 : random.between(1, 5))});
    order.push_back(static_cast<std::size_t>(l));
  }
  const auto side = [&] {
    std::vector<std::vector<std::size_t>> groups;
    if (random.chance(0.5)) random.shuffle(order);
    for (const std::size_t label : order) {
      while (random.chance(0.1)) groups.emplace_back();
      if (groups.empty() || random.chance(0.6)) groups.emplace_back();
      groups.back().push_back(label);
    }
    return groups;
  };
  const auto bound = [&](const std::vector<std::vector<std::size_t>>& groups) {
    Shape shape;
    for (const auto& group : groups) {
      std::int64_t extent = 1;
      for (const std::size_t label : group) extent *= view.labels[label].extent.value();
      shape.emplace_back(extent);
    }
    return shape;
  };
  view.from = side();
  view.to = side();
  EinGraph graph;
  graph.vertices.push_back({"X", DType::i32, bound(view.from), {}, Input{}, {}});
  graph.vertices.push_back({"Z", DType::i32, bound(view.to), {VertexId{0}}, view, {}});
  graph.outputs.push_back(VertexId{1});
  return graph;
}

TEST(FromEinsum, RandomViewsAreTheSameInChunks) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const EinGraph graph = random_view(random);
    ASSERT_NO_THROW(verify(graph));
    const GraphCuts cuts = random_cuts(random, graph, 64);
    ASSERT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph))) << "seed " << seed << ": " << describe(cuts);
  }
}

TEST(FromEinsum, AViewKeepsTheGroupsOfTheLabelsBehindTheOneThatIsCut) {
  const EinGraph graph = graph_of(
      "dims b=3 h=5 d=4\ninput X[b,e]\ndims e=20\nY[h,b,d] = view X[b,(h d)]\nZ[h] = sum[b,d] Y[h,b,d]\noutput Z");
  const GraphCuts cuts = cuts_by_label(graph, {{"h", 2}, {"b", 3}}, {{"X", {"b", "e"}}});
  EXPECT_THAT(operations(from_einsum(graph, cuts)),
              ElementsAre("X", "repartition", "transform", "rekey<k1,k0,0>", "transform", "aggregate<0>"));
  const TraExpr program = from_einsum(graph, cuts);
  const auto& recut = std::get<Repartition>(program.nodes[1].op);
  EXPECT_THAT(recut.to, ElementsAre(DimensionCut{3, 1}, DimensionCut{2, 4}));
  EXPECT_TRUE(same_as_reference(graph, cuts, counted_inputs(graph)));
}

}  // namespace
}  // namespace einrel::test
