#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "einsum/check/check.h"
#include "exec/executors/starpu/session.h"
#include "run/choose_plan.h"
#include "run/session.h"
#include "support/barrier.h"
#include "support/program.h"

namespace einrel::test {
namespace {

/// The threads that the tasks of a run were on.
std::set<int> threads_of(const PlanRunReport& report) {
  std::set<int> threads;
  for (const TaskSpan& span : report.spans.at(0)) threads.insert(span.thread);
  return threads;
}

void fill_with_ones(const std::vector<std::int64_t>&, const Shape& bound, std::byte* to) {
  const float one = 1;
  for (std::int64_t i = 0; i < element_count(bound); ++i) std::memcpy(to + i * 4, &one, 4);
}

/// A plan of as many parts for every vertex, cut along its first label.
PlannedTasks cut_in_parts(const std::string& text, std::int64_t parts) {
  const Compiled compiled = compile("p.ein", graph_of(text));
  Plan plan{"by hand", parts, {}};
  for (const Vertex& vertex : compiled.graph.vertices) {
    PartitionVector grid(label_names(vertex).size(), 1);
    grid.front() = parts;
    plan.vertices.push_back(one_part_per_site(grid));
  }
  return tasks_of(compiled, plan, {});
}

PlanRunReport run_on_ones(const PlannedTasks& tasks, std::size_t threads) {
  std::map<std::string, Tensor> outputs = output_tensors(tasks.graph);
  InputSources sources;
  for (const StoredRelation& input : tasks.graph.inputs) sources[input.name] = fill_with_ones;
  Session session(tasks, {threads, {}}, {});
  return session.step(sources, writers_to(outputs, tasks.graph), {});
}

TEST(Session, KeepsAsManyThreadsAsItIsGiven) {
  constexpr int count = 8;
  const PlannedTasks tasks = cut_in_parts("dims i=4194304\ninput A[i]\nZ[i] = A[i] * 2\n", count);
  Session session(tasks, {count, {}}, {});
  for (int step = 0; step < 3; ++step) {
    Barrier barrier(count);
    const InputMaker maker = [&](const std::vector<std::int64_t>& begin, const Shape& bound, std::byte* to) {
      barrier.arrive();
      fill_with_ones(begin, bound, to);
    };
    std::map<std::string, Tensor> outputs = output_tensors(tasks.graph);
    const PlanRunReport report = session.step({{"A", maker}}, writers_to(outputs, tasks.graph), {});
    EXPECT_TRUE(barrier.all_came());
    EXPECT_EQ(threads_of(report).size(), static_cast<std::size_t>(count));
    EXPECT_EQ(report.tasks, tasks.graph.tasks.size());
    const Tensor& result = outputs.at("Z");
    for (std::int64_t i = 0; i < result.count(); i += 1000) EXPECT_EQ(result.load<float>(i), 2);
  }
}

TEST(Session, GivesEachTaskAllThreadsWhereFewCouldRunAtOnce) {
  const std::string chain =
      "dims i=600 j=600\ninput A[i,j]\nB[i,j] = sum[k] A[i,k] * A[k,j]\nC[i,j] = sum[k] B[i,k] * A[k,j]\n";
  EXPECT_EQ(threads_of(run_on_ones(cut_in_parts(chain, 2), 8)), std::set<int>{0});
}

TEST(Session, RunsWithNoThreadsBesideItsOwnWhatIsSoonDone) {
  EXPECT_EQ(threads_of(run_on_ones(cut_in_parts("dims i=64\ninput A[i]\nZ[i] = A[i] * 2\n", 4), 4)), std::set<int>{0});
}

TEST(ChoosePlan, TakesNoMoreThreadsUnderALimitThanStarpuHas) {
  const SourceText source("p.ein",
                          "dims i=6000 j=6000\ninput A[i,j]\nB[i,j] = sum[k] A[i,k] * A[k,j]\n"
                          "C[i,j] = sum[k] B[i,k] * A[k,j]\n");
  const Compiled compiled = compile("p.ein", *parse_and_check(source, {}).graph);
  RunRequest request;
  request.planner = "eindecomp";
  request.threads = 16;
  EXPECT_EQ(choose(compiled, request, source, {}).threads, 16U);
  request.memory = MemoryLimit{std::int64_t{200} << 20};
  const Chosen chosen = choose(compiled, request, source, {});
  EXPECT_TRUE(std::holds_alternative<Spilling>(chosen.memory));
  EXPECT_LE(chosen.threads, most_session_threads());
}

}  // namespace
}  // namespace einrel::test
