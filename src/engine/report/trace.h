#pragma once

#include <string>

#include "engine/run_plan.h"

namespace einrel {

/// When every task ran, in the JSON form of Chrome's trace viewer and Perfetto: a process per rank, a row per thread, a
/// bar per task with the name of its vertex.
std::string trace_json(const PlannedTasks& tasks, const PlanRunReport& run);

}  // namespace einrel
