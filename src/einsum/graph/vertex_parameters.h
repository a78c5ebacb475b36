#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// Which random numbers a place of the program draws (ApplyRandom).
struct RandomStream {
  std::uint32_t number = 0;
  bool operator==(const RandomStream&) const = default;
};

/// What a formula takes that is no tensor, and that may be another one in a layer that is alike otherwise: a scalar, a
/// seed of random numbers that is a number, and their stream.
using VertexParameter = std::variant<ScalarValue, Constant, RandomStream>;

/// One for each place where one stands, in the order of the formula's steps. O(steps).
std::vector<VertexParameter> parameters_of(const Vertex& vertex);

/// The vertex with these in the places of parameters_of: streams for streams, and scalars or numbers for the others.
Vertex with_parameters(Vertex vertex, const std::vector<VertexParameter>& parameters);

/// The vertex with empty ones, and without the names of tensors in messages: the same of all vertices that compute
/// alike but for these.
Vertex without_parameters(Vertex vertex);

}  // namespace einrel
