#pragma once

#include <cstddef>
#include <cstdint>

#include "einsum/functions.h"
#include "machine/processor.h"
#include "tensor/dtype.h"

namespace einrel {

// Loops over blocks of values: the only code that every element passes through. All but ramps, loads and stores may
// write over an argument of the result's type; else results and arguments do not overlap. A value is computed as float,
// double or int64 (bool and i32 too), and does not depend on its place in the block.

/// How many values are computed at a time: few enough that eight intermediate results of 4 bytes stay in the
/// first-level cache. What is reduced where it lies comes in longer blocks; loading and storing take any number.
inline constexpr std::size_t lanes_per_block = nominal_processor.first_cache / 32;

void apply_block(UnaryFunction function, const float* x, float* z, std::size_t n);
void apply_block(UnaryFunction function, const double* x, double* z, std::size_t n);
void apply_block(UnaryFunction function, const std::int64_t* x, std::int64_t* z, std::size_t n);

/// Every function but the comparisons.
void apply_block(BinaryFunction function, const float* a, const float* b, float* z, std::size_t n);
void apply_block(BinaryFunction function, const double* a, const double* b, double* z, std::size_t n);
void apply_block(BinaryFunction function, const std::int64_t* a, const std::int64_t* b, std::int64_t* z, std::size_t n);

/// The same functions, except powers, of one number and every value of a block.
void apply_block(BinaryFunction function, const float* a, float b, float* z, std::size_t n);
void apply_block(BinaryFunction function, const double* a, double b, double* z, std::size_t n);
void apply_block(BinaryFunction function, float a, const float* b, float* z, std::size_t n);
void apply_block(BinaryFunction function, double a, const double* b, double* z, std::size_t n);

/// The same, where some or all values are elements of an operand.
void apply_block(BinaryFunction function, const BFloat16* a, const BFloat16* b, float* z, std::size_t n);
void apply_block(BinaryFunction function, const BFloat16* a, const float* b, float* z, std::size_t n);
void apply_block(BinaryFunction function, const float* a, const BFloat16* b, float* z, std::size_t n);
void apply_block(BinaryFunction function, const BFloat16* a, float b, float* z, std::size_t n);
void apply_block(BinaryFunction function, float a, const BFloat16* b, float* z, std::size_t n);

/// The comparisons: 1 or 0.
void compare_block(BinaryFunction function, const float* a, const float* b, std::int64_t* z, std::size_t n);
void compare_block(BinaryFunction function, const double* a, const double* b, std::int64_t* z, std::size_t n);
void compare_block(BinaryFunction function, const std::int64_t* a, const std::int64_t* b, std::int64_t* z,
                   std::size_t n);

/// c != 0 ? a : b.
void select_block(const std::int64_t* c, const float* a, const float* b, float* z, std::size_t n);
void select_block(const std::int64_t* c, const double* a, const double* b, double* z, std::size_t n);
void select_block(const std::int64_t* c, const std::int64_t* a, const std::int64_t* b, std::int64_t* z, std::size_t n);

/// first, first + step, first + 2 * step, ...
void ramp_block(std::int64_t first, std::int64_t step, std::int64_t* z, std::size_t n);

/// x as a step of type `to` leaves it (f32 into floats, f64 into doubles, else into int64).
void convert_block(DType to, const float* x, float* z, std::size_t n);
void convert_block(DType to, const float* x, double* z, std::size_t n);
void convert_block(DType to, const float* x, std::int64_t* z, std::size_t n);
void convert_block(DType to, const double* x, float* z, std::size_t n);
void convert_block(DType to, const double* x, double* z, std::size_t n);
void convert_block(DType to, const double* x, std::int64_t* z, std::size_t n);
void convert_block(DType to, const std::int64_t* x, float* z, std::size_t n);
void convert_block(DType to, const std::int64_t* x, double* z, std::size_t n);
void convert_block(DType to, const std::int64_t* x, std::int64_t* z, std::size_t n);

/// z[i] = x[i] rounded once to `to`, bf16 or f16. z may be x.
void round_block(DType to, const float* x, float* z, std::size_t n);
void round_block(DType to, const double* x, float* z, std::size_t n);
void round_block(DType to, const std::int64_t* x, float* z, std::size_t n);

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

/// Loads spans whose elements are `step` apart, of type `stored`, at any alignment. bf16 and f16 load as float, f32 and
/// f64 as themselves, the others as int64; every other pair is a Bug.
void load_block(DType stored, const std::byte* data, const ElementSpan* spans, std::size_t span_count,
                std::int64_t step, float* z);
void load_block(DType stored, const std::byte* data, const ElementSpan* spans, std::size_t span_count,
                std::int64_t step, double* z);
void load_block(DType stored, const std::byte* data, const ElementSpan* spans, std::size_t span_count,
                std::int64_t step, std::int64_t* z);

/// Rounds x as narrow<> does and stores it at every step-th element.
void store_block(DType stored, const float* x, std::byte* to, std::int64_t step, std::size_t n);
void store_block(DType stored, const double* x, std::byte* to, std::int64_t step, std::size_t n);
void store_block(DType stored, const std::int64_t* x, std::byte* to, std::int64_t step, std::size_t n);

}  // namespace einrel
