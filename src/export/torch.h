#pragma once

#include <string>

#include "run/compare_plans.h"
#include "run/compile.h"

namespace einrel {

/// module_source for PyTorch: a module that imports torch and numpy alone, for one process of each device.
std::string torch_source(const Compiled& compiled, const PlanReport& report);

}  // namespace einrel
