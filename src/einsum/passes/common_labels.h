#pragma once

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// Gives a label one name in all statements that walk along it, for programs whose statements name labels each by
/// themselves. What a statement reads says the name, the first operand before the others:
///   T[i,k] = sum[j] X[i,j] * W[j,k] ; R[a,b] = relu(T[a,b])  =>  R[i,k] = relu(T[i,k])
/// So whoever follows a label, as planners that cut samples do, follows the same dimension. Labels of one statement
/// stay different, and one name has one extent: other labels get names that there are not yet.
EinGraph with_common_labels(EinGraph graph);

}  // namespace einrel
