#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "ia/interpret.h"
#include "ia/traffic.h"
#include "plan/cost/cost.h"
#include "plan/lower.h"
#include "plan/planners/planner.h"
#include "plan/refine/numbering.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_plan.h"
#include "tra/infer.h"
#include "tra/interpret.h"
#include "tra/text/parse.h"
#include "tra/text/print.h"

namespace einrel::test {
namespace {

using testing::HasSubstr;

/// Lowered, the plan moves what it says, and computes what the reference does; its text reads back as it was.
void expect_agrees(const EinGraph& graph, const Plan& plan) {
  const LoweredPlan lowered = lower(graph, plan);
  const PlanCosts costs = costs_of(graph, plan, {});
  const Traffic traffic = bytes_of(lowered.ia.store, lowered.ia.plan);
  EXPECT_EQ(costs.received, traffic.received);
  EXPECT_EQ(costs.floats, cost_of(lowered.ia.store, lowered.ia.plan).moved);
  const TensorBindings inputs = counted_inputs(graph);
  const IaRun run = interpret(lowered.ia.store, lowered.ia.plan, inputs, {});
  EXPECT_EQ(run.received, traffic.received);
  EXPECT_EQ(run.sent, traffic.sent);
  EXPECT_EQ(run.moved, costs.floats);
  const std::vector<Tensor> want = evaluate_reference(graph, inputs, {});
  const auto in_chunks = interpret(lowered.tra, inputs, {});
  for (std::size_t i = 0; i < want.size(); ++i) {
    const Vertex& vertex = graph[graph.outputs[i]];
    const std::vector<double> expected = values_of(want[i]);
    for (const Relation& relation : {run.outputs.at(vertex.name), in_chunks.at(vertex.name)}) {
      const std::vector<double> found = values_of(assemble(relation, vertex.dtype, vertex.bound.size()));
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t e = 0; e < found.size(); ++e)
        EXPECT_NEAR(found[e], expected[e], 1e-5 * std::max(1.0, std::abs(expected[e]))) << vertex.name << " " << e;
    }
  }
  const std::string text = to_text(lowered.tra);
  EXPECT_EQ(to_text(parse_tra(SourceText("again.tra", text)).program), text);
}

bool has_halos(const EinGraph& graph, const Plan& plan) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    for (std::size_t o = 0; o < graph.vertices[v].inputs.size(); ++o) {
      const Shape& bound = graph[graph.vertices[v].inputs[o]].bound;
      if (has_windows(operand_cuts(graph.vertices[v], o, bound, plan.vertices[v].parts))) return true;
    }
  }
  return false;
}

TEST(Windows, RandomPlansComputeWhatTheReferenceComputes) {
  std::size_t cut = 0;
  for (const std::string& text : window_programs()) {
    const EinGraph graph = einrel::graph_of(text);
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(text + "seed " + std::to_string(seed));
      Random random(seed);
      const Plan plan = random_plan(random, graph, 8);
      expect_agrees(graph, plan);
      if (has_halos(graph, plan)) ++cut;
    }
  }
  EXPECT_GE(cut, 60U);
}

TEST(Windows, PlannersCutThem) {
  for (const std::string& text : window_programs()) {
    const EinGraph graph = einrel::graph_of(text);
    for (const std::int64_t sites : {1, 2, 3, 4, 8}) {
      SCOPED_TRACE(text + std::to_string(sites) + " sites");
      const Planned planned = planner_named("eindecomp").plan(graph, {sites, {}, CostKind::bytes, {}, {}});
      ASSERT_TRUE(std::holds_alternative<Plan>(planned));
      expect_agrees(graph, std::get<Plan>(planned));
    }
  }
}

/// The graph's only computed vertex cut along one label, as many parts as sites.
Plan cut_along(const EinGraph& graph, const std::string& label, std::int64_t sites) {
  Plan plan{"test", sites, {}};
  for (const Vertex& vertex : graph.vertices) {
    PartitionVector grid(label_extents(vertex).size(), 1);
    const std::vector<std::string> names = label_names(vertex);
    for (std::size_t l = 0; l < grid.size(); ++l) grid[l] = names[l] == label ? sites : 1;
    plan.vertices.push_back(one_part_per_site(grid));
  }
  number_sites(graph, plan);
  return plan;
}

