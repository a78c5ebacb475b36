#pragma once

#include <string>

#include "base/source.h"
#include "run/compare_plans.h"

namespace einrel {

/// "C (line 3)", of `source`; "C", where nobody has seen the lines of that.
std::string with_line(const Vertex& vertex, const SourceText& source);

/// Of which tensors a peak is made, with the lines that make them: "X (line 2) 4 MB, copied Y (line 2) 1 MB, and 3 more
/// of 2 MB".
std::string tensors_text(const EinGraph& graph, const SitePeak& peak, const SourceText& source);

/// Throws UserError naming vertex, need, limit and the largest tensors where a plan holds more than
/// `request.memory` allows; `more` is said behind that.
void check_fits(const Compiled& compiled, const PlanReport& report, const PlanRequest& request,
                const SourceText& source, const std::string& more = {});

}  // namespace einrel
