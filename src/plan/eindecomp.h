#pragma once

#include "plan/plan.h"

namespace einrel {

/// EinDecomp as its paper has it (section 8): every vertex is cut into `calls` kernel calls, rounded down to a power of
/// two, or as many as its labels allow, so that bound_of_plan is least. Optimal where no vertex but inputs has several
/// consumers. Else paths are taken, the longest first, each planned as if it were alone; a vertex that is on no path
/// before it is planned with its own. O(vertices * partitions of one * partitions of its inputs' results).
Plan eindecomp_paper(const EinGraph& graph, std::int64_t calls);

}  // namespace einrel
