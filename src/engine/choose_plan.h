#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/source.h"
#include "engine/compare_plans.h"
#include "engine/report/algebra_facts.h"
#include "engine/session.h"

namespace einrel {

/// What a run by a plan asks for.
struct RunRequest {
  PlanRequest plan;           ///< its memory: the limit of a rank, or of this process with all sites
  std::string planner;        ///< of planner.h
  std::optional<Plan> given;  ///< instead of a planner's
  std::size_t threads = 1;
  bool may_spill = false;  ///< chunks of a rank may go to disk; those of a process on its own always may
};

/// Tasks, and how they are going to run.
struct ChosenTasks {
  PlannedTasks tasks;
  std::optional<std::int64_t> limit;  ///< bytes that the process may take
  bool spills = false;                ///< chunks may have to go to disk
  bool in_order = false;              ///< all fits, if one task runs after the other (PlanResources)
  std::size_t threads = 1;  ///< that compute: fewer than asked for if chunks are too small, or StarPU has no more
};

/// How a program is going to run.
struct ChosenPlan : ChosenTasks {
  PlanRequest request;
  PlanReport plan;
};

/// Whether tasks that run one after the other stay within so many bytes of a process.
bool fits_in_order(const PlannedTasks& tasks, std::int64_t limit, std::size_t threads);

/// A plan that runs within the limit: in one process, where not everything fits at once, one that is so fine that
/// chunks can come and go; in a job one whose ranks hold less, or, where they may spill, work on less at a time. Throws
/// UserError where there is none, naming the vertex, its need and the limit; `source` is what messages quote.
ChosenPlan choose_plan(const Compiled& compiled, RunRequest request, const SourceText& source, const Job& job);

/// What a run by a plan of relations may take.
struct AlgebraLimits {
  std::optional<std::int64_t> memory;  ///< bytes of a rank, or of this process with all sites
  std::size_t threads = 1;
  bool may_spill = false;  ///< as of RunRequest
};

/// How a plan of relations is going to run.
struct ChosenAlgebra : ChosenTasks {
  AlgebraFacts facts;
  std::vector<std::int64_t> bytes;  ///< per operation of the plan, that it delivers to all sites together
};

/// Its tasks are cut as the program says, or the number of sites: chunks come and go where they do not fit within the
/// limit. Throws UserError as choose_plan does.
ChosenAlgebra choose_algebra(const AlgebraPlan& plan, const AlgebraLimits& limits, const Job& job);

/// Throws RunError when a process on its own has less memory left than a plan needs that has no limit: all sites'
/// chunks are in it. `in_place` tells of an input whether it costs nothing more; `limit` is as of check_memory.
void check_room(const std::string& program, const ChosenTasks& chosen,
                const std::function<bool(const StoredRelation&)>& in_place, std::string_view limit);

/// What a plan may use as it was asked for, chunks going to `folder`, or the system's for what is not to stay.
/// `on_failure` ends a run that lost a chunk (Spill).
PlanResources resources_of(const ChosenTasks& chosen, const std::optional<std::string>& folder,
                           std::function<void(std::exception_ptr)> on_failure);

}  // namespace einrel
