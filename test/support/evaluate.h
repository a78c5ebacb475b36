#pragma once

#include <vector>

#include "kernel/evaluate.h"

namespace einrel::test {

/// evaluate on one thread.
inline Tensor evaluate_alone(const Vertex& vertex, const std::vector<Tensor>& operands, const ScalarBindings& scalars) {
  Workers one;
  return evaluate(vertex, operands, scalars, one);
}

}  // namespace einrel::test
