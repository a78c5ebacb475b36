#pragma once

#include "kernel/kernel.h"

namespace einrel {

/// Z[...] = X[...] in another order or layout, elements as they are: transposes, chunks cut out of tensors and put
/// together again. Exact. Works on tiles that stay in the first-level cache where what is contiguous differs.
KernelInfo copy_kernel();

}  // namespace einrel
