#include "exec/executors/threads/task_threads.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "exec/executors/first_error.h"
#include "exec/executors/threads/ready_tasks.h"
#include "exec/executors/turns.h"
#include "exec/memory/array_store.h"
#include "exec/tasks/prepared_tasks.h"

namespace einrel {
namespace {

/// Which tasks read an array: for array a those at `tasks[begin[a]]` and on, once for each time that they do.
struct Readers {
  explicit Readers(const TaskGraph& graph) : begin(graph.arrays.size() + 1, 0) {
    for (const Task& task : graph.tasks)
      for (const ArrayId read : task.reads) ++begin[read.index + 1];
    for (std::size_t a = 1; a < begin.size(); ++a) begin[a] += begin[a - 1];
    tasks.resize(begin.back());
    std::vector<std::size_t> next = begin;
    for (std::size_t t = 0; t < graph.tasks.size(); ++t)
      for (const ArrayId read : graph.tasks[t].reads) tasks[next[read.index]++] = t;
  }

  std::vector<std::size_t> begin;
  std::vector<std::size_t> tasks;
};

/// One run, by threads that each call `work`.
class ThreadsRun {
 public:
  ThreadsRun(const PreparedTasks& tasks, const TaskBindings& bindings)
      : graph_(tasks.graph()),
        arrays_(tasks, bindings),
        readers_(graph_),
        waits_(graph_.tasks.size()),
        turns_(tasks, bindings.most_bytes, std::nullopt) {
    const TaskGraph& graph = graph_;
    report_.spans.resize(graph.tasks.size());
    for (std::size_t t = 0; t < graph.tasks.size(); ++t)
      waits_[t] = static_cast<std::uint32_t>(graph.tasks[t].reads.size()) + 1;  // 1 for its turn
    std::vector<std::size_t> first;
    end_wait(turns_.first(), first);
    ready_.add(first);
    if (graph.tasks.empty()) ready_.end();
  }

  /// Runs tasks until there are no more.
  void work(std::size_t thread, Workers& workers) {
    try {
      std::vector<std::size_t> ready;
      while (const std::optional<std::size_t> task = ready_.next(ready)) {
        report_.spans[*task] = arrays_.run(*task, static_cast<int>(thread), workers);
        ready.clear();
        end_task(*task, ready);
      }
    } catch (...) {
      error_.keep();
      ready_.end();
    }
  }

  /// What it took, once all threads have ended. Throws what a task threw.
  TaskReport report() {
    if (error_) std::rethrow_exception(error_.get());
    return std::move(report_);
  }

 private:
  /// Collects those in `ready` that waited for this one alone.
  void end_task(std::size_t t, std::vector<std::size_t>& ready) {
    for (const ArrayId made : graph_.tasks[t].makes) {
      const std::size_t last = readers_.begin[made.index + 1];
      for (std::size_t r = readers_.begin[made.index]; r < last; ++r) end_wait(readers_.tasks[r], ready);
    }
    end_wait(turns_.end_task(t), ready);
    if (++done_ == graph_.tasks.size()) ready_.end();
  }

  void end_wait(std::size_t t, std::vector<std::size_t>& ready) {
    if (--waits_[t] == 0) ready.push_back(t);
  }
  void end_wait(TaskTurns::Range tasks, std::vector<std::size_t>& ready) {
    for (std::size_t t = tasks.begin; t < tasks.end; ++t) end_wait(t, ready);
  }

  const TaskGraph& graph_;
  TimedArrays arrays_;
  Readers readers_;
  std::vector<std::atomic<std::uint32_t>> waits_;  // per task: what it reads, and its turn
  TaskTurns turns_;
  std::atomic<std::size_t> done_ = 0;
  ReadyTasks ready_;
  FirstError error_;
  TaskReport report_;
};

}  // namespace

void TaskThreads::begin(const std::stop_token& stop) {
  workers_.emplace(threads_);
  for (Workers& alone : workers_->alone()) alone.cancel_on(stop);
}

void TaskThreads::end() {
  for (Workers& alone : workers_->alone()) alone.cancel_on({});
  workers_.reset();
}

TaskReport TaskThreads::run(const PreparedTasks& tasks, const TaskBindings& bindings) {
  if (tasks.graph().memory != SiteMemory::shared) throw Bug("a task graph for several processes");
  const auto start = std::chrono::steady_clock::now();
  ThreadsRun run(tasks, bindings);
  std::deque<Workers>& alone = workers_->alone();
  // To the team, being one of its threads is a part of a kernel. One that wakes late finds all done.
  const auto work = [&](const Arrays&, Workspace, std::int64_t part) {
    const auto thread = static_cast<std::size_t>(part);
    run.work(thread, alone[thread]);
  };
  (**workers_).run({0, 0, {{static_cast<std::int64_t>(threads_), work}}}, {});
  TaskReport report = run.report();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace einrel
