#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "exec/tasks/from_ia.h"
#include "ia/interpret.h"
#include "ia/traffic.h"
#include "plan/cost/cost.h"
#include "plan/lower.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_plan.h"
#include "support/run_tasks.h"
#include "support/wide_program.h"

/// A vertex is one operation of a plan, however many tensors it reads.
namespace einrel::test {
namespace {

void expect_near(const Tensor& got, const Tensor& want) {
  const std::vector<double> expected = values_of(want);
  const std::vector<double> found = values_of(got);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t e = 0; e < found.size(); ++e)
    EXPECT_NEAR(found[e], expected[e], 1e-5 * std::max(1.0, std::abs(expected[e])));
}

TEST(WideVertices, AreOneJoinThatComputesWhatTheReferenceDoesAndMovesWhatTheModelSays) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    const std::string text = wide_program(random);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const EinGraph graph = einrel::graph_of(text);
    const Plan plan = random_plan(random, graph);
    const LoweredPlan lowered = lower(graph, plan);
    const IaStore& store = lowered.ia.store;
    int joins = 0;
    for (const IaId id : nodes_of(store, lowered.ia.plan))
      joins += std::holds_alternative<LocalJoin>(store[id].op) ? 1 : 0;
    EXPECT_EQ(joins, 1);
    const TensorBindings inputs = counted_inputs(graph);
    const Tensor want = evaluate_reference(graph, inputs, {}).front();
    const IaRun run = interpret(store, lowered.ia.plan, inputs, {});
    expect_near(assemble(run.outputs.at("Z"), want.dtype(), want.rank()), want);
    EXPECT_EQ(run.received, bytes_of(store, lowered.ia.plan).received);
    EXPECT_EQ(run.received, costs_of(graph, plan, {}).received);
    for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
      const TaskGraph tasks = tasks_of(store, lowered.ia.plan, memory);
      Outputs outputs = output_tensors(tasks);
      run_once(tasks, bindings_of(tasks, inputs, outputs), SerialExecutor(1));
      expect_near(outputs.at("Z"), want);
    }
  }
}

}  // namespace
}  // namespace einrel::test
