#pragma once

#include <string>
#include <vector>

#include "run/sweep.h"

namespace einrel {

/// A line for each plan: seconds, how many times as fast as the first of its machine and planner, bytes, memory, sites
/// that compute. Then where fewer sites are as fast.
std::string sweep_text(const Compiled& compiled, const std::vector<SweptPlan>& plans);
/// The same as a table with commas between its fields, seconds and bytes as numbers; a refused plan has no figures.
std::string sweep_csv(const Compiled& compiled, const std::vector<SweptPlan>& plans);
/// The same as one JSON object.
std::string sweep_json(const Compiled& compiled, const std::vector<SweptPlan>& plans);

}  // namespace einrel
