#include "report/trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "run/compare_plans.h"
#include "run/session.h"
#include "support/program.h"

namespace einrel::test {
namespace {

/// Rank, begin and end in seconds, the Send.
using ExpectedWait = std::tuple<int, double, double, std::size_t>;

/// A run of one thread on each rank in which every task takes a second and every message ten, and the waits that there
/// are then.
std::vector<ExpectedWait> run_slow_network(const TaskGraph& graph, PlanRunReport& run) {
  std::vector<double> clock(static_cast<std::size_t>(graph.sites), 100);
  std::vector<std::pair<double, std::size_t>> made(graph.arrays.size());  // when, by which task
  std::vector<ExpectedWait> waits;
  run.spans.resize(clock.size());
  run.messages.resize(clock.size());
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    const auto rank = static_cast<std::size_t>(site_of(graph, task));
    if (std::holds_alternative<Send>(task.op)) {
      const ArrayId sent = task.reads.front();
      made[task.makes.front().index] = {made[sent.index].first + 10, t};
      for (const std::size_t side : {static_cast<std::size_t>(graph[sent].site), rank})
        run.messages[side].push_back({t, 100, made[task.makes.front().index].first});
      continue;
    }
    std::pair<double, std::size_t> last{clock[rank], t};
    for (const ArrayId read : task.reads) last = std::max(last, made[read.index]);
    if (last.first > clock[rank])
      waits.emplace_back(static_cast<int>(rank), clock[rank] - 100, last.first - 100, last.second);
    run.spans[rank].push_back({t, last.first, 1, 0, 0});
    clock[rank] = last.first + 1;
    for (const ArrayId array : task.makes) made[array.index] = {clock[rank], t};
  }
  return waits;
}

TEST(Trace, HasEveryWaitForAMessageOfASlowNetwork) {
  const Compiled program =
      compile("p.ein", einrel::graph_of("dims i=8 j=8\ninput A[i,j], B[i,j]\nC[i,j] = sum[k] A[i,k] * B[k,j]\n"
                                        "D[i,j] = sum[k] C[k,i] * C[k,j]\n"));
  PlanRequest request;
  request.sites = 2;
  Job job;
  job.ranks = 2;
  const PlannedTasks tasks = tasks_of(program, plan_with(program, "sqrt", request).plan, job);
  PlanRunReport run;
  std::vector<ExpectedWait> want = run_slow_network(tasks.graph, run);
  ASSERT_FALSE(want.empty());
  std::vector<ExpectedWait> got;
  const auto trace = nlohmann::json::parse(trace_json(tasks, run));
  for (const auto& event : trace["traceEvents"]) {
    if (event.value("cat", "") != "wait") continue;
    const double begin = event["ts"].get<double>() / 1e6;
    got.emplace_back(event["pid"], std::round(begin), std::round(begin + event["dur"].get<double>() / 1e6),
                     event["args"]["task"]);
  }
  std::sort(want.begin(), want.end());
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, want);
}

}  // namespace
}  // namespace einrel::test
