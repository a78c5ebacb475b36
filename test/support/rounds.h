#pragma once

#include <cstddef>

#include "support/sanitizers.h"

namespace einrel::test {

/// How often a random test does what it does: all times, but a sixth of them under sanitizers, which take ten times as
/// long and look for what any of them shows.
inline int rounds(int all) { return is_sanitized() ? all / 6 : all; }

/// Whether a case came up more than `least` times in all rounds; fewer rounds say nothing about that.
inline bool came_up(std::size_t count, std::size_t least) { return is_sanitized() || count > least; }

}  // namespace einrel::test
