#pragma once

#include <memory>
#include <string>
#include <vector>

#include "node.h"

// What was computed keeps how it was made as long as that is of use: of arrays that Python holds, by which a gradient
// may be asked for. It needs no elements for that but those of arrays it was made of that are gone otherwise: of these
// no more than 64 MiB are kept. What forgets how it was made knows of which arrays, so that a gradient by one of them
// is refused.

namespace einrel::python {

/// Python holds it, or, of a copy that a gradient took, the array that it stands for.
bool is_held(Node& node);
/// To be called with nodes that have just been computed.
void remember(const std::vector<NodePtr>& computed);
/// The same, of elements that were made at that place in the user's code, looked at when something is computed next:
/// before that, Python still holds the arguments of the function that made them.
void remember_later(const NodePtr& made, std::string where);
/// Whether what it was made of is known.
bool has_history(const Node& node);
/// To be called where a node is gone.
void forget_history(const Node& node);
/// Between `true` and `false` nothing is forgotten: a function is being differentiated.
void keep_histories(bool keeps);

/// The arrays by which gradients may be asked for, that a node was made of which has forgotten how.
std::vector<NodePtr> lost_sources(const Node& node);
/// Where in the user's code its elements were made.
std::string place_of_making(const Node& node);

}  // namespace einrel::python
