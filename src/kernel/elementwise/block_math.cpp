#include "kernel/elementwise/block_math.h"

#include <algorithm>

namespace einrel {
namespace {

/// A multiple of the lanes of every vector. Blocks are computed in whole groups, so that every value goes through the
/// vector functions, wherever it stands.
constexpr std::size_t group = 16;

/// Calls `loop` with whole groups: with a copy of the last values, filled up, where they are fewer.
template <class Loop, class T, class... Arguments>
void for_groups(Loop loop, std::size_t n, T* z, const Arguments*... arguments) {
  const std::size_t whole = n - n % group;
  loop(whole, z, arguments...);
  if (whole == n) return;
  struct Group {
    alignas(64) T values[group];
    Group(const T* from, std::size_t count) {
      std::copy_n(from, count, values);
      std::fill(values + count, values + group, from[0]);
    }
  };
  alignas(64) T results[group];
  loop(group, results, Group(arguments + whole, n - whole).values...);
  std::copy_n(results, n - whole, z + whole);
}

}  // namespace

template <class T>
void approximate(UnaryFunction function, const T* x, T* z, std::size_t n) {
  const auto loop = std::get<BlockMath::Function<T>>(block_math().functions);
  for_groups([=](std::size_t count, T* to, const T* from) { loop(function, from, to, count); }, n, z, x);
}
template void approximate(UnaryFunction, const float*, float*, std::size_t);
template void approximate(UnaryFunction, const double*, double*, std::size_t);

template <class T>
void approximate_powers(const T* a, const T* b, T* z, std::size_t n) {
  const auto loop = std::get<BlockMath::Power<T>>(block_math().powers);
  for_groups([=](std::size_t count, T* to, const T* x, const T* y) { loop(x, y, to, count); }, n, z, a, b);
}
template void approximate_powers(const float*, const float*, float*, std::size_t);
template void approximate_powers(const double*, const double*, double*, std::size_t);

}  // namespace einrel
