#pragma once

#include <string>

#include "run/compare_plans.h"
#include "run/compile.h"

namespace einrel {

/// A plan that one program over a mesh says (plan/spmd.h) as a module of Python that imports jax and numpy alone: the
/// program of every device, with the collectives that the plan counts. PREDICTED_BYTES in it are the plan's, of all
/// devices in one step. Throws UserError that names what JAX has nothing for, and why, each once.
std::string jax_source(const Compiled& compiled, const PlanReport& report);

}  // namespace einrel
