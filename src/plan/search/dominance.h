#pragma once

#include "plan/cost/cost.h"
#include "plan/search/search.h"

namespace einrel {

/// Without candidates in whose place another makes every plan cheaper: alone, the other costs less even where all of
/// its operands have to be brought and consumers would have profited most from where the result of the first lies. What
/// several vertices read may be brought for all of them at once, so each of them is charged a part of that. Ways of
/// cutting that `starts` have stay, so that searches can begin there. `graph` and `model` must outlive it. There are
/// `sites` between which tensors move.
Candidates undominated(const EinGraph& graph, const CostModel& model, std::int64_t sites, Candidates all,
                       const std::vector<Plan>& starts);

}  // namespace einrel
