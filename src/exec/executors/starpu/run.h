#pragma once

#include <optional>
#include <stop_token>

#include "exec/executors/executor.h"
#include "exec/executors/process_turn.h"
#include "exec/executors/starpu/session.h"

namespace einrel {

/// No more tasks than this are submitted and not done: StarPU has what it keeps of their arrays.
constexpr int most_tasks_submitted = 512;

/// Runs tasks by StarPU, which starts when runs begin, and ends with them: a process has one at a time, for which
/// others wait. In one process the graph's sites share memory. In a job each rank is the site of its number, submits
/// only the tasks that concern it, and reports what it did itself; every rank has to run the same graph. Arrays get
/// memory when they are made and lose it after their last use; a rank is at most a few hundred tasks ahead of what is
/// done.
class StarpuExecutor : public Executor {
 public:
  StarpuExecutor(SessionOptions options, Job job);

  /// Throws as ProcessTurn and StarpuSession do.
  void begin(const std::stop_token& stop) override;
  TaskReport run(const PreparedTasks& tasks, const TaskBindings& bindings) override;
  void end() override { started_.reset(); }

 private:
  struct Started {
    Started(const std::stop_token& stop, const SessionOptions& options, const Job& job)
        : turn(stop), session(options, job) {}
    ProcessTurn turn;
    StarpuSession session;
  };

  SessionOptions options_;
  Job job_;
  std::stop_token stop_;
  std::optional<Started> started_;
};

}  // namespace einrel
