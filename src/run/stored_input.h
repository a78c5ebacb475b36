#pragma once

#include "einsum/check/check.h"
#include "exec/executors/executor.h"
#include "tensor/stored_tensor.h"

namespace einrel {

/// What the checks need to know of a file.
BoundInput describe(const StoredTensor& file);

/// An input as a file has it: used where it lies if it can be, else converted where it is needed. `file` must outlive
/// it.
InputSource source_of(const StoredTensor& file, DType dtype);

}  // namespace einrel
