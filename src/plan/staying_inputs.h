#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// A program of which a plan is asked for so many steps: `fed` are the inputs that are new in each of them. States are
/// new, too, but for those that never change. All other inputs stay where the first step brings them (Input::steps),
/// so that their moves are paid once. Throws UserError for a name that is none of an input.
EinGraph with_staying_inputs(EinGraph graph, std::int64_t steps, const std::set<std::string>& fed);

/// Whether a tensor is an input that stays where the first step brings it.
bool stays(const Vertex& tensor);

/// Of what it costs to bring a tensor somewhere, the share that each of the steps pays on average: all of it, or, where
/// it stays there, one divided by their number.
double share_of_step(const Vertex& tensor);

/// How many steps a plan of the graph is asked for.
std::int64_t steps_of(const EinGraph& graph);

}  // namespace einrel
