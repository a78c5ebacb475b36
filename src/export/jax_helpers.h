#pragma once

#include <string>

#include "export/jax_expr.h"

/// The parts of an exported module that are the same for every program.
namespace einrel {

/// The functions that formulas call.
std::string jax_helpers_text(const JaxHelpers& helpers);
/// make_mesh, place, step and initial_states.
std::string jax_frame_text();
/// What runs where the module is the program.
std::string jax_main_text();

}  // namespace einrel
