#pragma once

#include <vector>

#include "einsum/reference.h"
#include "support/compare.h"

namespace einrel::test {

/// Small different numbers for every input: sums of them are exact in any order.
inline TensorBindings counted_inputs(const EinGraph& graph) {
  TensorBindings inputs;
  for (const Vertex& vertex : graph.vertices) {
    if (!std::holds_alternative<Input>(vertex.op)) continue;
    std::vector<double> values(static_cast<std::size_t>(element_count(vertex.bound)));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>((i * 7 + 3) % 11) - 5;
    inputs[vertex.name] = tensor_of(vertex.dtype, vertex.bound, values);
  }
  return inputs;
}

}  // namespace einrel::test
