// What a process takes beside arrays, as --memory counts it.

#include "run/bookkeeping.h"

#include <gtest/gtest.h>

#include <string>

#include "run/compare_plans.h"
#include "support/program.h"

namespace einrel::test {
namespace {

constexpr int count = 2000;

/// All results are alive until the last statement.
std::string many_results() {
  std::string text = "dims i=4\ninput X[i]\n";
  for (int k = 0; k < count; ++k) text += "T" + std::to_string(k) + "[i] = exp(X[i] * " + std::to_string(k) + ")\n";
  for (int k = 0; k < count; ++k) text += "U" + std::to_string(k) + "[] = sum[i] T" + std::to_string(k) + "[i]\n";
  return text;
}

PlannedTasks tasks_on(const Compiled& compiled, int sites) {
  Job job;
  job.ranks = sites;
  job.is_started = sites > 1;
  const PlanReport report = plan_with(compiled, "single", {sites, {}, CostKind::bytes, {}, {}});
  return tasks_of(compiled, report.plan, job);
}

TEST(Bookkeeping, CountsTheArraysOfTheSiteThatHasMost) {
  const Compiled compiled = compile("test.ein", graph_of(many_results()));
  const PlannedTasks here = tasks_on(compiled, 1);
  const PlannedTasks apart = tasks_on(compiled, 4);  // three sites have nothing
  ASSERT_EQ(apart.graph.memory, SiteMemory::apart);
  EXPECT_EQ(bookkeeping_by_starpu(apart).running, bookkeeping_by_starpu(here).running);
}

TEST(Bookkeeping, CountsLessOfArraysWhereTasksRunInOrder) {
  const PlannedTasks tasks = tasks_on(compile("test.ein", graph_of(many_results())), 1);
  const Bookkeeping in_order = bookkeeping_in_order(tasks);
  const Bookkeeping by_starpu = bookkeeping_by_starpu(tasks);
  EXPECT_EQ(in_order.planning, by_starpu.planning);
  EXPECT_GT(by_starpu.running - in_order.running, count * 4000);
}

TEST(Bookkeeping, LeavesNothingOfALimitThatItTakes) {
  EXPECT_EQ(left_for_arrays(10, {3, 4}), 6);
  EXPECT_EQ(left_for_arrays(10, {3, 10}), 0);
  EXPECT_EQ(left_for_arrays(10, {3, 12}), 0);
  EXPECT_EQ(left_for_arrays(10, {11, 4}), 0);
  EXPECT_EQ(most_of({11, 4}), 11);
  EXPECT_EQ(most_of({3, 4}), 4);
}

}  // namespace
}  // namespace einrel::test
