// Reductions that need more than they may are done for one range of a label after the other.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "exec/tasks/cut_parts_out.h"
#include "exec/tasks/from_ia.h"
#include "plan/lower.h"
#include "plan/refine/numbering.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/random_plan.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

/// By one task on one site.
std::int64_t most_needed(const TaskGraph& graph) {
  std::int64_t most = 0;
  for (const Task& task : graph.tasks) {
    if (!std::holds_alternative<Send>(task.op)) most = std::max(most, bytes_needed(graph, task));
  }
  return most;
}

std::int64_t kernel_calls(const TaskGraph& graph) {
  return std::count_if(graph.tasks.begin(), graph.tasks.end(),
                       [](const Task& task) { return std::holds_alternative<CallKernel>(task.op); });
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
           "dims i=300 z=800\ninput X[i]\nS[] = sum[z] pad(X[z], 0)\n",
           "dims i=300 z=800\ninput X[i]\nS[] = max[z] pad(X[z-500], -9)\n",
           "dims i=300 z=800\ninput X[i]\nS[] = sum[z] pad(X[700-z], 1)\n",
           "dims i=300 z=300\ninput X[i]\nS[] = sum[z] pad(X[3*z-100], 1)\n",
           "dims i=300 z=300\ninput X[i]\nS[] = argmin[z] pad(X[3*z-700], 0.5)\n",
           "dims i=300 z=300\ninput X[i]\nS[] = mean[z] pad(X[800-3*z], 2)\n",
           "dims i=30 j=30 z=90\ninput X[i,j]\nS[] = sum[z] pad(X[z-2,2*z-100], 1) + 1\n",
           "dims i=300 z=800\ninput X[i], Y[i]\nS[] = sum[z] pad(X[z], 1) * pad(Y[z-500], 2)\n",
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
    EXPECT_GE(kernel_calls(ranges), 2 * kernel_calls(whole));
    expect_reference(graph, inputs, run_on(ranges, inputs, 1));
  }
}

/// Cuts what the second vertex computes into 8 parts, along its first label, on so many sites.
LoweredPlan with_second_in_parts(const EinGraph& graph, std::int64_t sites) {
  Plan plan = one_part_of_each(graph);
  plan.sites = sites;
  plan.vertices[1].grid.front() = sites;
  plan.vertices[1].parts.front() = 8;
  number_sites(graph, plan);
  return lower(graph, plan);
}

TEST(LabelRanges, OfChunksKeepWhatIsCopiedWithinTheLimit) {
  for (const std::string statement : {
           "dims i=600 z=590\ninput X[i]\nY[i] = X[i] * 2\nS[] = sum[z] Y[z+7]\n",
           "dims i=600 z=590\ninput X[i]\nY[i] = X[i] * 2\nS[] = argmax[z] Y[z+7]\n",
           "dims i=600 z=1600\ninput X[i]\nY[i] = X[i] * 2\nS[] = sum[z] pad(Y[z], 3)\n",
           "dims i=600 z=600\ninput X[i]\nY[i] = X[i] * 2\nS[] = sum[z] pad(Y[3*z-1400], 3)\n",
           "dims i=600 z=590\ninput X[i]\nY[i] = X[i] * 2\nS[] = sum[z] Y[z+7] * Y[z+1]\n",
           "dims i=40 j=15 z=38\ninput X[i,j]\nY[i,j] = X[i,j] * 2\nS[] = sum[z,j] Y[z+2,j]\n",
       }) {
    const EinGraph graph = einrel::graph_of(statement);
    const TensorBindings inputs = counted_inputs(graph);
    constexpr std::int64_t most = 900;
    for (const std::int64_t sites : {1, 2}) {
      const LoweredPlan lowered = with_second_in_parts(graph, sites);
      for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
        SCOPED_TRACE(std::to_string(sites) + " sites of " + statement);
        const TaskGraph whole = tasks_of(lowered.ia.store, lowered.ia.plan, memory);
        TaskGraph ranges = tasks_of(lowered.ia.store, lowered.ia.plan, memory, most);
        cut_parts_out(ranges, most);
        EXPECT_GT(most_needed(whole), most);
        EXPECT_LE(most_needed(ranges), most);
        EXPECT_GT(kernel_calls(ranges), kernel_calls(whole));
        expect_reference(graph, inputs, run_on(ranges, inputs, 1));
      }
    }
  }
}

TEST(LabelRanges, OfInputsThatAreSentKeepWhatIsCopiedWithinTheLimit) {
  const EinGraph graph = einrel::graph_of("dims i=600 z=590\ninput X[i], W[i]\nS[] = sum[z] X[z+7] * W[z+1]\n");
  Plan plan = one_part_of_each(graph);
  plan.sites = 2;
  plan.vertices[2].copies = {{2, 1}};  // the inputs lie on site 0
  const LoweredPlan lowered = lower(graph, plan);
  constexpr std::int64_t most = 3600;  // one of them, and half of it, and less than both
  const TaskGraph whole = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::apart);
  const TaskGraph ranges = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::apart, most);
  const auto is_send = [](const Task& task) { return std::holds_alternative<Send>(task.op); };
  ASSERT_EQ(std::count_if(ranges.tasks.begin(), ranges.tasks.end(), is_send), 2);
  EXPECT_GT(most_needed(whole), most);
  EXPECT_LE(most_needed(ranges), most);
  const TensorBindings inputs = counted_inputs(graph);
  expect_reference(graph, inputs, run_on(ranges, inputs, 1));
}

