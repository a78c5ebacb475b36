#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>

#include "einsum/expr/functions.h"
#include "machine/processor.h"
#include "tensor/dtype.h"

namespace einrel {

// Loops over blocks of values: the only code that every element passes through. All but ramps, loads and stores may
// write over an argument of the result's type; else results and arguments do not overlap. A value is computed as float,
// double, int64 (i32 too) or Truth, and does not depend on its place in the block.

/// A bool, as it is stored: 1 or 0.
using Truth = std::uint8_t;

/// How many values are computed at a time: few enough that eight intermediate results of 4 bytes stay in the
/// first-level cache. What is reduced where it lies comes in longer blocks; loading and storing take any number.
inline constexpr std::size_t lanes_per_block = nominal_processor.first_cache / 32;

/// The loops for one instruction set; std::get finds one by its type. A and B are pointers to values, or to elements of
/// an operand that are bf16, or one number in the place of many.
struct BlockOps {
  template <class T>
  using Unary = void (*)(UnaryFunction function, const T* x, T* z, std::size_t n);
  template <class A, class B, class T>
  using Binary = void (*)(BinaryFunction function, A a, B b, T* z, std::size_t n);
  template <class T>
  using Compare = void (*)(BinaryFunction function, const T* a, const T* b, Truth* z, std::size_t n);
  template <class T>
  using Select = void (*)(const Truth* c, const T* a, const T* b, T* z, std::size_t n);
  template <class From, class To>
  using Convert = void (*)(DType to, const From* x, To* z, std::size_t n);

  std::tuple<Unary<float>, Unary<double>, Unary<std::int64_t>> unary;
  std::tuple<Binary<const float*, const float*, float>, Binary<const float*, float, float>,
             Binary<float, const float*, float>, Binary<const double*, const double*, double>,
             Binary<const double*, double, double>, Binary<double, const double*, double>,
             Binary<const BFloat16*, const BFloat16*, float>, Binary<const BFloat16*, const float*, float>,
             Binary<const float*, const BFloat16*, float>, Binary<const BFloat16*, float, float>,
             Binary<float, const BFloat16*, float>, Binary<const std::int64_t*, const std::int64_t*, std::int64_t>,
             Binary<const Truth*, const Truth*, Truth>>
      binary;
  std::tuple<Compare<float>, Compare<double>, Compare<std::int64_t>, Compare<Truth>> compare;
  std::tuple<Select<float>, Select<double>, Select<std::int64_t>, Select<Truth>> select;
  std::tuple<Convert<float, float>, Convert<float, double>, Convert<float, std::int64_t>, Convert<float, Truth>,
             Convert<double, float>, Convert<double, double>, Convert<double, std::int64_t>, Convert<double, Truth>,
             Convert<std::int64_t, float>, Convert<std::int64_t, double>, Convert<std::int64_t, std::int64_t>,
             Convert<std::int64_t, Truth>, Convert<Truth, float>, Convert<Truth, double>, Convert<Truth, std::int64_t>,
             Convert<Truth, Truth>>
      convert;
  void (*ramp)(std::int64_t first, std::int64_t step, std::int64_t* z, std::size_t n);
};

/// Those for this processor.
const BlockOps& block_ops();

template <class T>
void apply_block(UnaryFunction function, const T* x, T* z, std::size_t n) {
  std::get<BlockOps::Unary<T>>(block_ops().unary)(function, x, z, n);
}

/// Every function but the comparisons; of truths the extremes alone.
template <class A, class B, class T>
void apply_block(BinaryFunction function, const A* a, const B* b, T* z, std::size_t n) {
  std::get<BlockOps::Binary<const A*, const B*, T>>(block_ops().binary)(function, a, b, z, n);
}
/// The same functions, except powers, of one number and every value of a block.
template <class A, class T>
void apply_block(BinaryFunction function, const A* a, T b, T* z, std::size_t n) {
  std::get<BlockOps::Binary<const A*, T, T>>(block_ops().binary)(function, a, b, z, n);
}
template <class B, class T>
void apply_block(BinaryFunction function, T a, const B* b, T* z, std::size_t n) {
  std::get<BlockOps::Binary<T, const B*, T>>(block_ops().binary)(function, a, b, z, n);
}

/// The comparisons.
template <class T>
void compare_block(BinaryFunction function, const T* a, const T* b, Truth* z, std::size_t n) {
  std::get<BlockOps::Compare<T>>(block_ops().compare)(function, a, b, z, n);
}

/// c ? a : b.
template <class T>
void select_block(const Truth* c, const T* a, const T* b, T* z, std::size_t n) {
  std::get<BlockOps::Select<T>>(block_ops().select)(c, a, b, z, n);
}

/// first, first + step, first + 2 * step, ...
inline void ramp_block(std::int64_t first, std::int64_t step, std::int64_t* z, std::size_t n) {
  block_ops().ramp(first, step, z, n);
}

/// x as a step of type `to` leaves it (f32 into floats, f64 into doubles, bool into truths, else into int64).
template <class From, class To>
void convert_block(DType to, const From* x, To* z, std::size_t n) {
  std::get<BlockOps::Convert<From, To>>(block_ops().convert)(to, x, z, n);
}

/// Elements that lie evenly spaced: `count` values of a block from lane `first` on, of which the first one is the
/// element `offset` of an operand. Or several rows of them, `row_step` elements apart and one after another in the
/// block.
struct ElementSpan {
  std::int64_t offset = 0;
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t rows = 1;
  std::int64_t row_step = 0;
};

/// The loops between values and elements, for one instruction set.
struct BlockMemory {
  template <class T>
  using Load = void (*)(DType stored, const std::byte* data, const ElementSpan* spans, std::size_t span_count,
                        std::int64_t step, T* z);
  template <class T>
  using Store = void (*)(DType stored, const T* x, std::byte* to, std::int64_t step, std::size_t n);
  template <class T>
  using Round = void (*)(DType to, const T* x, float* z, std::size_t n);

  std::tuple<Load<float>, Load<double>, Load<std::int64_t>, Load<Truth>> load;
  std::tuple<Store<float>, Store<double>, Store<std::int64_t>, Store<Truth>> store;
  std::tuple<Round<float>, Round<double>, Round<std::int64_t>> round;
};

/// Those for this processor.
const BlockMemory& block_memory();

/// z[i] = x[i] rounded once to `to`, bf16 or f16. z may be x.
template <class T>
void round_block(DType to, const T* x, float* z, std::size_t n) {
  std::get<BlockMemory::Round<T>>(block_memory().round)(to, x, z, n);
}

/// Loads spans whose elements are `step` apart, of type `stored`, at any alignment. bf16 and f16 load as float, f32 and
/// f64 as themselves, bool as Truth, the others as int64; every other pair is a Bug.
template <class T>
void load_block(DType stored, const std::byte* data, const ElementSpan* spans, std::size_t span_count,
                std::int64_t step, T* z) {
  std::get<BlockMemory::Load<T>>(block_memory().load)(stored, data, spans, span_count, step, z);
}

/// Rounds x as narrow<> does and stores it at every step-th element.
template <class T>
void store_block(DType stored, const T* x, std::byte* to, std::int64_t step, std::size_t n) {
  std::get<BlockMemory::Store<T>>(block_memory().store)(stored, x, to, step, n);
}

}  // namespace einrel
