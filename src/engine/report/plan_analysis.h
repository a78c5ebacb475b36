#pragma once

#include <string>

#include "engine/compare_plans.h"
#include "engine/compile.h"
#include "engine/run_plan.h"

namespace einrel {

/// What was predicted of a run beside what was measured: per vertex bytes and seconds, then in all, per site.
std::string analysis_text(const Compiled& compiled, const PlanReport& plan, const PlanRequest& request,
                          const PlanRunReport& run);

}  // namespace einrel
