#pragma once

#include <nlohmann/json_fwd.hpp>

#include "run/compile.h"

namespace einrel {

/// What a tensor is, by its name.
nlohmann::ordered_json tensor_json(const Shape& bound, DType dtype);

/// The program that runs: inputs, outputs, states with how they begin, scalars, and how each vertex is computed, its
/// formula as a tree. What follows from how it runs is left open.
nlohmann::ordered_json program_json(const Compiled& compiled);

}  // namespace einrel
