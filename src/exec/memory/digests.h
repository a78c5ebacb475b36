#pragma once

#include <cstdint>

#include "exec/executors/executor.h"
#include "exec/tasks/task_graph.h"

namespace einrel {

/// Of the elements of an input, however they lie (base/digest.h): of all of them or, where that is more than 256 MiB,
/// of as many that are spread over it; of what is made where it is needed, 64 KiB.
std::uint64_t digest_of(const InputSource& source, DType dtype, const Shape& bound);

/// Of all that every site has to do, but for what the kernels compute.
std::uint64_t digest_of(const TaskGraph& graph);

}  // namespace einrel
