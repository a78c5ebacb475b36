#include <einrel/planning.h>

#include "api/border.h"
#include "api/plan_options.h"
#include "api/ranks_data.h"
#include "plan/planners/planner.h"
#include "run/keep_calibrated.h"

namespace einrel::api {

std::vector<PlannerInfo> planners() {
  return at_border([] {
    std::vector<PlannerInfo> planners;
    for (const Planner& planner : all_planners()) planners.push_back({planner.name, planner.summary});
    return planners;
  });
}

std::string calibrate(std::optional<std::size_t> threads, const std::optional<Ranks>& ranks) {
  return at_border([&] {
    const Job& job = RanksAccess::job(ranks);
    const std::size_t own = threads_of(threads, job);
    std::string text;
    on_all_ranks(
        job,
        [] {
          return std::vector<Fact>{{"another computation: to calibrate", ""}};
        },
        [&] { text = from_rank_0(job, keep_calibrated(own, job)); });
    return text;
  });
}

}  // namespace einrel::api