/// The elements of tensor `input` that each part of the label reads, one binding of the labels after the other.
std::vector<std::set<std::vector<std::int64_t>>> elements_read(const EinGraph& graph, const Vertex& vertex,
                                                               VertexId input, std::size_t label, std::int64_t parts) {
  const auto& einsum = std::get<EinSum>(vertex.op);
  const Shape& bound = graph[input].bound;
  std::vector<std::set<std::vector<std::int64_t>>> read(static_cast<std::size_t>(parts));
  std::vector<std::int64_t> at(einsum.labels.size(), 0);
  std::size_t l = 0;
  do {
    std::size_t part = 0;
    while (chunk_begin(einsum.labels[label].extent, {parts, 1}, static_cast<std::int64_t>(part) + 1) <= at[label])
      ++part;
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      if (vertex.inputs[o] != input) continue;
      std::vector<std::int64_t> element;
      for (const Index& index : einsum.operands[o].indices) {
        element.push_back(index.offset);
        for (const IndexTerm& term : index.terms) element.back() += term.coefficient * at[term.label];
      }
      bool is_inside = true;
      for (std::size_t d = 0; d < bound.size(); ++d)
        is_inside = is_inside && element[d] >= 0 && element[d] < bound[d].value();
      if (is_inside) read[part].insert(element);
    }
    for (l = at.size(); l > 0 && ++at[l - 1] == einsum.labels[l - 1].extent.value(); --l) at[l - 1] = 0;
  } while (l > 0);
  return read;
}

/// What a part reads and its site does not hold, element by element: no more comes.
TEST(Windows, BytesAreTheHalosAlone) {
  struct Case {
    std::string text;
    std::string label;
  };
  const std::vector<Case> cases{{"dims x=40\ninput X[x]\nZ[o] = X[o] - 2 * X[o+1] + X[o+2]\n", "o"},
                                {"dims i=40\ninput X[i]\nZ[i] = pad(X[i-1], 0) + X[i] + pad(X[i+3], 0)\n", "i"},
                                {"dims c=2 k=3 y=16 x=5 dy=5 dx=3\ninput X[c,y,x], W[k,c,dy,dx]\n"
                                 "Z[k,y,x] = sum[c,dy,dx] pad(X[c,y+dy-2,x+dx-1], 0) * W[k,c,dy,dx]\n",
                                 "y"},
                                {"dims n=2 x=33 k=3\ninput X[n,x], W[k]\nZ[n,y] = sum[k] X[n,2*y+k] * W[k]\n", "y"},
                                {"dims x=40 k=2\ninput X[x]\nZ[o] = max[k] X[2*o+k]\n", "o"},
                                {"dims y=40\ninput X[y]\nZ[y] = X[39-y]\n", "y"},
                                {"dims x=50 y=40\ninput X[x]\nZ[y] = X[y+7]\n", "y"},
                                {"dims x=16 y=12 d=5\ninput X[x], G[y]\nV[d] = sum[y] X[y+d] * G[y]\n", "y"}};
  for (const auto& [text, name] : cases) {
    const EinGraph graph = einrel::graph_of(text);
    const std::size_t v = graph.vertices.size() - 1;
    const Vertex& vertex = graph.vertices[v];
    const std::vector<std::string> names = label_names(vertex);
    const auto label = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    for (const std::int64_t sites : {2, 4}) {
      SCOPED_TRACE(text + std::to_string(sites) + " sites");
      const Plan plan = cut_along(graph, name, sites);
      std::vector<std::int64_t> wanted(static_cast<std::size_t>(sites), 0);
      for (std::size_t input = 0; input < v; ++input) {
        const auto read = elements_read(graph, vertex, {input}, label, sites);
        const Shape& bound = graph.vertices[input].bound;
        const VertexPlan& lies = plan.vertices[input];
        for (std::size_t part = 0; part < read.size(); ++part) {
          for (const std::vector<std::int64_t>& element : read[part]) {
            std::int64_t site = 0;
            for (std::size_t d = 0; d < bound.size(); ++d) {
              std::int64_t chunk = 0;
              while (chunk_begin(bound[d], {lies.parts[d], 1}, chunk + 1) <= element[d]) ++chunk;
              site += chunk * lies.grid[d] / lies.parts[d] * lies.strides[d];
            }
            if (site != static_cast<std::int64_t>(part)) wanted[part] += 4;
          }
        }
      }
      // Every site adds up a part of V, which its owner gets.
      std::vector<std::int64_t> received = costs_of(graph, plan, {}).received;
      if (name == "y" && vertex.name == "V") received[0] -= (sites - 1) * element_count(vertex.bound) * 4;
      EXPECT_EQ(received, wanted);
      expect_agrees(graph, plan);
    }
  }
}

