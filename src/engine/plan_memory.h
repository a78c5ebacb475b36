#pragma once

#include <string>
#include <vector>

#include "base/source.h"
#include "engine/plan_report.h"

namespace einrel {

/// For people: of each plan the most that a site holds, when, and of which tensors, with the lines of `source` that
/// make them.
std::string peaks_text(const Compiled& compiled, const std::vector<PlanReport>& reports, const PlanRequest& request,
                       const SourceText& source);

/// Throws UserError naming vertex, need, limit and the largest tensors where a plan holds more than
/// `request.memory` allows.
void check_fits(const Compiled& compiled, const PlanReport& report, const PlanRequest& request,
                const SourceText& source);

}  // namespace einrel
