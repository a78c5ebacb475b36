#pragma once

#include <string>

#include "engine/report/plan_report.h"

namespace einrel {

/// The plans of a program as one HTML page that needs nothing else: the graph, how each vertex is cut, where its chunks
/// lie, what moves, and the costs of all plans side by side. Its data is that of plans_json.
std::string plans_html(const Compiled& compiled, const PlanComparison& comparison, const PlanRequest& request);

}  // namespace einrel
