#include "run/plans_on_ranks.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <variant>

#include "exec/tasks/read_late.h"
#include "run/forecast_memory.h"
#include "run/plan_memory.h"

namespace einrel {
namespace {

struct PlanOnRanks {
  PlanReport report;
  std::optional<PlannedTasks> tasks;
};
using TriedOnRanks = std::variant<PlanOnRanks, PlanRefusal>;

/// Raises the peak of a plan to what its tasks hold, of which it is given back.
std::optional<PlannedTasks> raised_to_tasks(const Compiled& compiled, TasksWanted wanted, PlanReport& report) {
  if (wanted.of == MakesTasks::never) return std::nullopt;
  if (wanted.of == MakesTasks::of_few_chunks && !has_few_chunks(report.plan)) return std::nullopt;
  Job job;
  job.ranks = static_cast<int>(report.plan.sites);
  job.is_started = job.ranks > 1;
  PlannedTasks tasks = tasks_in_memory(compiled, report.plan, wanted.read_late, job);
  raise_to_tasks(tasks, report.peak);
  return tasks;
}

/// Makes plans, and their tasks.
class Planning {
 public:
  Planning(const Compiled& compiled, TasksWanted wanted, const SourceText& source)
      : compiled_(compiled), wanted_(wanted), source_(source) {}

  PlanOnRanks of(PlanReport report) const {
    std::optional<PlannedTasks> tasks = raised_to_tasks(compiled_, wanted_, report);
    return {std::move(report), std::move(tasks)};
  }

  /// A search knows neither the pieces of chunks nor what is kept of tasks: where its plan does not fit, it is asked
  /// for one that leaves room for them.
  TriedOnRanks by(const std::string& planner, const PlanRequest& request) const {
    constexpr int most_attempts = 4;
    PlanRequest asked = request;
    std::optional<PlanRefusal> nearest;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    double seconds = 0;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      std::variant<PlanReport, PlanRefusal> planned = try_plan(compiled_, planner, asked);
      if (auto* const refusal = std::get_if<PlanRefusal>(&planned)) return nearest ? *nearest : std::move(*refusal);
      auto& report = std::get<PlanReport>(planned);
      report.seconds = seconds += report.seconds;
      const std::int64_t reckoned = report.peak.bytes;
      PlanOnRanks made = of(std::move(report));
      if (!request.memory) return made;
      const std::optional<TooLarge> too_large =
          why_too_large(compiled_, made.report, made.tasks, *request.memory, source_);
      if (!too_large) return made;
      const std::int64_t held = made.report.peak.bytes;
      if (held < least) nearest = PlanRefusal{planner, too_large->reason, too_large->held};
      least = std::min(least, held);
      asked.memory = std::max<std::int64_t>(0, left_beside(made.tasks, *request.memory) - (held - reckoned));
      if (!starts_from_others(planner) || *asked.memory == 0) break;  // the others look at no limit
    }
    return *nearest;
  }

 private:
  const Compiled& compiled_;
  TasksWanted wanted_;
  const SourceText& source_;
};

}  // namespace

bool has_few_chunks(const Plan& plan) {
  double chunks = 0;
  for (const VertexPlan& vertex : plan.vertices) {
    auto of_vertex = static_cast<double>(copies_of(vertex));
    for (const std::int64_t parts : vertex.parts) of_vertex *= static_cast<double>(parts);
    chunks += of_vertex;
  }
  return chunks <= static_cast<double>(most_chunks_looked_at);
}

PlannedTasks tasks_in_memory(const Compiled& compiled, const Plan& plan, bool read_late, const Job& job) {
  PlannedTasks tasks = tasks_of(compiled, plan, job);
  if (read_late) einrel::read_late(tasks.graph, std::numeric_limits<std::int64_t>::max());
  return tasks;
}

void raise_to_tasks(const Compiled& compiled, TasksWanted wanted, PlanReport& report) {
  raised_to_tasks(compiled, wanted, report);
}

PlansOnRanks plans_side_by_side(const Compiled& compiled, std::optional<Plan> given,
                                const std::vector<std::string>& planners, const PlanRequest& request,
                                TasksWanted wanted, const SourceText& source) {
  check_batch(compiled.graph, request);
  const Planning planning(compiled, wanted, source);
  std::vector<TriedOnRanks> made;
  PlanRequest searched = request;
  if (given) {
    searched.beside.push_back(*given);
    made.emplace_back(planning.of(report_of(compiled, std::move(*given), request)));
  }
  const std::size_t first = made.size();
  made.resize(first + planners.size());
  const auto plan = [&](std::size_t p, const PlanRequest& asked) {
    TriedOnRanks& place = made[first + p];
    place = planning.by(planners[p], asked);
    if (auto* const other = std::get_if<PlanOnRanks>(&place); other != nullptr && first + p > 0) other->tasks.reset();
  };
  for (std::size_t p = 0; p < planners.size(); ++p) {
    if (starts_from_others(planners[p])) continue;
    plan(p, request);
    if (const auto* const other = std::get_if<PlanOnRanks>(&made[first + p]))
      searched.beside.push_back(other->report.plan);
  }
  for (std::size_t p = 0; p < planners.size(); ++p) {
    if (starts_from_others(planners[p])) plan(p, searched);
  }
  PlansOnRanks plans;
  for (TriedOnRanks& each : made) {
    if (auto* const refusal = std::get_if<PlanRefusal>(&each)) {
      plans.comparison.refused.push_back(std::move(*refusal));
      continue;
    }
    auto& [report, tasks] = std::get<PlanOnRanks>(each);
    if (tasks) plans.tasks = std::move(tasks);
    plans.comparison.plans.push_back(std::move(report));
  }
  return plans;
}

}  // namespace einrel
