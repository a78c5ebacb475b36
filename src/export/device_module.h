#pragma once

#include <string>

#include "export/array_library.h"
#include "run/compare_plans.h"
#include "run/compile.h"

namespace einrel {

/// A plan that one program over a mesh says (plan/spmd.h) as a module of Python for a library: the program of every
/// device, with the collectives that the plan counts. PREDICTED_BYTES in it are the plan's, of all devices in one step.
/// Throws UserError that names what cannot be written, and why, each once.
std::string module_source(const Compiled& compiled, const PlanReport& report, const ArrayLibrary& library);

}  // namespace einrel
