#include "run/sweep.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/error.h"
#include "run/plans_on_ranks.h"

namespace einrel {
namespace {

/// Plans that are told apart by less are equal for whoever pays for sites.
constexpr double about_as_fast = 1.05;

/// The most sites that are asked for.
std::int64_t largest_asked(const SweepRequest& wanted) {
  std::int64_t most = 0;
  for (const std::optional<std::string>& machine : wanted.machines) {
    for (const std::optional<std::int64_t>& sites : wanted.sites) {
      RunRequest one = wanted.request;
      one.machine = machine;
      one.sites = sites;
      most = std::max(most, plan_request(one).sites);
    }
  }
  return most;
}

/// A program with its placements, where that is another one; or why it cannot be on so few sites.
std::variant<std::optional<Compiled>, std::string> placed(const Compiled& compiled, const RunRequest& request,
                                                          std::int64_t sites, std::int64_t most) {
  try {
    return planned_with_inputs(compiled, request, sites, false);
  } catch (const UserError& error) {
    if (sites == most) throw;  // it cannot be on any
    const std::string text = error.what();
    return text.substr(0, text.find('\n'));
  }
}

/// Whether it is for want of memory alone that a planner has no plan.
bool has_plan(const Compiled& compiled, const std::string& planner, PlanRequest request) {
  request.memory.reset();
  return std::holds_alternative<PlanReport>(try_plan(compiled, planner, request));
}

}  // namespace

const std::string& SweptPlan::planner() const {
  const auto* const report = std::get_if<PlanReport>(&plan);
  return report != nullptr ? report->plan.planner : std::get<PlanRefusal>(plan).planner;
}

std::optional<double> SweptPlan::dollars() const {
  const auto* const report = std::get_if<PlanReport>(&plan);
  if (report == nullptr || dollars_per_hour == 0) return std::nullopt;
  constexpr double seconds_per_hour = 3600;
  return report->costs.seconds_of_later_steps() / seconds_per_hour * dollars_per_hour;
}

std::vector<SweptPlan> sweep(const Compiled& compiled, const SweepRequest& wanted, const SourceText& source) {
  std::vector<SweptPlan> plans;
  const std::int64_t most = largest_asked(wanted);
  for (const std::optional<std::string>& machine : wanted.machines) {
    for (const std::optional<std::int64_t>& sites : wanted.sites) {
      RunRequest one = wanted.request;
      one.machine = machine;
      one.sites = sites;
      const PlanRequest request = plan_request(one);
      const double price = request.machine.dollars_per_hour * static_cast<double>(request.sites);
      const auto refuse = [&](PlanRefusal refusal) {
        plans.push_back({request.machine.name, request.sites, price, std::move(refusal)});
      };
      const auto tried = placed(compiled, one, request.sites, most);
      if (const auto* const reason = std::get_if<std::string>(&tried)) {
        for (const std::string& planner : wanted.planners) refuse({planner, *reason});
        continue;
      }
      const auto& planned = std::get<std::optional<Compiled>>(tried);
      const TasksWanted tasks{MakesTasks::of_few_chunks, request.memory.has_value()};
      auto [reports, refused] =
          plans_side_by_side(planned ? *planned : compiled, std::nullopt, wanted.planners, request, tasks, source)
              .comparison;
      for (PlanReport& report : reports)
        plans.push_back({request.machine.name, request.sites, price, std::move(report)});
      for (PlanRefusal& refusal : refused) {
        if (request.sites == 1 && request.memory && has_plan(planned ? *planned : compiled, refusal.planner, request))
          refusal.reason += "; what does not fit on one site alone goes to the disk: explain --sites 1 has that plan";
        refuse(std::move(refusal));
      }
    }
  }
  return plans;
}

std::vector<EnoughSites> enough_sites(const std::vector<SweptPlan>& plans) {
  std::vector<EnoughSites> enough;
  for (const SweptPlan& first : plans) {
    const bool is_known = std::any_of(enough.begin(), enough.end(), [&](const EnoughSites& known) {
      return known.machine == first.machine && known.planner == first.planner();
    });
    if (is_known) continue;
    std::vector<std::pair<std::int64_t, double>> seconds;  // by sites
    for (const SweptPlan& plan : plans) {
      const auto* const report = std::get_if<PlanReport>(&plan.plan);
      if (report != nullptr && plan.machine == first.machine && plan.planner() == first.planner())
        seconds.emplace_back(plan.sites, report->costs.seconds_of_later_steps());
    }
    if (seconds.empty()) continue;
    std::sort(seconds.begin(), seconds.end());
    const double least = std::min_element(seconds.begin(), seconds.end(), [](const auto& a, const auto& b) {
                           return a.second < b.second;
                         })->second;
    const auto fewest = std::find_if(seconds.begin(), seconds.end(),
                                     [&](const auto& each) { return each.second <= about_as_fast * least; });
    enough.push_back({first.machine, first.planner(), fewest->first, seconds.back().first});
  }
  std::erase_if(enough, [](const EnoughSites& each) { return each.sites == each.asked; });
  return enough;
}

}  // namespace einrel
