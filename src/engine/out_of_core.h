#pragma once

#include "engine/plan_report.h"
#include "engine/run_plan.h"

namespace einrel {

/// A plan for this process under a limit of its memory, what does not fit being on disk.
struct OutOfCorePlan {
  PlanReport plan;
  PlannedTasks tasks;
};

/// Cuts a program so finely that the tensors that all threads work on at once take at most half of `memory`, by asking
/// `planner` for plans for more and more sites, from request.sites on. Throws UserError when even the finest takes
/// more, naming the vertex, what it takes and the limit.
OutOfCorePlan plan_out_of_core(const Compiled& compiled, const std::string& planner, PlanRequest request,
                               std::size_t threads, std::int64_t memory);

}  // namespace einrel
