#pragma once

#include <string>
#include <vector>

#include "einsum/front/build/formula.h"
#include "einsum/graph/ein_graph.h"

/// Vertices back as the parts of a program, for what rewrites programs: gradients, and `check --expand`.
namespace einrel::build {

/// An index over labels that are called so.
Index index_of(const einrel::Index& index, const std::vector<std::string>& labels);

/// What each step of an EinSum's body computes, in the language, whose rules give it the same type again. `labels`: the
/// names of its labels. O(steps).
std::vector<Formula> formulas_of(const Vertex& vertex, const EinGraph& graph, const std::vector<std::string>& labels);

/// The statement that computes a vertex, with its own label names: check() makes the same vertex of it.
/// Inputs have none: their labels are forgotten.
Statement statement_of(const Vertex& vertex, const EinGraph& graph, const std::vector<std::string>& labels);

}  // namespace einrel::build
