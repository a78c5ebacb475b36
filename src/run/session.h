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
#include <vector>

#include "exec/job/job.h"
#include "exec/tasks/prepared_tasks.h"
#include "run/executors.h"
#include "run/kept_states.h"
#include "run/planned_tasks.h"

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

/// How often tasks run.
struct StepsAsked {
  std::size_t count = 1;         ///< at most
  KeptStates* states = nullptr;  ///< if the tasks have any
  ProgressListener listener = {};
  std::stop_token stop = {};  ///< once it is asked for, RunError is thrown
  /// Asked before each step, on all ranks: inputs that are new in it, by name; before the first, those that nobody gave
  /// yet. They have to lie as they did before, or kernels are made ready again.
  std::function<InputSources()> feed = {};
  /// Told after each step, on all ranks, when states have moved on and outputs are written: whether to go on.
  std::function<bool()> after = {};
};

/// What running a plan took, all processes together.
struct PlanRunReport {
  double seconds = 0;        ///< of the last run, as all below
  std::vector<double> runs;  ///< seconds of each step, on the rank that took longest
  std::size_t tasks = 0;
  /// Bytes, per site, in the first run; where sites share memory, those that the plan counts.
  std::vector<std::int64_t> received;
  std::vector<std::int64_t> received_once;         ///< those that no later run receives again: PlannedTasks::first
  bool is_counted = false;                         ///< `received` are bytes that went from process to process
  std::vector<std::vector<TaskSpan>> spans;        ///< per rank
  std::vector<std::vector<MessageSpan>> messages;  ///< per rank, those that it sent and those that it received
  std::vector<std::int64_t> peak_bytes;            ///< the most memory that each process had
  std::vector<std::int64_t> file_bytes;            ///< of it pages of files, at the end: mapped inputs, the program
  std::int64_t spilled = 0;                        ///< bytes written to disk for want of memory, all processes together
  std::int64_t read_back = 0;                      ///< bytes of those that were needed again
  std::vector<std::int64_t> vertex_bytes;          ///< that came from other processes in the first run, to all ranks
  std::vector<double> vertex_seconds;              ///< of all its tasks, on the rank where they took longest
  bool is_last = false;                            ///< `until` held after the last run
  std::vector<std::int64_t> vertex_live;  ///< the most bytes of tensors on a rank at the end of one of its tasks

  std::int64_t moved() const;       ///< bytes to all sites together, in the first run
  std::int64_t moved_once() const;  ///< those that no later run moves again
  std::int64_t moved_by_all() const {
    return moved() + (static_cast<std::int64_t>(runs.size()) - 1) * (moved() - moved_once());
  }
  std::int64_t most_live() const;  ///< bytes, of all vertices
};

/// As Session::run takes them.
std::vector<const InputSource*> pointers_to(const std::vector<InputSource>& inputs);

/// What a run in memory gave.
struct InMemory {
  std::vector<Tensor> outputs;  ///< as TaskGraph::outputs
  TaskReport report;            ///< spans only where the executor has them anyway
};

/// Tasks that run again and again, with states that each step hands to the next. From step to step stay what runs them
/// (executor_for), the kernels that were made ready for inputs that lie alike and, where all repeats of a step read the
/// same, what they read. Inputs that the plan lets stay are brought to where they are used by the first of the steps
/// that are done together.
class Session {
 public:
  /// `tasks` must outlive it. Throws as executor_for does.
  Session(const PlannedTasks& tasks, RunResources resources, Job job = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Does that many steps, fewer if `until` holds after one; outputs are those of the last. `sources` has every input
  /// but states, `writers` one for each output that is said (program_outputs), which get all of it in each step if any
  /// may be the last, or somebody is told after each. States have moved on when this returns. On all ranks of a job;
  /// the report is rank 0's. Throws UserError when an input is missing or of another type, RunError when memory runs
  /// out or the number of a step is none of the integer type that it is used as; in a job of several ranks, what fails
  /// on one of them goes to Job::on_failure. The listener is told of this rank's tasks every tenth of a second, on a
  /// thread of its own, and at the end. The first time, UserError where ranks have other tasks, as plans for other
  /// machines say.
  PlanRunReport step(const InputSources& sources, std::vector<OutputWriter> writers, const ScalarBindings& scalars,
                     const StepsAsked& asked = {});

  /// One step of tasks without states in a process that is no job, with inputs as TaskGraph::inputs: for small runs,
  /// which take less than a report would. Throws what step throws. `stop` as in StepsAsked.
  InMemory run(std::span<const InputSource* const> inputs, const ScalarBindings& scalars,
               const std::stop_token& stop = {});

 private:
  friend class OngoingSteps;
  struct Outside;
  class Stepping;
  const PreparedTasks& ready_for(const TaskBindings& bindings);
  InputSources bring(const InputSources& sources, TaskReport& report);
  void compare_ranks();

  const PlannedTasks& tasks_;
  RunResources resources_;
  Job job_;
  std::unique_ptr<Executor> executor_;
  std::shared_ptr<ChunkKernels> kernels_;
  std::list<PreparedTasks> ready_;  // few, by layouts of inputs; the first one ran last
  std::unique_ptr<Outside> outside_;
  bool is_compared_ = false;  // with what other ranks do
};

/// Steps of a session that are done whenever somebody asks for the next one. From one to the next stays what stays
/// between the steps that Session::step does together.
class OngoingSteps {
 public:
  /// As Session::step takes them, each input among `sources`; `session` and `states` must outlive it.
  OngoingSteps(Session& session, InputSources sources, std::vector<OutputWriter> writers, ScalarBindings scalars,
               KeptStates* states);
  ~OngoingSteps();
  OngoingSteps(const OngoingSteps&) = delete;
  OngoingSteps& operator=(const OngoingSteps&) = delete;

  /// One more, with inputs that are new in it, by name, none of them one that the plan lets stay. The report is of this
  /// step alone. Throws what Session::step throws; then there is none after it.
  PlanRunReport step(InputSources fed, const std::stop_token& stop = {});

 private:
  Session& session_;
  InputSources sources_;  // until the first step
  std::vector<OutputWriter> writers_;
  ScalarBindings scalars_;
  InputSources fed_;
  StepsAsked asked_;
  std::unique_ptr<Session::Stepping> stepping_;  // none before the first step
};

}  // namespace einrel
