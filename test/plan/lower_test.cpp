#include "plan/lower.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "einsum/reference.h"
#include "ia/interpret.h"
#include "ia/traffic.h"
#include "plan/planner.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/random_plan.h"

namespace einrel::test {
namespace {

void expect_lowering_agrees(const EinGraph& graph, const Plan& plan, const std::string& text) {
  SCOPED_TRACE(text);
  const LoweredPlan lowered = lower(graph, plan);
  const PlanCosts costs = costs_of(graph, plan, {});
  const Traffic traffic = bytes_of(lowered.ia.store, lowered.ia.plan);
  EXPECT_EQ(costs.bytes, traffic.total);
  EXPECT_EQ(costs.received, traffic.received);
  EXPECT_EQ(costs.floats, cost_of(lowered.ia.store, lowered.ia.plan).moved);
}

TEST(Lowering, ComputesWhatTheReferenceComputes) {
  for (std::uint64_t seed = 0; seed < 70; ++seed) {
    Random random(seed);
    const std::string& text = plannable_programs()[seed % plannable_programs().size()];
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
    const std::string& text = plannable_programs()[seed % plannable_programs().size()];
    const EinGraph graph = einrel::graph_of(text);
    expect_lowering_agrees(graph, random_plan(random, graph), "seed " + std::to_string(seed) + "\n" + text);
  }
}

}  // namespace
}  // namespace einrel::test
