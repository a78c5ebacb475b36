#pragma once

#include <cstddef>

// Loops that the compiler makes vectors of. They stand in files that Highway includes once for every instruction set.

// Before a loop whose iterations do not depend on each other: what it reads and what it writes may be the same.
#if defined(__clang__)
#define EINREL_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define EINREL_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace einrel {

// What such loops call must be inlined into each of them.

/// z[i] = function(arguments[i]...), where arguments are pointers, or else have their values by index. z may be one of
/// the arguments; else they do not overlap.
template <class Function, class Result, class... Arguments>
[[gnu::always_inline]] inline void map_values(std::size_t n, Result* z, Function function, Arguments... arguments) {
  EINREL_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < n; ++i) z[i] = function(arguments[i]...);
}

}  // namespace einrel
