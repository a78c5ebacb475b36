#pragma once

#include <cstdint>

#include "plan/plan.h"

namespace einrel {

/// The same sites with more parts on them: every vertex is cut, always along the label whose parts are longest, until
/// what one part reads and makes, with another partial result where that is added to it, takes at most `most_bytes`, or
/// nothing can be cut any more. Labels whose partial results would all be alive together are cut last.
void make_parts_finer(const EinGraph& graph, Plan& plan, std::int64_t most_bytes);

}  // namespace einrel
