#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/algebra.h"
#include "engine/compile.h"
#include "engine/run.h"
#include "exec/executor.h"
#include "exec/starpu/job.h"
#include "exec/starpu/spill.h"
#include "exec/task_body.h"
#include "exec/threads/task_threads.h"
#include "ia/traffic.h"
#include "plan/plan.h"

namespace einrel {

/// A plan as tasks, for this process or for a job of several.
struct PlannedTasks {
  TaskGraph graph;
  std::vector<std::optional<std::size_t>> vertices;  ///< per operation (Task::node), its vertex, or where it stands
  std::vector<std::string> names;                    ///< of the vertices, or of the operations' results
  Traffic traffic;                                   ///< that the plan has between sites
};

/// The vertex that a task is a part of.
std::string name_of(const PlannedTasks& tasks, std::size_t task);

/// `most_bytes` as in exec/from_ia. Throws UserError when the plan has more sites than the job has ranks, and as
/// `lower` (plan/lower.h) does.
PlannedTasks tasks_of(const Compiled& compiled, const Plan& plan, const Job& job,
                      std::optional<std::int64_t> most_bytes = std::nullopt);

/// The same for a plan of relations: what tasks are part of are its operations, as nodes_of has them, named as EXPLAIN
/// names them. Its outputs are tensors (tra/relation.h).
PlannedTasks tasks_of(const AlgebraPlan& plan, const Job& job, std::optional<std::int64_t> most_bytes = std::nullopt);

/// Where inputs come from, by name.
using InputSources = std::map<std::string, InputSource>;
InputSources sources_of(const TensorBindings& inputs);

/// What the tasks of a graph meet: `sources` by the names of their inputs. Throws UserError when one is missing or of
/// another type.
TaskBindings task_bindings(const TaskGraph& graph, const InputSources& sources, std::vector<OutputWriter> writers,
                           const ScalarBindings& scalars);

/// What a plan may use in this process.
struct PlanResources {
  std::size_t threads = 1;
  std::optional<std::int64_t> memory;  ///< bytes for chunks; more go to disk
  Spill spill;                         ///< where those go
  bool in_order = false;               ///< one task after the other: most_live_bytes counts what is alive then
  std::size_t repeats = 1;             ///< times that all is computed; outputs are written by the last one
};

/// What running a plan took, all processes together.
struct PlanRunReport {
  double seconds = 0;        ///< of the last run, as all below
  std::vector<double> runs;  ///< seconds of each of PlanResources::repeats, on the rank that took longest
  std::size_t tasks = 0;
  std::vector<std::int64_t> received;        ///< bytes, per site; where sites share memory, those that the plan counts
  bool is_counted = false;                   ///< `received` are bytes that went from process to process
  std::vector<std::vector<TaskSpan>> spans;  ///< per rank
  std::vector<std::vector<MessageSpan>> messages;  ///< per rank, those that it sent and those that it received
  std::vector<std::int64_t> peak_bytes;            ///< the most memory that each process had
  std::vector<std::int64_t> file_bytes;            ///< of it pages of files, at the end: mapped inputs, the program
  std::int64_t spilled = 0;                        ///< bytes written to disk for want of memory, all processes together
  std::int64_t read_back = 0;                      ///< bytes of those that were needed again
  std::vector<std::int64_t> vertex_bytes;          ///< that came from other processes, all ranks together
  std::vector<double> vertex_seconds;              ///< of all its tasks, on the rank where they took longest
  std::vector<std::int64_t> vertex_live;  ///< the most bytes of tensors on a rank at the end of one of its tasks

  std::int64_t moved() const;      ///< bytes to all sites together
  std::int64_t most_live() const;  ///< bytes, of all vertices
};

/// Tasks that run again and again: the threads of this process and the kernels that were made ready for it stay from
/// step to step. In a job of several ranks, and under a limit of memory, StarPU runs them, and starts for each step: a
/// process has one at a time.
class PlanSession {
 public:
  /// `tasks` must outlive it. Without ranks and a limit, tasks run side by side, one on each thread, or one after the
  /// other, each on all threads, where that is sooner done: with one thread or one site, say. Throws RunError when the
  /// system does not give the threads.
  PlanSession(const PlannedTasks& tasks, PlanResources resources, Job job);

  /// `sources` has every input, `writers` one for each output. On all ranks of a job; the report is rank 0's. Throws
  /// UserError when an input is missing or of another type, RunError when memory runs out; in a job of several ranks,
  /// what fails on one of them goes to Job::on_failure. `listener` is told of this rank's tasks every tenth of a
  /// second, on a thread of its own, and at the end of each run.
  PlanRunReport step(const InputSources& sources, std::vector<OutputWriter> writers, const ScalarBindings& scalars,
                     const ProgressListener& listener = {});

 private:
  class Runner;
  const PlannedTasks& tasks_;
  PlanResources resources_;
  Job job_;
  std::optional<Workers> workers_;      // for tasks one after the other
  std::optional<TaskThreads> threads_;  // side by side; with neither, StarPU runs them
  std::optional<ChunkKernels> kernels_;
};

}  // namespace einrel
