#pragma once

#include <cstddef>
#include <vector>

#include "machine/machine.h"
#include "run/kernels.h"

namespace einrel {

/// What tasks take on a machine, by what the models of their kernels say, as long as that takes there
/// (Machine::kernel_times), one after the other, side by side, or on the ranks of a job.
class SecondsForecast {
 public:
  /// `threads` of this process, or of each rank. All must outlive it.
  SecondsForecast(const PlannedTasks& tasks, const Machine& machine, std::size_t threads);

  /// To be told of every call of the tasks (kernel_calls).
  void add(std::size_t task, const KernelCall& call);

  /// Of a run in which nothing has to be read from files any more, and no output is written; `in_order`: a limit of
  /// memory makes tasks of one process wait for each other.
  double seconds(bool in_order) const;

  /// The same of each task, on all threads.
  std::vector<double> by_task() const { return all_seconds(threads_); }

 private:
  double task_seconds(std::size_t task, const std::vector<double>& by_kernels, std::size_t threads) const;
  std::vector<double> all_seconds(std::size_t threads) const;

  const PlannedTasks& tasks_;
  const Machine& machine_;
  std::size_t threads_;
  std::vector<double> on_one_;       // by task: of all its kernels on one thread
  std::vector<double> on_threads_;   // the same on all threads
  std::vector<std::int64_t> sites_;  // by operation, on how many it is computed
};

/// What each task takes on a site of a machine, with so many threads there: where kernels were measured, by the models
/// of these; else by its operations and bytes, as plans are charged (computing_seconds). A Send takes no seconds.
std::vector<double> task_seconds(const EinGraph& graph, const PlannedTasks& tasks, const Machine& machine,
                                 std::size_t threads);

}  // namespace einrel
