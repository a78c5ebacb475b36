#pragma once

#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// What is wrong with values of scalars that a program, which has the scalars `known`, does not have.
std::vector<std::string> unknown_scalars(const ScalarBindings& given, const std::vector<std::string>& known);

/// The scalars of a program with the given values; throws UserError naming every one that is unknown, missing, or not
/// whole where it meets integers.
ScalarBindings bind_scalars(const std::vector<ScalarDeclaration>& scalars, const ScalarBindings& given);

}  // namespace einrel
