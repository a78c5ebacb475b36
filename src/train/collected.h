#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "exec/executors/executor.h"
#include "exec/job/job.h"
#include "run/planned_tasks.h"

namespace einrel {

/// Small outputs of a step, whole, wherever their chunks come from.
class Collected {
 public:
  explicit Collected(std::vector<TaskOutput> outputs);

  /// For all outputs, in their order; this must outlive them.
  std::vector<OutputWriter> writers();
  /// What came since the last call, as values in row-major order of each output. On all ranks of a job, together;
  /// rank 0 has them.
  std::vector<std::vector<double>> take(const Job& job);

 private:
  std::vector<TaskOutput> outputs_;
  std::vector<std::vector<double>>
      chunks_;  ///< per output: begin, bound and values of each chunk, one behind the other
  std::mutex mutex_;
};

std::vector<TaskOutput> scalars_named(const std::vector<std::string>& names);

/// Writers for all outputs of tasks, of which those of these names are collected, in this order.
std::vector<OutputWriter> writers_for(const PlannedTasks& tasks, const std::vector<std::string>& names,
                                      Collected& collected);

/// What rank 0 has, on all ranks.
std::vector<double> on_all_ranks(const std::vector<double>& values, const Job& job);
/// Tensors of some types with values as `take` gives them on rank 0; on all ranks.
std::vector<Tensor> on_all_ranks(const std::vector<TaskOutput>& types, const std::vector<std::vector<double>>& values,
                                 const Job& job);

}  // namespace einrel
