#pragma once

#include "kernel/cpu/contraction/packed_plan.h"
#include "kernel/kernel.h"

namespace einrel::contraction {

/// One stage of plan.parts() parts.
PreparedKernel prepare(PackedPlan plan);

}  // namespace einrel::contraction
