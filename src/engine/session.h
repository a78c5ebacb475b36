#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/kept_states.h"
#include "engine/planned_tasks.h"
#include "exec/executor.h"
#include "exec/prepared_tasks.h"
#include "exec/starpu/job.h"
#include "exec/starpu/spill.h"
#include "exec/threads/task_threads.h"
#include "kernel/workers.h"

namespace einrel {

/// How far a run is.
struct RunProgress {
  std::size_t done = 0;
  std::size_t total = 0;
  double flops_done = 0;
  double flops_total = 0;
  double seconds = 0;
  std::string vertex;  ///< of the task that began last
};
using ProgressListener = std::function<void(const RunProgress&)>;

/// All the memory there is.
struct Unlimited {};

/// Within a limit that has room for everything while one task runs after the other; of a rank, while its own do.
struct InOrder {
  std::string folder;  ///< where states lie that the system may keep on the disk
};

/// Within a limit: chunks go to disk and come back.
struct Spilling {
  std::int64_t bytes = 0;  ///< for those that stay
  Spill to;
};

using RunMemory = std::variant<Unlimited, InOrder, Spilling>;

inline bool is_limited(const RunMemory& memory) { return !std::holds_alternative<Unlimited>(memory); }
/// Where states are mapped from within a limit: the folder of KeptState.
std::optional<std::string> states_folder(const RunMemory& memory);

/// What tasks may use in this process.
struct RunResources {
  std::size_t threads = 1;
  RunMemory memory = {};
  std::shared_ptr<Workers> workers = nullptr;  ///< to compute on where tasks run one after the other; else its own
};

/// Whether a session of this process runs one task after the other, each on all threads: where that is sooner done than
/// side by side, one on each thread, with one thread or one site, say.
bool is_serial(const TaskGraph& graph, const RunResources& resources);
/// Whether StarPU runs the tasks, of which a process has one at a time.
bool is_by_starpu(const RunMemory& memory, const Job& job);

/// How often tasks run.
struct StepsAsked {
  std::size_t count = 1;         ///< at most
  KeptStates* states = nullptr;  ///< if the tasks have any
  ProgressListener listener = {};
  std::stop_token stop = {};  ///< once it is asked for, RunError is thrown
  /// Asked before each step, on all ranks: inputs that are new in it, by name. They have to lie as they did before, or
  /// kernels are made ready again.
  std::function<InputSources()> feed = {};
  /// Told after each step, on all ranks, when states have moved on and outputs are written: whether to go on.
  std::function<bool()> after = {};
};

/// What running a plan took, all processes together.
struct PlanRunReport {
  double seconds = 0;        ///< of the last run, as all below
  std::vector<double> runs;  ///< seconds of each step, on the rank that took longest
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
  bool is_last = false;                            ///< `until` held after the last run
  std::vector<std::int64_t> vertex_live;  ///< the most bytes of tensors on a rank at the end of one of its tasks

  std::int64_t moved() const;      ///< bytes to all sites together
  std::int64_t most_live() const;  ///< bytes, of all vertices
};

/// Tasks that run again and again, with states that each step hands to the next. From step to step stay the threads of
/// this process, the kernels that were made ready for inputs that lie alike and, where all repeats of a step read the
/// same, what they read. In a job of several ranks, and under a limit of memory, StarPU runs them, and starts for each
/// step: a process has one at a time.
class Session {
 public:
  /// `tasks` must outlive it. Tasks run as is_by_starpu and is_serial say, else side by side, one on each thread.
  /// Throws RunError when the system does not give the threads.
  Session(const PlannedTasks& tasks, RunResources resources, Job job = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Does that many steps, fewer if `until` holds after one; outputs are those of the last. `sources` has every input
  /// but states, `writers` one for each output that is said (said_outputs), which get all of it in each step if any may
  /// be the last, or somebody is told after each. States have moved on when this returns. On all ranks of a job; the
  /// report is rank 0's. Throws UserError when an input is missing or of another type, RunError when memory runs out or
  /// the number of a step is none of the integer type that it is used as; in a job of several ranks, what fails on one
  /// of them goes to Job::on_failure. The listener is told of this rank's tasks every tenth of a second, on a thread of
  /// its own, and at the end. The first time, UserError where ranks have other tasks, as plans for other machines say.
  PlanRunReport step(const InputSources& sources, std::vector<OutputWriter> writers, const ScalarBindings& scalars,
                     const StepsAsked& asked = {});

  /// From now on, where tasks run one after the other; as many threads as before.
  void compute_on(std::shared_ptr<Workers> workers) { workers_ = std::move(workers); }

  /// The outputs as TaskGraph::outputs, of inputs as TaskGraph::inputs, without a report, which would take longer than
  /// a small run. In one process without a limit. Throws what step throws. `stop` as in StepsAsked.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const ScalarBindings& scalars,
                          const std::stop_token& stop = {});

 private:
  class Executor;
  struct Outside;
  class Forgetting;
  class Stepping;
  const PreparedTasks& ready_for(const TaskBindings& bindings);
  void heed(const std::stop_token& stop);
  void bind_kernels(TaskBindings& bindings);
  void compare_ranks();

  const PlannedTasks& tasks_;
  RunResources resources_;
  Job job_;
  std::shared_ptr<Workers> workers_;    // for tasks one after the other
  std::optional<TaskThreads> threads_;  // side by side; with neither, StarPU runs them
  std::shared_ptr<ChunkKernels> kernels_;
  std::list<PreparedTasks> ready_;  // few, by layouts of inputs and scalars; the first one ran last
  std::unique_ptr<Outside> outside_;
  bool is_compared_ = false;  // with what other ranks do
};

}  // namespace einrel
