// Reductions that need more than they may are done for one range of a label after the other.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>

#include "exec/from_ia.h"
#include "plan/lower.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/random_plan.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

std::int64_t most_needed(const TaskGraph& graph) {
  std::int64_t most = 0;
  for (const Task& task : graph.tasks) {
    if (std::holds_alternative<CallKernel>(task.op)) most = std::max(most, bytes_needed(graph, task));
  }
  return most;
}

Plan one_part_of_each(const EinGraph& graph) {
  Plan plan{"", 1, {}};
  for (const Vertex& vertex : graph.vertices)
    plan.vertices.push_back(one_part_per_site(PartitionVector(label_extents(vertex).size(), 1)));
  return plan;
}

TEST(LabelRanges, KeepReductionsOfAnyKindWithinTheLimit) {
  for (const std::string statement : {
           "dims i=300 z=200\ninput X[i]\nS[] = sum[z] X[z+7]\n",
           "dims i=300 z=100\ninput X[i]\nS[] = max[z] X[2*z+1]\n",
           "dims i=300 z=300\ninput X[i]\nS[] = sum[z] X[299-z]\n",
           "dims i=300 z=299\ninput X[i]\nS[] = sum[z] X[z] * X[z+1]\n",
           "dims i=300 z=290\ninput X[i]\nS[] = sum[z] z * X[z+7]\n",
           "dims i=300 z=290\ninput X[i]\nS[] = mean[z] X[z+7]\n",
           "dims i=300 z=290\ninput X[i]\nS[] = logsumexp[z] X[z+7] / 300\n",
           "dims i=300 z=290\ninput X[i]\nS[] = any[z] X[z+7] > 100\n",
           "dims i=300 z=290\ninput X[i]\nS[] = sum[z] bf16(X[z+7])\n",
           "dims i=300 z=400 k=3\ninput X[i]\nS[k] = min[z] pad(X[z+k-50], 2)\n",
           "dims i=300 z=290\ninput X[i]\nS[] = argmax[z] X[z+7]\n",
           "dims i=30 j=30 k=9\ninput X[i,j]\nS[k] = argmin[i] abs(X[i,i] - 10 * k) + 1\n",
           "dims h=30 w=20 y=28 x=18 dy=3 dx=3\ninput X[h,w]\nS[dy,dx] = argmax[y,x] sqrt(0 - X[y+dy,x+dx])\n",
           "dims i=30 j=30\ninput X[i,j]\nS[] = sum[i] X[i,i]\n",
           "dims h=30 w=30 y=28 x=28 dy=3 dx=3\ninput X[h,w]\nS[dy,dx] = sum[y,x] X[y+dy,x+dx] * (y - x)\n",
           "dims n=2 h=12 w=12 y=10 x=10 dy=3 dx=3\ninput X[n,h,w], K[dy,dx]\n"
           "S[n] = sum[y,x,dy,dx] X[n,y+dy,x+dx] * K[dy,dx]\n",
       }) {
    SCOPED_TRACE(statement);
    const EinGraph graph = einrel::graph_of(statement);
    const LoweredPlan lowered = lower(graph, one_part_of_each(graph));
    const TensorBindings inputs = counted_inputs(graph);
    constexpr std::int64_t most = 400;
    const TaskGraph whole = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
    const TaskGraph ranges = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared, most);
    EXPECT_GT(most_needed(whole), most);
    EXPECT_LE(most_needed(ranges), most);
    expect_reference(graph, inputs, run_on(ranges, inputs, 1));
  }
}

TEST(LabelRanges, ComputeWhatTheReferenceComputes) {
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Random random(seed);
    const std::string& text = plannable_programs()[seed % plannable_programs().size()];
    const EinGraph graph = einrel::graph_of(text);
    const LoweredPlan lowered = lower(graph, random_plan(random, graph));
    const TensorBindings inputs = counted_inputs(graph);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
      const std::int64_t most = 8 << (seed % 6);
      expect_reference(graph, inputs, run_on(tasks_of(lowered.ia.store, lowered.ia.plan, memory, most), inputs, 1));
    }
  }
}

}  // namespace
}  // namespace einrel::test
