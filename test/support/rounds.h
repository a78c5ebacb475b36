#pragma once

namespace einrel::test {

/// How often a random test does what it does: all times, but a third of them under sanitizers, which take ten times as
/// long and look for what any of them shows.
#ifdef __SANITIZE_ADDRESS__
constexpr int rounds(int all) { return all / 3; }
#else
constexpr int rounds(int all) { return all; }
#endif

}  // namespace einrel::test
