#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "export/jax_expr.h"

/// The parts of an exported module that are the same for every program.
namespace einrel {

/// The functions that formulas call.
std::string jax_helpers_text(const JaxHelpers& helpers);
/// make_mesh, place, step and initial_states, over a mesh of these sizes.
std::string jax_frame_text(const std::vector<std::int64_t>& sizes);
/// What runs where the module is the program.
std::string jax_main_text();

}  // namespace einrel
