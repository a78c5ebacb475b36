// The kernels of dot products.

#include "kernel/products/dot_tile.h"

#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "kernel/targets.h"
#include "machine/processor.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/products/dot_tile.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "kernel/products/vector_ops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::contraction::HWY_NAMESPACE {
namespace {

/// All lanes as one value, always in the same order.
template <Reduce reduce, class T>
HWY_INLINE T across_lanes(Vector<T> values) {
  const Tag<T> d;
  if constexpr (reduce == Reduce::sum) {
    return hn::GetLane(hn::SumOfLanes(d, values));
  } else {
    HWY_ALIGN T lanes[vector_lanes<T>];
    hn::Store(values, d, lanes);
    const hn::CappedTag<T, 1> one;
    auto held = hn::LoadU(one, lanes);
    for (std::size_t l = 1; l < vector_lanes<T>; ++l) held = reduced<reduce, true>(held, hn::LoadU(one, lanes + l));
    return hn::GetLane(held);
  }
}

/// The last elements of a line, less than a vector of them; the other lanes are 0.
template <class T, class Stored>
HWY_INLINE Vector<T> load_rest(const Stored* from, const FirstLanes<Tag<T>>& rest, std::int64_t count) {
  if constexpr (std::is_same_v<T, Stored>) {
    return rest.load(from);
  } else {
    HWY_ALIGN T lanes[vector_lanes<T>] = {};
    for (std::int64_t l = 0; l < count; ++l) lanes[l] = load_one(from + l);
    return hn::Load(Tag<T>(), lanes);
  }
}

template <class T, class Stored, Join join, Reduce reduce, std::size_t rows, std::size_t columns>
void dot_tile(const DotTile<T, Stored>& task) {
  const Tag<T> d;
  constexpr std::int64_t lanes = vector_lanes<T>;
  Vector<T> held[rows][columns];
  HWY_UNROLL(8)
  for (std::size_t r = 0; r < rows; ++r) {
    HWY_UNROLL(4)
    for (std::size_t c = 0; c < columns; ++c) held[r][c] = hn::Set(d, identity<T, reduce>());
  }
  // Rows end, or come side by side, too soon for the processor to foresee them.
  constexpr std::size_t ahead = nominal_processor.page_bytes / rows / sizeof(Stored);
  const std::int64_t whole = task.inner / lanes * lanes;
  const FirstLanes<Tag<T>> rest(task.inner - whole);
  for (std::int64_t o = 0; o < task.outer; ++o) {
    const Stored* const a = task.a + task.a_outer[o];
    const T* const b = task.b + task.b_outer[o];
    for (std::int64_t p = 0; p < whole; p += lanes) {
      Vector<T> of_b[columns];
      HWY_UNROLL(4)
      for (std::int64_t c = 0; c < std::int64_t{columns}; ++c) of_b[c] = hn::LoadU(d, b + c * task.b_column + p);
      HWY_UNROLL(8)
      for (std::int64_t r = 0; r < std::int64_t{rows}; ++r) {
        const Stored* const of_row = a + r * task.a_row + p;
        hwy::Prefetch(of_row + ahead);
        const Vector<T> of_a = load_vector(d, of_row);
        HWY_UNROLL(4)
        for (std::size_t c = 0; c < columns; ++c) held[r][c] = step<join, reduce, true>(held[r][c], of_a, of_b[c]);
      }
    }
    if (whole == task.inner) continue;
    Vector<T> of_b[columns];
    HWY_UNROLL(4)
    for (std::int64_t c = 0; c < std::int64_t{columns}; ++c) of_b[c] = rest.load(b + c * task.b_column + whole);
    HWY_UNROLL(8)
    for (std::int64_t r = 0; r < std::int64_t{rows}; ++r) {
      const Vector<T> of_a = load_rest<T>(a + r * task.a_row + whole, rest, task.inner - whole);
      HWY_UNROLL(4)
      for (std::size_t c = 0; c < columns; ++c) {
        held[r][c] = rest.select(step<join, reduce, true>(held[r][c], of_a, of_b[c]), held[r][c]);
      }
    }
  }
  HWY_UNROLL(8)
  for (std::size_t r = 0; r < rows; ++r) {
    HWY_UNROLL(4)
    for (std::size_t c = 0; c < columns; ++c) task.results[r * columns + c] = across_lanes<reduce, T>(held[r][c]);
  }
}

template <class T, class Stored, Join join, Reduce reduce>
DotKernels<T, Stored> new_dot_kernels() {
  DotKernels<T, Stored> kernels;
  kernels.instructions = instruction_set();
  kernels.vector = vector_lanes<T>;
  kernels.functions[0][0] = dot_tile<T, Stored, join, reduce, 1, 1>;
  if constexpr (join == Join::multiply && reduce == Reduce::sum && hwy::IsFloat<T>()) {
    kernels.functions[0] = {kernels.functions[0][0], dot_tile<T, Stored, join, reduce, 1, 2>,
                            dot_tile<T, Stored, join, reduce, 1, 4>};
    kernels.functions[1] = {dot_tile<T, Stored, join, reduce, 2, 1>, dot_tile<T, Stored, join, reduce, 2, 2>,
                            dot_tile<T, Stored, join, reduce, 2, 4>};
    kernels.functions[2] = {dot_tile<T, Stored, join, reduce, 4, 1>, dot_tile<T, Stored, join, reduce, 4, 2>, nullptr};
    kernels.functions[3] = {dot_tile<T, Stored, join, reduce, 8, 1>, nullptr, nullptr};
    if constexpr (tile_rows > 6) {
      kernels.functions[2][2] = dot_tile<T, Stored, join, reduce, 4, 4>;
      kernels.functions[3][1] = dot_tile<T, Stored, join, reduce, 8, 2>;
    }
  }
  return kernels;
}

template <class T, class Stored, Join join, Reduce reduce>
const DotKernels<T, Stored>& dot_kernels_of() {
  static const DotKernels<T, Stored> kernels = new_dot_kernels<T, Stored, join, reduce>();
  return kernels;
}

template <class T>
const DotKernels<T, T>& dot_kernels_for(Combination combination) {
  const DotKernels<T, T>* found = nullptr;
  with_combination(combination, [&]<Join join, Reduce reduce>() { found = &dot_kernels_of<T, T, join, reduce>(); });
  invariant(found != nullptr, "a combination without kernels is refused");
  return *found;
}
template <class Stored>
const DotKernels<float, Stored>& dot_kernels_of_narrow(Combination combination) {
  invariant(combination == Combination{}, "only products of narrow floats have kernels");
  return dot_kernels_of<float, Stored, Join::multiply, Reduce::sum>();
}

const DotKernels<float, float>& dot_f32(Combination combination) { return dot_kernels_for<float>(combination); }
const DotKernels<double, double>& dot_f64(Combination combination) { return dot_kernels_for<double>(combination); }
const DotKernels<std::int32_t, std::int32_t>& dot_i32(Combination combination) {
  return dot_kernels_for<std::int32_t>(combination);
}
const DotKernels<std::int64_t, std::int64_t>& dot_i64(Combination combination) {
  return dot_kernels_for<std::int64_t>(combination);
}
const DotKernels<float, BFloat16>& dot_bf16(Combination combination) {
  return dot_kernels_of_narrow<BFloat16>(combination);
}
const DotKernels<float, Float16>& dot_f16(Combination combination) {
  return dot_kernels_of_narrow<Float16>(combination);
}

}  // namespace
}  // namespace einrel::contraction::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel::contraction {

HWY_EXPORT(dot_f32);
HWY_EXPORT(dot_f64);
HWY_EXPORT(dot_i32);
HWY_EXPORT(dot_i64);
HWY_EXPORT(dot_bf16);
HWY_EXPORT(dot_f16);

template <>
const DotKernels<float, float>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_f32)(combination);
}
template <>
const DotKernels<double, double>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_f64)(combination);
}
template <>
const DotKernels<std::int32_t, std::int32_t>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_i32)(combination);
}
template <>
const DotKernels<std::int64_t, std::int64_t>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_i64)(combination);
}
template <>
const DotKernels<float, BFloat16>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_bf16)(combination);
}
template <>
const DotKernels<float, Float16>& dot_kernels(Combination combination) {
  return HWY_DYNAMIC_DISPATCH(dot_f16)(combination);
}

}  // namespace einrel::contraction
#endif
