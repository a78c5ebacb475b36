#pragma once

#include <string>

#include "engine/compile.h"

namespace einrel {

/// The compiled program for people: each vertex with its formula, labels and extents, flops, share and bytes, then the
/// contraction orders with what they saved.
std::string explain_text(const Compiled& compiled);

/// "1.5 Gflop"
std::string flops_text(double flops);

}  // namespace einrel
