#include "kernel/cpu/contraction/window_tile.h"

#include <utility>

#include "kernel/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/contraction/window_tile.cpp"
#include "hwy/foreach_target.h"
#include "kernel/cpu/contraction/vector_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {
namespace {

/// Rows of one position.
template <class T>
struct RowsApart {
  const T* begin;
  std::int64_t step;
  HWY_INLINE T at(std::size_t row, std::size_t /*slot*/) const { return begin[static_cast<std::int64_t>(row) * step]; }
};

// Sums that must stay in registers: as functions of their own the loops would spill them.
// NOLINTBEGIN(readability-function-cognitive-complexity)
template <class T, std::size_t rows, std::size_t vectors>
void window_tile(const WindowTile<T>& given) {
  const Tag<T> d;
  constexpr std::size_t lanes = vector_lanes<T>;
  const WindowTile<T> task = given;  // a copy, since stores through `z` might change what is given
  Vector<T> sums[rows][vectors];
  HWY_UNROLL(14)
  for (std::size_t r = 0; r < rows; ++r) {
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(d);
  }
  const T* b = task.b;
  std::int64_t p = 0;  // in steps of two, as packed_tile
  const auto rows_at = [&](std::int64_t position) { return RowsApart<T>{task.a + task.a_inner[position], task.a_row}; };
  for (; p + 2 <= task.inner; p += 2, b += 2 * vectors * lanes) {
    add_slot<T, Join::multiply, Reduce::sum, false>(sums, rows_at(p), 0, b);
    add_slot<T, Join::multiply, Reduce::sum, false>(sums, rows_at(p + 1), 0, b + vectors * lanes);
  }
  if (p < task.inner) add_slot<T, Join::multiply, Reduce::sum, false>(sums, rows_at(p), 0, b);
  const Vector<T> scale = hn::Set(d, task.scale);
  HWY_UNROLL(14)
  for (std::size_t r = 0; r < rows; ++r) {
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < vectors; ++v) {
      T* const z = task.z + (r * vectors + v) * lanes;
      Vector<T> sum = hn::Mul(sums[r][v], scale);
      if (task.accumulate) sum = hn::Add(hn::LoadU(d, z), sum);
      hn::StoreU(sum, d, z);
    }
  }
}
// NOLINTEND(readability-function-cognitive-complexity)

template <class T, std::size_t... row>
WindowKernels<T> kernels_of(std::index_sequence<row...>) {
  WindowKernels<T> kernels;
  kernels.rows = sizeof...(row);
  kernels.vector = vector_lanes<T>;
  kernels.instructions = instruction_set();
  ((kernels.functions[row] = {window_tile<T, row + 1, 1>, window_tile<T, row + 1, 2>}), ...);
  return kernels;
}

const WindowKernels<float>& windows_f32() {
  static const WindowKernels<float> kernels = kernels_of<float>(std::make_index_sequence<tile_rows>());
  return kernels;
}
const WindowKernels<double>& windows_f64() {
  static const WindowKernels<double> kernels = kernels_of<double>(std::make_index_sequence<tile_rows>());
  return kernels;
}

}  // namespace
}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel::contraction {

HWY_EXPORT(windows_f32);
HWY_EXPORT(windows_f64);

template <>
const WindowKernels<float>& window_kernels() {
  return HWY_DYNAMIC_DISPATCH(windows_f32)();
}

template <>
const WindowKernels<double>& window_kernels() {
  return HWY_DYNAMIC_DISPATCH(windows_f64)();
}

}  // namespace einrel::contraction
#endif
