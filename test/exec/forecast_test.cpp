// What is forecast of tasks before they run.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "exec/tasks/timeline.h"
#include "machine/seconds.h"
#include "run/compare_plans.h"
#include "run/forecast_memory.h"
#include "run/forecast_seconds.h"
#include "support/program.h"

namespace einrel::test {
namespace {

Job job_of(std::int64_t sites) {
  Job job;
  job.ranks = static_cast<int>(sites);
  job.is_started = sites > 1;
  return job;
}

TEST(Forecast, OfMemoryCountsOfInputsThatAreNotThereWhatTasksRead) {
  const Compiled compiled =
      compile("test.ein", einrel::graph_of("dims i=100\ninput X[i], Y[i]\nZ[i] = X[i] + Y[99-i]\n"));
  const PlannedTasks tasks = whole_tasks(compiled);
  EXPECT_EQ(forecast_memory(tasks).bytes, 1200);
  EXPECT_EQ(forecast_memory(tasks, {}, [](const auto&) { return true; }).bytes, 400);
  EXPECT_EQ(forecast_memory(tasks, {}, [](const auto& input) { return input.name == "Y"; }).bytes, 800);
}

TEST(Forecast, OfMemoryHoldsStatesFromStepToStep) {
  const Compiled compiled = compile("test.ein", einrel::graph_of("dims i=100\nstate S[i] = 0\nstate T[i] = 1\n"
                                                                 "next S[i] = S[99-i] + 1\nnext T[i] = T[99-i] * 2\n"));
  const PlannedTasks tasks = whole_tasks(compiled);
  // Both, and their next values: none is gone before the step is over.
  EXPECT_EQ(forecast_memory(tasks, {}, [](const auto&) { return false; }).bytes, 1600);
}

/// Of which a task takes a second for each thousand bytes that it makes.
std::vector<double> second_per_thousand_bytes(const TaskGraph& graph) {
  std::vector<double> seconds;
  for (const Task& task : graph.tasks) {
    const bool computes = std::holds_alternative<CallKernel>(task.op);
    seconds.push_back(computes ? static_cast<double>(bytes_made(graph, task)) / 1000 : 0);
  }
  return seconds;
}

/// A, of 4000 bytes, and B and C of it, as many, which have nothing to do with each other.
PlannedTasks fork_on(std::int64_t sites, const std::string& of_a, const PartitionVector& grid) {
  const std::string text = "dims i=1000 k=1000\ninput X[i], W[i,k]\nA[i] = exp(X[i])\n" + of_a + "output B, C\n";
  const Compiled compiled = compile("test.ein", einrel::graph_of(text));
  Plan plan{"test", sites, {}};
  for (const PartitionVector& inputs : {PartitionVector{sites}, PartitionVector{1, sites}, PartitionVector{sites}})
    plan.vertices.push_back(one_part_per_site(inputs));
  for (int v = 0; v < 2; ++v) plan.vertices.push_back(one_part_per_site(grid));
  return tasks_of(compiled, plan, job_of(sites));
}

TEST(Forecast, OfSecondsLetsTasksRunAsExecutorsDo) {
  const PlannedTasks here = fork_on(1, "B[i] = A[999-i]\nC[i] = A[999-i] * W[i,0]\n", {1});
  const std::vector<double> seconds = second_per_thousand_bytes(here.graph);
  EXPECT_DOUBLE_EQ(seconds_in_order(seconds), 12);
  EXPECT_NEAR(seconds_side_by_side(here.graph, seconds, 1), 12, 1e-3);
  EXPECT_NEAR(seconds_side_by_side(here.graph, seconds, 2), 8, 1e-3);
}

TEST(Forecast, OfSecondsWaitsForWhatComesFromOtherSites) {
  Machine machine;
  machine.network_latency = 3;
  machine.network_bandwidth = 1000;
  // Each site has half of A and computes half of B and C, for which it receives the other half of A.
  const PlannedTasks apart = fork_on(2, "B[k] = sum[i] A[i] * W[i,k]\nC[k] = max[i] A[i] * W[i,k]\n", {2, 1});
  const std::vector<double> seconds = second_per_thousand_bytes(apart.graph);
  EXPECT_NEAR(seconds_on_sites(apart.graph, seconds, machine), 2 + (3 + 2) + 2 + 2, 1e-9);
}

TEST(Forecast, OfSecondsScalesEachKernelAsItWasMeasured) {
  const Compiled compiled = compile(
      "test.ein", einrel::graph_of("dims i=64 j=64 k=64\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n"));
  const PlannedTasks tasks = whole_tasks(compiled);
  const auto seconds_on = [&](const Machine& machine, std::size_t threads = 1) {
    SecondsForecast forecast(tasks, machine, threads);
    kernel_calls(compiled.graph, tasks, {},
                 [&](std::size_t task, const KernelCall& call) { forecast.add(task, call); });
    return forecast.seconds(false);
  };
  Machine machine;
  const double once = seconds_on(machine);
  const KernelCall call = kernel_calls(compiled.graph, tasks).back().front();
  EXPECT_GT(call.seconds, 0);
  machine.kernel_times[call.kernel] = 3;
  EXPECT_DOUBLE_EQ(seconds_on(machine) - once, 2 * call.seconds);
  constexpr std::size_t threads = 8;
  const double slow = seconds_on(machine, threads);
  machine.kernel_times.clear();
  EXPECT_DOUBLE_EQ(slow - seconds_on(machine, threads), 2 * seconds_on_threads(call.seconds, threads));
}

}  // namespace
}  // namespace einrel::test
