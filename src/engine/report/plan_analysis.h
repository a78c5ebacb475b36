#pragma once

#include <string>

#include "engine/compare_plans.h"
#include "engine/compile.h"
#include "engine/report/algebra_facts.h"
#include "engine/session.h"

namespace einrel {

/// What was predicted of a run beside what was measured: per vertex bytes and seconds, then in all, per site.
std::string analysis_text(const Compiled& compiled, const PlanReport& plan, const PlanRequest& request,
                          const PlanRunReport& run);

/// The same of a plan of relations, per operation, each of which was to deliver so many bytes. Of its seconds and
/// memory nothing is predicted.
std::string analysis_text(const AlgebraFacts& facts, const std::vector<std::int64_t>& bytes, const PlanRunReport& run);

}  // namespace einrel
