#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "einsum/ein_graph.h"
#include "engine/compile.h"
#include "engine/memory_plan.h"
#include "engine/prepare.h"
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
  std::vector<double> runs;  ///< seconds of this one, and before it those of others that the caller puts there
  LayoutBindings layouts;    ///< of the inputs
  std::int64_t predicted_peak_bytes = 0;
};

/// What is wrong with values of scalars that a program, which has the scalars `known`, does not have.
std::vector<std::string> unknown_scalars(const ScalarBindings& given, const std::vector<std::string>& known);

/// The scalars of a program with the given values; throws UserError naming every one that is unknown, missing, or not
/// whole where it meets integers.
ScalarBindings bind_scalars(const std::vector<ScalarDeclaration>& scalars, const ScalarBindings& given);

/// Computes the outputs once, in this process, the same bits for any number of workers. `inputs` has every Input vertex
/// by name. Tensors are freed after their last use. Throws RunError when memory runs out; check_memory (memory.h) tells
/// before. Throws UserError when an input is not of the declared dtype and shape.
RunReport run(const Compiled& compiled, TensorBindings inputs, const ScalarBindings& scalars, Workers& workers,
              const ProgressListener& progress = {});

/// Where the tensors of a program lie while it runs, and what its steps read.
struct RunMemory {
  struct Place {
    const std::byte* data = nullptr;
    std::shared_ptr<std::byte> memory;  ///< of inputs none
  };
  std::vector<Place> places;               ///< by vertex
  std::vector<const std::byte*> operands;  ///< of the step at hand
};

/// The same, again and again: a program is prepared when inputs of new layouts or new values of scalars come, and run
/// as it is when they have come before. One call at a time.
///   Runner runner(compile("z.ein", graph));
///   const std::vector<Tensor> outputs = runner.run({{x, y}}, {}, workers);
class Runner {
 public:
  explicit Runner(Compiled compiled) : compiled_(std::move(compiled)) {}

  const Compiled& compiled() const { return compiled_; }
  /// The outputs as graph.outputs has them; inputs in the order of the graph, scalars from bind_scalars. Throws what
  /// run throws.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const ScalarBindings& scalars, Workers& workers);

 private:
  const PreparedProgram& prepared_for(std::span<const Tensor> inputs, const ScalarBindings& scalars);

  Compiled compiled_;
  std::vector<PreparedProgram> prepared_;  // few; the last one ran last
  RunMemory memory_;                       // empty between runs; keeps its capacity
};

}  // namespace einrel
