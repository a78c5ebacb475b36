#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/source.h"
#include "run/compare_plans.h"
#include "run/planned_tasks.h"

namespace einrel {

/// "C (line 3)", of `source`; "C", where nobody has seen the lines of that.
std::string with_line(const Vertex& vertex, const SourceText& source);

/// Of which tensors a peak is made, with the lines that make them: "X (line 2) 4 MB, copied Y (line 2) 1 MB, and 3 more
/// of 2 MB".
std::string tensors_text(const EinGraph& graph, const SitePeak& peak, const SourceText& source);

/// Why a plan does not fit on its sites.
struct TooLarge {
  std::string reason;  ///< the vertex, its need and the limit, in one line
  std::string held;    ///< further lines: the largest tensors, and what is kept of tasks
};

/// `tasks`: of the plan, where they were made; what is kept of them counts.
std::optional<TooLarge> why_too_large(const Compiled& compiled, const PlanReport& report,
                                      const std::optional<PlannedTasks>& tasks, std::int64_t limit,
                                      const SourceText& source);

/// What a rank's limit leaves for arrays beside its tasks, where they are known.
std::int64_t left_beside(const std::optional<PlannedTasks>& tasks, std::int64_t limit);

}  // namespace einrel
