#pragma once

#include <cstddef>

#include "exec/job/job.h"
#include "machine/machine.h"

namespace einrel {

/// Measures what the model `seconds` is made of, in a few seconds: large products of matrices on one thread
/// (flops_per_core), an element-wise program beyond the caches on all of them (memory_bandwidth), many small tasks
/// (task_seconds), kernels on all threads (kernel_times), what the system says of the second-level cache and of memory,
/// how much faster a rank is while the others on its machine wait (flops_alone, memory_alone) and, between ranks of a
/// job that are as far apart as can be, a chain of vertices of which half goes to and fro (network_latency), a matrix
/// of which up to 16 ranks receive all but a part at once (network_bandwidth), and vectors of which one rank receives
/// half while the others wait (network_alone). Without a second rank what is of the network stays as it is assumed of a
/// laptop. All compute on as many threads as the rank that has least. On all ranks of a job; the same result on each.
/// It holds for as many ranks: they share what a node has.
Machine calibrate(std::size_t own_threads, const Job& job);

}  // namespace einrel
