#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "einsum/ein_graph.h"
#include "einsum/reference.h"
#include "engine/compile.h"
#include "engine/memory.h"
#include "kernel/workers.h"
#include "tensor/tensor.h"

namespace einrel {

/// How far a run is; given before each vertex and once at the end.
struct RunProgress {
  std::size_t done = 0;
  std::size_t total = 0;
  double flops_done = 0;
  double flops_total = 0;
  double seconds = 0;
  std::string vertex;  ///< the one that starts now
};
using ProgressListener = std::function<void(const RunProgress&)>;

struct RunReport {
  std::map<std::string, Tensor> outputs;
  std::vector<double> vertex_seconds;  ///< in the order of the graph
  double seconds = 0;
  LayoutBindings layouts;  ///< of the inputs
  std::int64_t predicted_peak_bytes = 0;
  std::int64_t measured_peak_bytes = 0;  ///< of the whole process, as the system counts it
};

/// The scalars of the graph with the given values; throws UserError naming every one that is unknown, missing, or not
/// whole where it meets integers.
ScalarBindings bind_scalars(const EinGraph& graph, const ScalarBindings& given);

/// Computes the outputs in this process, the same bits for any number of workers. `inputs` has every Input vertex by
/// name with the declared dtype and shape. Tensors are freed after their last use. Throws RunError when memory runs
/// out; check_memory (memory.h) tells before.
RunReport run(const Compiled& compiled, TensorBindings inputs, const ScalarBindings& scalars, Workers& workers,
              const ProgressListener& progress = {});

}  // namespace einrel
