#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "exec/job/job.h"
#include "run/kept_states.h"
#include "run/planned_tasks.h"
#include "tensor/tensor.h"

namespace einrel::api {

/// What rank 0 measured of a run.
struct PlanFigures {
  double seconds = 0;
  std::int64_t spilled = 0;
  std::int64_t read_back = 0;
  std::vector<std::int64_t> received;  ///< bytes, by site
};
/// On all ranks: those that rank 0 gave.
PlanFigures from_rank_0(const Job& job, const PlanFigures& own);

/// On all ranks, which have the chunks that lie on their own site: each gets all others.
void share_outputs(const Job& job, const PlannedTasks& tasks, std::map<std::string, einrel::Tensor>& outputs);
/// The same of states, each a tensor for itself.
std::vector<einrel::Tensor> shared_states(const Job& job, const PlannedTasks& tasks, const KeptStates& states);

}  // namespace einrel::api
