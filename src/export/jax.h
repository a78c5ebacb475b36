#pragma once

#include <string>

#include "run/compare_plans.h"
#include "run/compile.h"

namespace einrel {

/// module_source for JAX: a module that imports jax and numpy alone.
std::string jax_source(const Compiled& compiled, const PlanReport& report);

}  // namespace einrel
