#pragma once

#include <cstddef>

// A function marked EINREL_VECTOR_CLONES is compiled several times and the loader picks what the processor can do: as
// it is, for AVX2 and for AVX-512. (clang 14 chooses wrongly among whole levels of the architecture, so it is told
// single features. ThreadSanitizer cannot start programs that choose functions at load time.)
#if defined(__has_feature)
#define EINREL_UNDER_TSAN __has_feature(thread_sanitizer)
#elif defined(__SANITIZE_THREAD__)
#define EINREL_UNDER_TSAN 1
#else
#define EINREL_UNDER_TSAN 0
#endif

#if !defined(__x86_64__) || !defined(__linux__) || EINREL_UNDER_TSAN
#define EINREL_VECTOR_CLONES
#elif defined(__clang__)
#define EINREL_VECTOR_CLONES [[gnu::target_clones("default", "avx2", "avx512f")]]
#else
#define EINREL_VECTOR_CLONES [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#endif

// Before a loop whose iterations do not depend on each other: what it reads and what it writes may be the same.
#if defined(__clang__)
#define EINREL_INDEPENDENT_ITERATIONS _Pragma("clang loop vectorize(assume_safety)")
#else
#define EINREL_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#endif

namespace einrel {

// Clones cannot be templates, and what they call must be inlined into each of them.

/// z[i] = function(arguments[i]...). z may be one of the arguments; else they do not overlap.
template <class Function, class Result, class... Arguments>
[[gnu::always_inline]] inline void map_values(std::size_t n, Result* z, Function function,
                                              const Arguments*... arguments) {
  EINREL_INDEPENDENT_ITERATIONS
  for (std::size_t i = 0; i < n; ++i) z[i] = function(arguments[i]...);
}

}  // namespace einrel
