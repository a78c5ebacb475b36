#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace einrel {

// NaN propagates through every function, as in NumPy. Integer arithmetic is modulo 2^64 (i64) or 2^32 (i32).

enum class UnaryFunction : std::uint8_t {
  negate,
  abs,
  exp,
  log,
  log1p,
  expm1,
  sqrt,
  rsqrt,
  sq,
  tanh,
  sigmoid,
  relu,
  step,
  gelu,
  silu,
  erf,
  sin,
  cos,
  floor,
  stop_gradient  // in no graph that check() returns: only gradients look at it
};

enum class BinaryFunction : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  power,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  maximum,
  minimum
};

/// How a vertex reduces over its aggregated labels (the paper's (+), EinDecomp section 3).
enum class Reducer : std::uint8_t { sum, prod, max, min, mean, any, all, argmax, argmin, logsumexp };

/// Linear algebra on whole matrices that no EinSum expresses.
enum class OpaqueFunction : std::uint8_t { inverse, qr };

/// One of the results that it has, as the language names them: qr_q, qr_r.
struct OpaqueResult {
  OpaqueFunction function = OpaqueFunction::inverse;
  std::uint8_t output = 0;
  bool operator==(const OpaqueResult&) const = default;
};

/// All results of one call.
std::vector<OpaqueResult> results_of(OpaqueFunction function);

/// How many labels a matrix has: rows and columns, and of qr the label between its two factors, whose extent is the
/// smaller of both.
std::size_t matrix_labels(OpaqueFunction function);

/// Which of these labels, by position, are the last dimensions of a result: of qr_q rows and the one between.
std::array<std::size_t, 2> matrix_dimensions(OpaqueResult result);

/// Random numbers that are functions of where they stand (random_number.h).
enum class RandomFunction : std::uint8_t { uniform, normal };

/// One row of `einrel list functions`.
struct FunctionInfo {
  std::string_view name;
  std::string_view usage;
  std::string_view meaning;
};

std::optional<UnaryFunction> unary_named(std::string_view name);    // by name; negate has none
std::optional<BinaryFunction> binary_named(std::string_view name);  // max and min only; the rest are operators
std::optional<Reducer> reducer_named(std::string_view name);
std::optional<OpaqueResult> opaque_named(std::string_view name);
/// By the name under which it takes a seed: "uniform".
std::optional<RandomFunction> random_named(std::string_view name);
/// By the name under which it takes a place: "uniform_at".
std::optional<RandomFunction> random_at_named(std::string_view name);

std::string_view name_of(UnaryFunction function);
/// The operator sign ("+", "<=", ...), or "max" and "min".
std::string_view name_of(BinaryFunction function);
std::string_view name_of(Reducer reducer);
std::string_view name_of(OpaqueResult result);
std::string_view name_of(RandomFunction function);

constexpr bool is_comparison(BinaryFunction f) { return f >= BinaryFunction::less && f <= BinaryFunction::not_equal; }

/// True when an integer argument stays an integer: the others compute in a float type.
constexpr bool keeps_integers(UnaryFunction f) {
  return f == UnaryFunction::negate || f == UnaryFunction::abs || f == UnaryFunction::sq || f == UnaryFunction::relu ||
         f == UnaryFunction::step || f == UnaryFunction::floor || f == UnaryFunction::stop_gradient;
}

/// The type of a reduction over values of type `operand`: bool is counted as i64 by sum and prod,
/// mean and logsumexp of integers give f64, any and all give bool, argmax and argmin i64; else `operand`.
DType reduced_type(Reducer reducer, DType operand);

/// What a reducer puts between two partial results; nothing where there is none or it cannot go on from one.
std::optional<BinaryFunction> continuation(std::optional<Reducer> reducer);

/// The exact value over doubles.
double apply(UnaryFunction function, double x);
double apply(BinaryFunction function, double a, double b);
/// The exact value over integers modulo 2^64; power with a negative exponent gives 0 unless the base is 1 or -1.
std::int64_t apply(UnaryFunction function, std::int64_t x);
std::int64_t apply(BinaryFunction function, std::int64_t a, std::int64_t b);

/// Every function, operator, reduction and built-in macro of the language.
const std::vector<FunctionInfo>& all_functions();

}  // namespace einrel
