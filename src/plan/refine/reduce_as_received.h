#pragma once

#include "plan/plan.h"

namespace einrel {

/// The same sites, and the same that moves between them; but where a vertex reduces products or other joins of two
/// tensors over a label that it does not cut, and the pieces in which these come are cut along that label alike, it is
/// cut so, too: each piece goes into the result as it is, one after the other, instead of being put together with the
/// others first; unless an earlier vertex has put them together. Inputs of which every site wants all are laid in such
/// pieces if nobody else reads them. That saves the memory of whole operands, and computing begins with the pieces that
/// are there.
void reduce_as_received(const EinGraph& graph, Plan& plan);

/// The plan before that: reduced labels, and dimensions of inputs, that are on one site are in one part.
Plan reduced_at_once(const EinGraph& graph, Plan plan);

}  // namespace einrel
