#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/compile.h"
#include "kernel/kernel.h"
#include "kernel/spec.h"

namespace einrel {

/// A tensor, and the vertex in whose memory it lies (MemoryPlan::owners).
struct PlacedTensor {
  std::size_t owner = 0;
  ArrayLayout layout;
};

/// One kernel of a program: a vertex, or several that run together.
struct PreparedStep {
  std::size_t vertex = 0;  ///< where it stands in the graph; of a fusion its last member
  PreparedKernel kernel;
  std::vector<std::size_t> operands;  ///< the owners of their memory
  std::vector<PlacedTensor> results;  ///< get memory now, each its own
  std::vector<std::size_t> freed;     ///< nothing needs their memory afterwards
};

/// A compiled program made ready for inputs of these layouts and these values of its scalars: kernels are chosen and
/// know their loops, views are resolved. Only memory is missing.
struct PreparedProgram {
  std::vector<ArrayLayout> inputs;        ///< in the order of the graph
  std::vector<std::size_t> input_places;  ///< and where they stand in it
  ScalarBindings scalars;
  std::size_t vertex_count = 0;
  std::vector<PreparedStep> steps;
  std::vector<PlacedTensor> outputs;  ///< as graph.outputs
  std::int64_t peak_bytes = 0;        ///< forecast_memory
};

/// `inputs` in the order of the graph. Tens of microseconds per vertex. Throws UserError when the number of inputs,
/// their dtypes or shapes are not those of the program, and as evaluate (kernel/evaluate.h) and forecast_memory do.
PreparedProgram prepare(const Compiled& compiled, std::vector<ArrayLayout> inputs, const ScalarBindings& scalars);

}  // namespace einrel
