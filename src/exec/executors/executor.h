#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "exec/memory/ahead.h"
#include "exec/tasks/task_graph.h"
#include "tensor/tensor.h"

namespace einrel {

/// Writes the elements of an input in the box that begins there and has that bound, in row-major order.
using InputMaker = std::function<void(const std::vector<std::int64_t>& begin, const Shape& bound, std::byte* to)>;
/// An input: in memory or mapped from a file, which is used in place, or made piece by piece where it is needed.
using InputSource = std::variant<Tensor, InputMaker>;
/// Takes a chunk of an output; one that is part of an input may have any strides. Chunks come in any order, several at
/// a time.
using OutputWriter = std::function<void(const std::vector<std::int64_t>& begin, Tensor chunk)>;

/// Whether scalars have the same values, to the sign of 0.
bool have_same_bits(const ScalarBindings& a, const ScalarBindings& b);

/// How far a run is; executors write it, anyone may read it meanwhile.
struct TaskProgress {
  std::atomic<std::size_t> done = 0;  ///< tasks, of those of this process
  std::atomic<double> flops = 0;
  std::atomic<std::size_t> task = 0;  ///< the one that began last
};

/// By task, the arrays of ReadInput that are not used where they lie, from run to run with the same inputs.
using KeptInputs = std::vector<std::optional<Tensor>>;

/// What a task graph meets outside.
struct TaskBindings {
  std::vector<InputSource> inputs;    ///< as TaskGraph::inputs
  std::vector<OutputWriter> outputs;  ///< as TaskGraph::outputs
  ScalarBindings scalars;
  TaskProgress* progress = nullptr;  ///< if someone wants to know
  KeptInputs* kept = nullptr;        ///< where what is read is kept for the next run, if it is
  /// That arrays alive at a time may take, on a site where each has a memory: how far tasks run ahead (TasksAhead).
  std::int64_t most_bytes = any_bytes;
  /// Whether someone wants to know when each task ran; to look at the clock takes longer than a small run. Where it
  /// does not, reports may have no spans, and nobody is told of progress.
  bool is_timed = true;
};

/// When a task ran.
struct TaskSpan {
  std::size_t task = 0;
  double start = 0;  ///< seconds since 1970, so that those of several processes can be compared
  double seconds = 0;
  int thread = 0;               ///< of those that run tasks
  std::int64_t live_bytes = 0;  ///< of arrays alive in this process at its end, its own and what it read among them
};

/// When a message was on its way, as this process saw it: from when it could be sent, or was waited for, to when it was
/// sent or had arrived.
struct MessageSpan {
  std::size_t task = 0;  ///< the Send
  double start = 0;      ///< seconds since 1970
  double end = 0;
};

/// What a run of a task graph took. Of one process: where each site has its own, that of its own site.
struct TaskReport {
  double seconds = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t spilled = 0;               ///< bytes of chunks written to disk for want of memory
  std::int64_t read_back = 0;             ///< bytes of those that were needed again
  std::map<IaId, std::int64_t> received;  ///< bytes from other processes, by operation
  std::vector<TaskSpan> spans;            ///< of every task that ran here, but for Send
  std::vector<MessageSpan> messages;      ///< of every Send from here or to here
};

class PreparedTasks;

/// What runs tasks: in their order, side by side, or on the ranks of a job and within a limit of memory. Who has one
/// need not know which: all give the same bits. One run at a time.
class Executor {
 public:
  Executor() = default;
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Before one run or several, on all ranks: gets what others may have between them. Runs end some milliseconds after
  /// a stop is asked for, and throw RunError. Throws RunError when the system does not give threads or memory.
  virtual void begin(const std::stop_token& stop) = 0;
  /// Runs all tasks once, those of this process's site where sites have a memory each. `tasks` are made ready for these
  /// inputs and, then, that site. What a task throws is thrown here, and RunError when memory runs out; in a job
  /// of several ranks it goes to Job::on_failure.
  virtual TaskReport run(const PreparedTasks& tasks, const TaskBindings& bindings) = 0;
  /// After them, also when they have failed.
  virtual void end() = 0;
};

/// From `begin` to `end`.
class ExecutorAtWork {
 public:
  ExecutorAtWork(Executor& executor, const std::stop_token& stop) : executor_(executor) { executor.begin(stop); }
  ~ExecutorAtWork() { executor_.end(); }
  ExecutorAtWork(const ExecutorAtWork&) = delete;
  ExecutorAtWork& operator=(const ExecutorAtWork&) = delete;

 private:
  Executor& executor_;
};

/// Tensors that the outputs of a graph are written to, by name, and what writes them there; `to` must outlive that. One
/// that comes in one chunk has no memory before: what lives on is taken without a copy. Throws RunError when there is
/// none.
std::map<std::string, Tensor> output_tensors(const TaskGraph& graph);
std::vector<OutputWriter> writers_to(std::map<std::string, Tensor>& to, const TaskGraph& graph);
/// By output, whether it comes in one chunk, to all sites.
std::vector<bool> come_whole(const TaskGraph& graph);
/// What writes one output there: memory of its bound, or, where it comes whole, anything.
OutputWriter writer_to(Tensor& to, bool whole);

}  // namespace einrel
