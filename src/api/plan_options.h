#pragma once

#include <einrel/program.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "exec/job/job.h"
#include "run/choose_plan.h"
#include "run/run_request.h"

namespace einrel::api {

/// What options say of plans, of those that are explained. Throws UserError for numbers that make no sense, and a
/// planner that there is not.
RunRequest request_of(const ExplainOptions& options);

/// The same of those that run, and how. Throws UserError for options that contradict each other, or the ranks, and a
/// planner that there is not.
RunRequest request_of(const RunOptions& options, const Job& job);

/// Where the plan that was chosen for a request has inputs once they are brought (plan/where_brought.h); nothing
/// without a plan of vertices, and within a limit of memory, where another program may need them to lie otherwise.
Placements placements_after(const Chosen& chosen, const Compiled& compiled, const RunRequest& request);

/// Throws UserError, naming the nearest, when there is no planner of vertices of this name.
void check_planner(const std::string& name);

/// All cores of this process, or as many as its share of them is in a job, unless a number is given. Throws UserError
/// for one that makes no sense.
std::size_t threads_of(std::optional<std::size_t> given, const Job& job);

}  // namespace einrel::api
