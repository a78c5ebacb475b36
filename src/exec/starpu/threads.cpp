#include "exec/starpu/threads.h"

#include <starpu.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/error.h"
#include "exec/array_store.h"

namespace einrel {
namespace {

/// Tasks that may be under way at one time: begun, or only waiting for others.
constexpr std::size_t most_tasks_ahead = 512;

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

class ThreadRun {
 public:
  ThreadRun(const TaskGraph& graph, const TaskBindings& bindings, StarpuSession& session)
      : graph_(graph), session_(session), arrays_(graph, bindings), readers_(graph), waits_(graph.tasks.size()) {
    starpu_codelet_init(&codelet_);
    codelet_.cpu_funcs[0] = run_task;
    codelet_.name = "einrel";
    report_.spans.resize(graph.tasks.size());
    for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
      waits_[t] = static_cast<std::uint32_t>(graph.tasks[t].reads.size()) + 1;  // 1 for its turn
      calls_.push_back({*this, t});
    }
  }

  TaskReport run() {
    const auto start = std::chrono::steady_clock::now();
    try {
      for (std::size_t t = 0; t < most_tasks_ahead; ++t) next_turn();
    } catch (...) {
      error_.keep();
    }
    starpu_task_wait_for_all();
    if (error_) std::rethrow_exception(error_.get());
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(report_);
  }

 private:
  struct Call {
    ThreadRun& run;
    std::size_t task;
  };

  /// What StarPU's threads call.
  static void run_task(void*[], void* argument) {
    const Call& call = *static_cast<const Call*>(argument);
    try {
      call.run.run(call.task);
    } catch (...) {
      call.run.error_.keep();
    }
  }

  void run(std::size_t t) {
    if (error_) return;
    report_.spans[t] = arrays_.run(t, starpu_worker_get_id(), session_.workers());
    const Task& task = graph_.tasks[t];
    for (const ArrayId made : task.makes) {
      for (std::size_t r = readers_.begin[made.index]; r < readers_.begin[made.index + 1]; ++r)
        end_wait(readers_.tasks[r]);
    }
    next_turn();
  }

  /// One task done lets one more begin, in their order.
  void next_turn() {
    const std::size_t t = turn_++;
    if (t < graph_.tasks.size()) end_wait(t);
  }

  void end_wait(std::size_t t) {
    if (--waits_[t] != 0) return;
    starpu_task* const task = starpu_task_create();
    task->cl = &codelet_;
    task->cl_arg = &calls_[t];
    task->priority = -static_cast<int>(std::min<std::size_t>(t, std::numeric_limits<int>::max()));
    if (starpu_task_submit(task) != 0) throw Bug("StarPU takes no task");
  }

  const TaskGraph& graph_;
  StarpuSession& session_;
  ArrayStore arrays_;
  Readers readers_;
  std::vector<std::atomic<std::uint32_t>> waits_;  // per task: what it reads, and its turn
  std::atomic<std::size_t> turn_ = 0;
  std::vector<Call> calls_;
  starpu_codelet codelet_;
  FirstError error_;
  TaskReport report_;
};

}  // namespace

TaskReport run_on_threads(const TaskGraph& graph, const TaskBindings& bindings, StarpuSession& session) {
  if (graph.memory != SiteMemory::shared) throw Bug("a task graph for several processes");
  const AtWork at_work;
  return ThreadRun(graph, bindings, session).run();
}

}  // namespace einrel
