#include "run/run_request.h"

#include <gtest/gtest.h>

#include <vector>

#include "machine/machines.h"

namespace einrel::test {
namespace {

constexpr const char* chosen_machine = "a100-server";

Job job_of(int ranks) {
  Job job;
  job.ranks = ranks;
  job.is_started = true;
  return job;
}

TEST(RunRequest, AsksForAPlanWhereAnythingOfOneIsSaid) {
  EXPECT_FALSE(asks_for_plan({}, {}));
  EXPECT_FALSE(asks_for_plan({.threads = 7}, {}));
  EXPECT_TRUE(asks_for_plan({}, job_of(1)));
  const std::vector<RunRequest> asking = {
      {.planner = "single"},     {.sites = 1},   {.cost = CostKind::floats},    {.machine = "laptop"},
      {.memory = MemoryLimit{}}, {.batch = "b"}, {.given = PlanFile{"p.json"}}, {.spill = "/tmp"},
      {.compared = {"sqrt"}}};
  for (const RunRequest& request : asking) EXPECT_TRUE(asks_for_plan(request, {}));
}

TEST(RunRequest, AJobHasAsManySitesAsRanks) {
  EXPECT_EQ(plan_request(RunRequest{}, job_of(3)).sites, 3);
  EXPECT_EQ(plan_request(RunRequest{.sites = 2}, Job{}).sites, 2);
}

TEST(RunRequest, AMachineThatIsChosenLimitsTheMemoryOfRanksAlone) {
  const RunRequest request{.machine = chosen_machine};
  EXPECT_EQ(plan_request(request, job_of(2)).memory, machine_of(chosen_machine, 2).memory);
  EXPECT_NE(plan_request(request, job_of(2)).memory, std::nullopt);
  EXPECT_EQ(plan_request(request, Job{}).memory, std::nullopt);
  EXPECT_EQ(plan_request(RunRequest{}, job_of(2)).memory, std::nullopt);
}

TEST(RunRequest, WhatIsSaidOfMemoryComesBeforeTheMachine) {
  RunRequest request{.machine = chosen_machine, .memory = MemoryLimit{1 << 30}};
  EXPECT_EQ(plan_request(request, job_of(2)).memory, 1 << 30);
  EXPECT_EQ(plan_request(request, Job{}).memory, 1 << 30);
  request.memory = MemoryLimit{};  // --memory unlimited
  EXPECT_EQ(plan_request(request, job_of(2)).memory, std::nullopt);
}

TEST(RunRequest, KnowsThePlannersOfRelations) {
  EXPECT_TRUE(plans_relations("table-1"));
  EXPECT_TRUE(plans_relations("ia-rules"));
  EXPECT_FALSE(plans_relations("eindecomp"));
}

}  // namespace
}  // namespace einrel::test
