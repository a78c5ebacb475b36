#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "einsum/reference.h"
#include "ia/interpret.h"
#include "ia/traffic.h"
#include "plan/cost/cost.h"
#include "plan/lower.h"
#include "support/compare.h"
#include "support/counted_inputs.h"

namespace einrel::test {

/// The bytes and floats that a plan counts are those that its lowering moves.
inline void expect_lowering_agrees(const EinGraph& graph, const Plan& plan, const std::string& text) {
  SCOPED_TRACE(text);
  const LoweredPlan lowered = lower(graph, plan);
  const PlanCosts costs = costs_of(graph, plan, {});
  const Traffic traffic = bytes_of(lowered.ia.store, lowered.ia.plan);
  EXPECT_EQ(costs.bytes, traffic.total);
  EXPECT_EQ(costs.received, traffic.received);
  EXPECT_EQ(costs.floats, cost_of(lowered.ia.store, lowered.ia.plan).moved);
}

/// A plan computes what the reference evaluator does, and moves the bytes of its lowering.
inline void expect_computes_reference(const EinGraph& graph, const Plan& plan) {
  const LoweredPlan lowered = lower(graph, plan);
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
    for (std::size_t e = 0; e < found.size(); ++e)
      EXPECT_NEAR(found[e], expected[e], 1e-5 * std::max(1.0, std::abs(expected[e]))) << vertex.name;
  }
}

}  // namespace einrel::test
