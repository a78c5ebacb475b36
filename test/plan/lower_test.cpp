#include "plan/lower.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "einsum/reference.h"
#include "ia/interpret.h"
#include "ia/traffic.h"
#include "plan/numbering.h"
#include "plan/planner.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

/// Any plan: random grids over random sites, and sometimes several parts a site.
Plan random_plan(Random& random, const EinGraph& graph) {
  Plan plan{"random", random.between(1, 12), {}};
  for (const Vertex& vertex : graph.vertices) {
    if (std::holds_alternative<Input>(vertex.op)) {
      plan.vertices.push_back(one_part_per_site(PartitionVector(vertex.bound.size(), 1)));
      continue;
    }
    const PartitionVector most = most_parts(vertex, graph);
    const std::vector<PartitionVector> grids = site_grids(most, random.between(1, plan.sites));
    const auto at = static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(grids.size()) - 1));
    VertexPlan chosen = one_part_per_site(grids[at]);
    for (std::size_t l = 0; l < most.size(); ++l) {
      if (random.chance(0.2)) chosen.parts[l] = random.between(chosen.parts[l], std::min(most[l], chosen.parts[l] + 3));
    }
    plan.vertices.push_back(std::move(chosen));
  }
  number_sites(graph, plan);
  return plan;
}

void expect_lowering_agrees(const EinGraph& graph, const Plan& plan, const std::string& text) {
  SCOPED_TRACE(text);
  const LoweredPlan lowered = lower(graph, plan);
  const PlanCosts costs = costs_of(graph, plan, {});
  const Traffic traffic = bytes_of(lowered.ia.store, lowered.ia.plan);
  EXPECT_EQ(costs.bytes, traffic.total);
  EXPECT_EQ(costs.received, traffic.received);
  EXPECT_EQ(costs.floats, cost_of(lowered.ia.store, lowered.ia.plan).moved);
}

const std::vector<std::string> programs{
    "dims i=7 j=9 k=5\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n",
    "dims i=7 j=9 k=5\ninput X[i,j], Y[j,k] : f64\nZ[i,k] = max[j] abs(X[i,j] - Y[j,k])\nW[k] = mean[i] Z[i,k]\n",
    "dims i=6 j=8\ninput X[i,j]\nP[i,j] = softmax[j](X[i,j])\nQ[j,i] = P[i,j] + X[i,j]\n",
    "dims i=6 j=8 k=4\ninput X[i,j], Y[j,k], B[k]\nZ[i,k] = relu((sum[j] X[i,j] * Y[j,k]) + B[k])\n"
    "V[j,k] = sum[i] X[i,j] * Z[i,k]\nU[j,k] = Y[j,k] - V[j,k]\n",
    "dims b=4 h=6 d=2 e=12\ninput X[b,e]\nY[b,h,d] = view X[b,(h d)]\nZ[b,h] = sum[d] Y[b,h,d] * Y[b,h,d]\n"
    "V[b,(h d)] = view Y[b,h,d]\n",
    "dims i=10 j=12\ninput X[i,j] : bf16\nZ[i] = sum[j] X[i,j]\nM[i] = argmax[j] X[i,j]\n",
    "dims i=10 j=12\ninput X[i,j]\nZ[i,j] = where(i > j, X[i,j], 0)\nA[i,j] = Z[i,j] * i + j\n",
};

TEST(Lowering, ComputesWhatTheReferenceComputes) {
  for (std::uint64_t seed = 0; seed < 70; ++seed) {
    Random random(seed);
    const std::string& text = programs[seed % programs.size()];
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const EinGraph graph = einrel::graph_of(text);
    const LoweredPlan lowered = lower(graph, random_plan(random, graph));
    const TensorBindings inputs = counted_inputs(graph);
    const IaRun run = interpret(lowered.ia.store, lowered.ia.plan, inputs, {});
    EXPECT_EQ(run.received, bytes_of(lowered.ia.store, lowered.ia.plan).received);
    const std::vector<Tensor> want = evaluate_reference(graph, inputs, {});
    for (std::size_t i = 0; i < want.size(); ++i) {
      const Vertex& vertex = graph[graph.outputs[i]];
      const Tensor got = assemble(run.outputs.at(vertex.name), vertex.dtype, vertex.bound.size());
      const std::vector<double> expected = values_of(want[i]);
      const std::vector<double> found = values_of(got);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t e = 0; e < found.size(); ++e) EXPECT_NEAR(found[e], expected[e], 1e-5) << vertex.name;
    }
  }
}

TEST(Lowering, MovesExactlyTheBytesOfTheCostModel) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const std::string& text = programs[seed % programs.size()];
    const EinGraph graph = einrel::graph_of(text);
    expect_lowering_agrees(graph, random_plan(random, graph), "seed " + std::to_string(seed) + "\n" + text);
  }
}

}  // namespace
}  // namespace einrel::test
