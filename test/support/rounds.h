#pragma once

#include "support/sanitizers.h"

namespace einrel::test {

/// How often a random test does what it does: all times, but a sixth of them under sanitizers, which take ten times as
/// long and look for what any of them shows.
inline int rounds(int all) { return is_sanitized() ? all / 6 : all; }

}  // namespace einrel::test