/// 5000 of them; of some seeds infinite ones and NaN among them.
Tensor rounded_values(std::uint64_t seed) {
  Random random(seed);
  std::vector<double> values(5000);
  for (double& value : values) value = seed % 3 == 0 ? random_number(random, DType::f32, true) : random.real() * 4 - 2;
  return tensor_of(DType::f32, {Extent(5000)}, values);
}

/// Both passes of an argmax must compute the same bits for a value, wherever it stands in whichever range; else the
/// second would find none that is equal to the extreme.
TEST(LabelRanges, FindThePositionsOfExtremesOfRoundedValues) {
  for (const std::string value : {
           "X[z+7]",
           "exp(X[z+7] * 0.3) * X[z+2] - 0.1",
           "tanh(X[z+7]) / (1.1 + X[z+2] * X[z+2])",
           "sqrt(abs(X[z+7] * 3.3)) + X[z+2] / 7 - log(abs(X[z+1]) + 0.1)",
           "bf16(X[z+7] * 1.7) * X[z+2] + 0.3",
           "where(X[z+7] > 0, sigmoid(X[z+2]), X[z+2] * X[z+1] * 0.7) * z",
       }) {
    for (const std::string reducer : {"argmax", "argmin"}) {
      const std::string text = "dims i=5000 z=4990\ninput X[i]\nS[] = " + reducer + "[z] (" + value + ")\n";
      SCOPED_TRACE(text);
      const EinGraph graph = einrel::graph_of(text);
      const LoweredPlan lowered = lower(graph, one_part_of_each(graph));
      const TaskGraph whole = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        const TensorBindings inputs{{"X", rounded_values(seed)}};
        const auto position = [&](const TaskGraph& tasks) { return integers_of(run_on(tasks, inputs, 2).at("S")); };
        for (const std::int64_t most : {300, 1111, 7000}) {
          const TaskGraph ranges = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared, most);
          EXPECT_GE(kernel_calls(ranges), 4);
          EXPECT_EQ(position(ranges), position(whole));
        }
      }
    }
  }
}

/// Each reduces through a window, so that no plan can cut what it reduces.
const std::vector<std::string>& programs_of_windows() {
  static const std::vector<std::string> programs{
      "dims i=12 z=10 k=3\ninput X[i], Y[z]\nA[i] = X[i] + 1\nB[k] = sum[z] A[z+k] * Y[z]\nC[] = max[z] A[z+1] * "
      "Y[z]\n",
      "dims i=12 z=30\ninput X[i]\nA[i] = X[i] * 2\nB[] = sum[z] pad(A[z-15], 1)\nC[] = argmin[z] pad(X[25-z], 9)\n",
      "dims i=9 j=7 z=8 k=2\ninput X[i,j]\nA[j,k] = mean[z] X[z+k,j]\nB[j] = argmax[z] (X[z+0,j] - X[z+1,j])\n",
      "dims h=8 w=7 y=6 x=5 dy=3 dx=3\ninput X[h,w] : f64\nA[h,w] = X[h,w] + h\n"
      "B[dy,dx] = logsumexp[y,x] A[y+dy,x+dx]\nC[] = sum[y] A[y+2,y+1] * y\n",
  };
  return programs;
}

TEST(LabelRanges, OfWindowsComputeWhatTheReferenceComputes) {
  int split = 0;
  for (std::uint64_t seed = 0; seed < 80; ++seed) {
    Random random(seed);
    const std::string& text = programs_of_windows()[seed % programs_of_windows().size()];
    const EinGraph graph = einrel::graph_of(text);
    const LoweredPlan lowered = lower(graph, random_plan(random, graph));
    const TensorBindings inputs = counted_inputs(graph);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
      const std::int64_t most = 16 << (seed % 4);
      const TaskGraph whole = tasks_of(lowered.ia.store, lowered.ia.plan, memory);
      TaskGraph ranges = tasks_of(lowered.ia.store, lowered.ia.plan, memory, most);
      split += kernel_calls(ranges) > kernel_calls(whole) ? 1 : 0;
      cut_parts_out(ranges, most);
      expect_reference(graph, inputs, run_on(ranges, inputs, 1));
    }
  }
  EXPECT_GT(split, 100);
}

TEST(LabelRanges, ComputeWhatTheReferenceComputes) {
  int split = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    Random random(seed);
    const std::string& text = plannable_programs()[seed % plannable_programs().size()];
    const EinGraph graph = einrel::graph_of(text);
    const LoweredPlan lowered = lower(graph, random_plan(random, graph));
    const TensorBindings inputs = counted_inputs(graph);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
      const std::int64_t most = 8 << (seed % 6);
      const TaskGraph ranges = tasks_of(lowered.ia.store, lowered.ia.plan, memory, most);
      split += kernel_calls(ranges) > kernel_calls(tasks_of(lowered.ia.store, lowered.ia.plan, memory)) ? 1 : 0;
      expect_reference(graph, inputs, run_on(ranges, inputs, 1));
    }
  }
  EXPECT_GT(split, 10);  // most of these programs reduce little
}

}  // namespace
}  // namespace einrel::test