/// Two rows from each neighbour, of 6 x 1200 floats: 2 x 3 borders on 4 sites.
TEST(Windows, AConvolutionOfAnImageMovesItsHalos) {
  const EinGraph graph = einrel::graph_of(
      "dims c=6 k=24 y=960 x=1200 dy=5 dx=5\ninput I[c,y,x], K[k,c,dy,dx]\n"
      "A[k,y,x] = sum[c,dy,dx] pad(I[c,y+dy-2,x+dx-2], 0) * K[k,c,dy,dx]\n");
  const std::int64_t kernel = 3 * 24 * 6 * 5 * 5 * 4;  // all of K to three more sites
  EXPECT_EQ(costs_of(graph, cut_along(graph, "y", 4), {}).bytes, 345'600 + kernel);
  const Planned planned = planner_named("eindecomp").plan(graph, {4, {}, CostKind::bytes, {}, {}});
  EXPECT_LE(costs_of(graph, std::get<Plan>(planned), {}).bytes, 345'600 + kernel);
}

TEST(Windows, AProgramOverChunksNamesThem) {
  const std::string text =
      "input X[25] : f32 cut <4>\nC = repartition(<4> -> <3 of 13 by 2 from -1 to 1 else 0.5>)(X)\noutput C\n";
  const ParsedTra parsed = parse_tra(SourceText("c.tra", text));
  const auto& op = std::get<Repartition>(parsed.program.nodes[1].op);
  EXPECT_EQ(op.to.front(), (DimensionCut{3, 1, Window{Extent(13), 2, -1, 1, 0.5}}));
  const TraExpr again = parse_tra(SourceText("c.tra", to_text(parsed.program))).program;
  EXPECT_EQ(std::get<Repartition>(again.nodes[1].op), op);
  std::vector<double> numbers;
  for (int i = 0; i < 25; ++i) numbers.push_back(i);
  const Tensor x = tensor_of(DType::f32, make_shape({25}), numbers);
  const Relation chunks = interpret(parsed.program, {{"X", x}}, {}).at("C");
  EXPECT_EQ(values_of(chunks.at({0})), (std::vector<double>{0.5, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));    // of 0 to 4
  EXPECT_EQ(values_of(chunks.at({2})), (std::vector<double>{17, 18, 19, 20, 21, 22, 23, 24, 0.5}));  // of 9 to 12
  const auto error_of = [](const std::string& program) -> std::string {
    try {
      infer(parse_tra(SourceText("c.tra", program)).program);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(error_of("input X[25] cut <3 of 13 from 0 to 12>\noutput X\n"),
              HasSubstr("only a repartition makes them"));
  EXPECT_THAT(error_of("input X[25] cut <4>\nC = repartition(<4> -> <14 of 13 from 0 to 12>)(X)\noutput C\n"),
              HasSubstr("a label of extent 13 cannot be cut into 14 parts"));
  EXPECT_THAT(error_of("input X[25] cut <4>\nC = repartition(<4> -> <3 of 13 from 2 to 1>)(X)\noutput C\n"),
              HasSubstr("a first place that is not behind its last"));
}

}  // namespace
}  // namespace einrel::test
