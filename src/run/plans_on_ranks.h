#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/source.h"
#include "exec/job/job.h"
#include "run/compare_plans.h"
#include "run/planned_tasks.h"

namespace einrel {

/// Of which plans tasks are made, as they are where each site is a rank. The peak of these is what their tasks hold
/// (raise_to_tasks), and a limit of memory is one of that beside what is kept of all tasks (bookkeeping.h). Of others
/// both are as in try_plan.
enum class MakesTasks { never, of_few_chunks, always };
struct TasksWanted {
  MakesTasks of = MakesTasks::never;
  bool read_late = false;  ///< inputs as late as they can be, as within any limit of memory
};

/// Plans side by side, with the tasks of the first where they were made.
struct PlansOnRanks {
  PlanComparison comparison;
  std::optional<PlannedTasks> tasks;
};

/// The plan that is given, if any, whatever it holds, and those of planners, maybe none of them. A planner that
/// searches and whose plan does not fit is asked for smaller ones; it is refused, as others are at once, where that
/// does not help. `source` is what reasons quote. Throws UserError for a label to cut that the program does not have.
PlansOnRanks plans_side_by_side(const Compiled& compiled, std::optional<Plan> given,
                                const std::vector<std::string>& planners, const PlanRequest& request,
                                TasksWanted wanted, const SourceText& source);

/// The tasks of a plan that stays in memory.
PlannedTasks tasks_in_memory(const Compiled& compiled, const Plan& plan, bool read_late, const Job& job);

/// Gives a plan that runs in one process the peak that it has where each site is a rank.
void raise_to_tasks(const Compiled& compiled, TasksWanted wanted, PlanReport& report);

/// To make tasks of more, only to look at them, would take long.
constexpr std::size_t most_chunks_looked_at = std::size_t{1} << 16U;
bool has_few_chunks(const Plan& plan);

}  // namespace einrel
