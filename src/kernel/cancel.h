#pragma once

#include "base/error.h"

namespace einrel {

/// The run was asked to stop.
class Stopped : public RunError {
 public:
  using RunError::RunError;
};

/// Throws Stopped once the run that this thread computes for is to stop (Workers::cancel_on). Kernels call it between
/// pieces of their work that take no longer than some milliseconds, however long a part takes; of a microsecond's piece
/// it takes a hundredth.
void throw_if_cancelled();

}  // namespace einrel
