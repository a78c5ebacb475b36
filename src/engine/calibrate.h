#pragma once

#include <cstddef>

#include "exec/starpu/job.h"
#include "plan/machine.h"

namespace einrel {

/// Measures what the model `seconds` is made of, in a few seconds: large products of matrices on one thread
/// (flops_per_core), an element-wise program beyond the caches on all of them (memory_bandwidth), many small tasks
/// (task_seconds), how much faster a rank is while the others on its machine wait (flops_alone, memory_alone) and,
/// between ranks 0 and 1 of a job, tensors of several sizes of which half has to come from the other
/// (network_bandwidth) and a chain of vertices of which half goes to and fro (network_latency). Without a second rank
/// these two stay as they are assumed of a laptop. All compute on as many threads as the rank that has least. On all
/// ranks of a job; the same result on each.
Machine calibrate(std::size_t own_threads, const Job& job);

}  // namespace einrel
