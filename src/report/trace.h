#pragma once

#include <string>

#include "run/session.h"

namespace einrel {

/// When every task ran, in the JSON form of Chrome's trace viewer and Perfetto: a process per rank, a row per thread, a
/// bar per task with the name of its vertex. Every message is there twice, in the categories send and receive, with its
/// bytes and both ranks. In the category wait: a thread had nothing to do because what its next task needed had not
/// arrived. O(n log n) of tasks and messages, times how deep they depend on each other within one wait.
std::string trace_json(const PlannedTasks& tasks, const PlanRunReport& run);

}  // namespace einrel
