#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "exec/tasks/task_graph.h"
#include "kernel/fusion/fusion.h"
#include "kernel/spec.h"
#include "kernel/workers.h"

namespace einrel {

/// The steps of a kernel for arguments that lie so, as a program that computes its results, and how they run.
struct ChunkProgram {
  EinGraph graph;                    ///< inputs, which are the arguments, first
  std::vector<ArrayLayout> layouts;  ///< by vertex
  std::vector<bool> shares;          ///< by vertex: a view that lies in the memory of what it reads
  std::vector<Fusion> fusions;       ///< steps that run together, slab by slab
};
/// Adds the layouts of the values of a program_of a kernel to those of its arguments. By vertex, whether it is a view
/// that lies in the memory of what it reads; results are copies.
std::vector<bool> place_values(const TaskKernel& kernel, const EinGraph& program, std::vector<ArrayLayout>& layouts);
/// `onto` as of ChunkKernel; `names`, per step, for who looks where it went. Here alone it is asked which steps run
/// together: of all operations that could (exec/tasks/fuse), of the kernel of a task, and of that for EXPLAIN. Throws
/// UserError when the arguments do not fit the kernel.
ChunkProgram chunk_program(const TaskKernel& kernel, const std::vector<ArrayLayout>& arguments, bool onto,
                           const std::vector<std::string>& names = {});

/// A kernel of a task made ready for arguments of these layouts: steps that are worth it run together, slab by slab
/// (kernel/fusion), and every other has chosen what computes it. It may run on several threads at once.
class ChunkKernel {
 public:
  /// Tens of microseconds per step. `onto`: the last step, a reduction that reduces_onto allows, goes on from what the
  /// result holds. Throws UserError when the arguments do not fit the kernel.
  ChunkKernel(const TaskKernel& kernel, const std::vector<ArrayLayout>& arguments, const ScalarBindings& scalars,
              bool onto = false);

  /// Writes the results in row-major order. Values between steps are in memory from the workers' pool. Throws RunError
  /// when there is none.
  void run(std::span<const std::byte* const> arguments, std::span<std::byte* const> results, Workers& workers) const;

 private:
  struct Step {
    PreparedKernel kernel;           ///< of a view that shares its operand's memory none
    std::vector<std::size_t> reads;  ///< values: arguments, or arguments + i for the result of step i
    std::vector<std::size_t> makes;  ///< values
    bool shares = false;
  };
  /// Where the result of a step lies.
  struct Value {
    ArrayLayout layout;
    std::optional<std::size_t> result;  ///< of the task; else in memory until it ends
  };

  void add_step(const EinGraph& program, std::size_t number, const ScalarBindings& scalars, bool onto);
  /// The values that a call of linear algebra makes: of outputs that the program has not, ones that nobody reads.
  std::vector<std::size_t> outputs_of(const EinGraph& program, const Vertex& vertex);
  bool is_made(std::size_t value) const;
  std::vector<ArrayLayout> layouts_of(const std::vector<std::size_t>& values) const;

  /// Whether there is one step, which reads the arguments and makes the results one by one.
  bool is_one_call() const;

  std::size_t arguments_ = 0;
  std::vector<Value> values_;
  std::vector<Step> steps_;
  bool is_one_call_ = false;
};

/// The steps of a kernel for arguments of these bounds, as a program that computes its results: inputs first.
EinGraph program_of(const TaskKernel& kernel, const std::vector<Shape>& arguments);

}  // namespace einrel
