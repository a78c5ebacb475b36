#pragma once

#include "kernel/fusion/fusion.h"

namespace einrel {

/// Gives costly functions of the same arguments (exp, log, tanh, ...) that several members compute a vertex of their
/// own: softmax takes each exponential once, though its sum and its quotient are written with one each.
void share_subexpressions(Fusion& fusion);

}  // namespace einrel
