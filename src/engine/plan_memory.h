#pragma once

#include <string>
#include <vector>

#include "base/source.h"
#include "engine/report/plan_report.h"

namespace einrel {

/// The most that a site holds, when, and of which tensors, with the lines of `source` that make them: "29.4 MB on site
/// 0 while C (line 3) is computed: partial results of C (line 3) 16.8 MB, A (line 2) 4.19 MB".
std::string peak_text(const EinGraph& graph, const PlanReport& report, const PlanRequest& request,
                      const SourceText& source);

/// For people: of each plan the most that a site holds, when, and of which tensors, with the lines of `source` that
/// make them.
std::string peaks_text(const Compiled& compiled, const std::vector<PlanReport>& reports, const PlanRequest& request,
                       const SourceText& source);

/// Throws UserError naming vertex, need, limit and the largest tensors where a plan holds more than
/// `request.memory` allows.
void check_fits(const Compiled& compiled, const PlanReport& report, const PlanRequest& request,
                const SourceText& source);

}  // namespace einrel
