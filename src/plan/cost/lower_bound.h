#pragma once

#include <optional>
#include <vector>

#include "plan/plan.h"

namespace einrel {

/// The faces of boxes of one iteration space: the sum over tensors of weight times the product of the box's sides over
/// the tensor's labels.
struct BoxFaces {
  struct Tensor {
    double weight = 1;
    std::vector<std::size_t> labels;
    auto operator<=>(const Tensor&) const = default;
  };
  std::vector<double> extents;  ///< per label, at least 1
  std::vector<Tensor> tensors;
  auto operator<=>(const BoxFaces&) const = default;
};

/// The least faces of a box with this volume, whose sides are from 1 to their extents and need not be whole; a
/// billionth below it at most, never above. In the logarithms of the sides it is a convex problem with one equation.
/// The volume is between 1 and the product of the extents.
double least_faces(const BoxFaces& faces, double volume);

/// The least bytes that a vertex Z = sum of a product can move between this many sites that compute equal shares of it
/// and that hold all of its operands and its result once, evenly: each site needs a box of the iteration space, and
/// its faces are what it has to have of the tensors (for matrix multiply the memory-independent bound, see Al Daas,
/// Ballard, Grigori, Kumar and Rouse, Tight memory-independent parallel matrix multiplication communication lower
/// bounds, 2022). nullopt for other vertices, for operands that are not read label by label or are one tensor, and
/// where there are more sites than bindings of the labels.
std::optional<double> least_bytes(const Vertex& vertex, const EinGraph& graph, std::int64_t sites);

/// Of every vertex of a plan, on the sites that it uses; equal vertices are computed once.
std::vector<std::optional<double>> least_bytes(const EinGraph& graph, const Plan& plan);

}  // namespace einrel
