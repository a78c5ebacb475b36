#pragma once

#include <random>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "tensor/convert.h"

namespace einrel::test {

/// Whole numbers from -3 to 3 for all inputs of a graph: small sums and products of them are exact in every type.
inline TensorBindings random_integers(const EinGraph& graph, std::mt19937& random) {
  TensorBindings inputs;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) continue;
    std::vector<double> values(static_cast<std::size_t>(element_count(vertex.bound)));
    for (double& value : values) value = static_cast<double>(random() % 7) - 3;
    inputs[vertex.name] = tensor_of(vertex.dtype, vertex.bound, values);
  }
  return inputs;
}

}  // namespace einrel::test
