#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "ia/ia_program.h"

namespace einrel {

/// An array that lies on one site.
struct TaskArray {
  DType dtype = DType::f32;
  Shape bound;
  Site site = 0;
};
using ArrayId = StrongId<struct TaskArrayTag>;

/// A box of a tensor from outside, beginning at these coordinates; of the array's bound.
struct ReadInput {
  std::size_t input = 0;  ///< of TaskGraph::inputs
  std::vector<std::int64_t> begin;
  /// Other sites than those where it lies read it, too. Kernels may add up in another order where elements lie
  /// otherwise: all sites, whether they share memory or get it sent, read it in row-major order.
  bool is_shared = false;
};
/// Kernels that run together, as the steps of one: those that others read make arrays, the last one among them.
struct TaskKernel {
  Kernel steps;
  std::vector<std::size_t> results;  ///< of the steps, ascending
  std::vector<IaId> nodes = {};      ///< per step, the operation that it is of; none where all are of the task's
  bool operator==(const TaskKernel&) const = default;
};
/// A kernel by itself.
TaskKernel alone(Kernel kernel);

/// One call of a kernel on all that the task reads, and these numbers behind it. Makes an array per result.
struct CallKernel {
  std::size_t kernel = 0;  ///< of TaskGraph::kernels
  double flops = 0;        ///< scalar operations, see flops(Vertex)
  /// The last array that the task reads is no argument: the result is reduced with it and takes its memory. Nobody else
  /// reads it, and the task that made it called a kernel.
  bool onto = false;
  std::vector<std::int64_t> numbers;
};
/// Puts an array together from boxes of those that the task reads, one of each, which fill it, but for `padding`.
struct CopyBoxes {
  struct Box {
    std::vector<std::int64_t> from;  ///< where it begins in the array read
    std::vector<std::int64_t> to;    ///< and in the array made
    Shape bound;
    bool operator==(const Box&) const = default;
  };
  std::vector<Box> boxes;         ///< one per array read
  std::optional<double> padding;  ///< what no box puts there
};
/// The array read, on another site.
struct Send {};
/// Puts an array into an output, beginning at these coordinates. Makes no array.
struct WriteOutput {
  std::size_t output = 0;  ///< of TaskGraph::outputs
  std::vector<std::int64_t> begin;
};
using TaskOp = std::variant<ReadInput, CallKernel, CopyBoxes, Send, WriteOutput>;

/// One thing to do on one site (Send: on two).
struct Task {
  TaskOp op;
  std::vector<ArrayId> reads;
  std::vector<ArrayId> makes;  ///< of WriteOutput none, of CallKernel one per result, of others one
  IaId node;                   ///< the operation that it is a part of; of several, the last (TaskGraph::together)
};

/// A tensor that goes out of the program.
struct TaskOutput {
  std::string name;
  DType dtype = DType::f32;
  Shape bound;
};

/// Whether sites have one memory between them (threads of a process: a chunk that is sent is the same chunk, and what
/// several sites would compute alike is computed once) or one each.
enum class SiteMemory : std::uint8_t { shared, apart };

/// What every site has to do, task by task: data that an executor runs. Every array is made by one task, which stands
/// before those that read it; tasks that do not depend on each other may run in any order.
struct TaskGraph {
  std::int64_t sites = 1;
  SiteMemory memory = SiteMemory::shared;
  std::vector<StoredRelation> inputs;
  std::vector<TaskKernel> kernels;
  std::vector<TaskArray> arrays;
  std::vector<Task> tasks;
  std::vector<TaskOutput> outputs;
  /// The operations whose kernels tasks call together, by the last of them, which is among them.
  std::map<IaId, std::set<IaId>> together;

  const TaskArray& operator[](ArrayId id) const { return arrays[id.index]; }
};

/// The operations that a task is a part of.
std::set<IaId> nodes_of(const TaskGraph& graph, const Task& task);

/// Where a task runs; of a Send the site that receives.
Site site_of(const TaskGraph& graph, const Task& task);

std::int64_t bytes_of(const TaskArray& array);

/// Scalar operations; 0 of what calls no kernel.
double flops_of(const Task& task);

/// Of the arrays that it makes in memory of their own.
std::int64_t bytes_made(const TaskGraph& graph, const Task& task);

/// What it reads, each array once, and makes: the memory that it needs while it runs.
std::int64_t bytes_needed(const TaskGraph& graph, const Task& task);

/// The array whose memory that which the task makes takes over, if any.
std::optional<ArrayId> overwritten(const Task& task);

/// Per task, the arrays that no later task reads: their memory can be had again once it is done.
class LastUses {
 public:
  explicit LastUses(const TaskGraph& graph);
  std::span<const ArrayId> operator[](std::size_t task) const {
    return std::span(arrays_).subspan(begin_[task], begin_[task + 1] - begin_[task]);
  }

 private:
  std::vector<std::uint32_t> begin_;  // by task, and the end
  std::vector<ArrayId> arrays_;
};

}  // namespace einrel
