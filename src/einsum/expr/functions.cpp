#include "einsum/expr/functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

#include "base/error.h"
#include "einsum/expr/complex_function.h"
#include "einsum/expr/whole_number.h"

namespace einrel {
namespace {

// The rows stand in the order of their enumerations.
constexpr std::array unary_rows{
#define EINREL_UNARY(id, name, usage, meaning, ...) FunctionInfo{name, usage, meaning},
#include "einsum/expr/functions.def"
};

constexpr std::array binary_rows{
#define EINREL_BINARY(id, name, usage, meaning, ...) FunctionInfo{name, usage, meaning},
#include "einsum/expr/functions.def"
};

constexpr std::array other_rows{
    FunctionInfo{"where", "where(c, a, b)", "a where c is not 0, else b"},
    FunctionInfo{"pad", "pad(X[i+1], v)", "X, with the number v where an index lies outside its bound"},
    FunctionInfo{
        "in_range_at", "in_range_at(x, position, T[8], E[5])",
        "x, where it is a position of 5; else the run ends: it is that position of T, of shape 8, and indexes E"},
    FunctionInfo{"f32", "f32(x)", "x as f32, rounded to nearest; f64, bf16 and f16 likewise"},
    FunctionInfo{"i32", "i32(x)", "x as i32: floats truncate and saturate, i64 wraps; i64 likewise"},
    FunctionInfo{"bool", "bool(x)", "x != 0"},
};

constexpr std::array random_rows{
    FunctionInfo{"uniform", "uniform(seed)", "a random number from 0 up to, but not including, 1"},
    FunctionInfo{"normal", "normal(seed)", "a random number of mean 0 and deviation 1"},
};
static_assert(random_rows.size() == static_cast<std::size_t>(RandomFunction::normal) + 1);

constexpr std::array random_at_rows{
    FunctionInfo{"uniform_at", "uniform_at(seed, position, iteration, stream)",
                 "uniform(seed) at a position of a tensor with that stream"},
    FunctionInfo{"normal_at", "normal_at(seed, position, iteration, stream)",
                 "normal(seed) at a position of a tensor with that stream"},
};
static_assert(random_at_rows.size() == random_rows.size());

constexpr std::array reducer_rows{
#define EINREL_REDUCER(id, name, usage, meaning, ...) FunctionInfo{name, usage, meaning},
#include "einsum/expr/functions.def"
};

/// The columns of a reducer that others ask for one at a time.
struct ReducerRow {
  ReducedAs result{};
  ReducerTrait traits{};
  Kept kept{};
  double start = 0;
  PartialResults partial;
  std::optional<BinaryFunction> continues;
};

template <class A = double>
constexpr std::array reducers{
#define EINREL_REDUCER(id, name, usage, meaning, result, traits, kept, start, each, fold, continues, ...) \
  ReducerRow{ReducedAs::result, ReducerTrait::traits, Kept::kept, start, {Reducer::each, fold}, continues},
#include "einsum/expr/functions.def"
};

constexpr const ReducerRow& row_of(Reducer reducer) { return reducers<>[static_cast<std::size_t>(reducer)]; }

constexpr std::array opaque_rows{
    FunctionInfo{"inverse", "inverse[i,j](x)", "the inverse of the matrices x with rows i and columns j; f32 and f64"},
    FunctionInfo{"qr_q", "qr_q[i,j,k](x)",
                 "at [i,k], Q of x = Q R: its columns are orthonormal; k is as long as the shorter of i and j"},
    FunctionInfo{"qr_r", "qr_r[i,j,k](x)", "at [k,j], R of x = Q R: upper triangular"},
};
/// What the rows name.
constexpr std::array opaque_results{OpaqueResult{OpaqueFunction::inverse, 0}, OpaqueResult{OpaqueFunction::qr, 0},
                                    OpaqueResult{OpaqueFunction::qr, 1}};
static_assert(opaque_rows.size() == opaque_results.size());

constexpr std::array complex_rows{
    FunctionInfo{"complex", "complex(a, b)", "the complex number a + b i"},
    FunctionInfo{"conj", "conj(z)", "the complex conjugate of z"},
    FunctionInfo{"real", "real(z)", "the real part of z"},
    FunctionInfo{"imag", "imag(z)", "the imaginary part of z"},
    FunctionInfo{"c64", "c64(x)", "x as a complex number of two f32; c128 of two f64"},
};
static_assert(complex_rows.size() == static_cast<std::size_t>(ComplexFunction::imag) + 2);

template <class Function, std::size_t count>
std::optional<Function> named(const std::array<FunctionInfo, count>& rows, std::size_t first, std::string_view name) {
  const auto row = std::find_if(rows.begin() + static_cast<std::ptrdiff_t>(first), rows.end(),
                                [&](const FunctionInfo& info) { return info.name == name; });
  if (row == rows.end()) return std::nullopt;
  return static_cast<Function>(row - rows.begin());
}

/// Written so that exp never overflows.
double sigmoid(double x) {
  const double e = std::exp(-std::abs(x));
  return (x >= 0 ? 1 : e) / (1 + e);
}

/// 1 + erf(x / sqrt(2)) cancels for negative x; erfc does not. The limit at -inf is 0, where the formula has inf * 0.
double gelu(double x) {
  if (x == -std::numeric_limits<double>::infinity()) return 0;
  return x / 2 * std::erfc(-x / std::numbers::sqrt2);
}

double silu(double x) {
  if (x == -std::numeric_limits<double>::infinity()) return 0;
  return x * sigmoid(x);
}

constexpr Trait traits_of(UnaryFunction function) {
  using enum Trait;
  switch (function) {
#define EINREL_UNARY(id, name, usage, meaning, traits, ...) \
  case UnaryFunction::id: {                                 \
    return traits;                                          \
  }
#include "einsum/expr/functions.def"
  }
  throw Bug("a unary function outside its enumeration");
}

constexpr bool includes(Trait traits, Trait one) { return (traits | one) == traits; }

// The rows' values of doubles and of whole numbers, which only some functions have.

template <class T>
// NOLINTNEXTLINE(readability-function-cognitive-complexity): a case for each row
T value_of(UnaryFunction function, T x) {
  using std::abs;
  using std::exp;
  using std::floor;
  using std::log;
  switch (function) {
#define EINREL_UNARY(id, name, usage, meaning, traits, value, ...)                                                 \
  case UnaryFunction::id:                                                                                          \
    if constexpr (std::is_same_v<T, double> || includes(traits_of(UnaryFunction::id), Trait::whole)) return value; \
    break;
#include "einsum/expr/functions.def"
  }
  throw Bug("a function of floats applied to an integer, or none");
}

double power(double a, double b) { return std::pow(a, b); }

template <class T>
// NOLINTNEXTLINE(readability-function-cognitive-complexity): a case for each row
T value_of(BinaryFunction function, T a, T b) {
  switch (function) {
#define EINREL_BINARY(id, name, usage, meaning, kind, value)                                                           \
  case BinaryFunction::id:                                                                                             \
    if constexpr (std::is_same_v<T, double> || BinaryKind::kind != BinaryKind::quotient) return static_cast<T>(value); \
    break;
#include "einsum/expr/functions.def"
  }
  throw Bug("integers have no division");
}

}  // namespace

std::optional<UnaryFunction> unary_named(std::string_view name) {
  return named<UnaryFunction>(unary_rows, static_cast<std::size_t>(UnaryFunction::abs), name);
}

std::optional<BinaryFunction> binary_named(std::string_view name) {
  return named<BinaryFunction>(binary_rows, static_cast<std::size_t>(BinaryFunction::maximum), name);
}

std::optional<Reducer> reducer_named(std::string_view name) { return named<Reducer>(reducer_rows, 0, name); }

std::optional<RandomFunction> random_named(std::string_view name) {
  return named<RandomFunction>(random_rows, 0, name);
}

std::optional<RandomFunction> random_at_named(std::string_view name) {
  return named<RandomFunction>(random_at_rows, 0, name);
}

std::optional<OpaqueResult> opaque_named(std::string_view name) {
  const auto row = named<std::size_t>(opaque_rows, 0, name);
  return row ? std::optional(opaque_results[*row]) : std::nullopt;
}

std::optional<ComplexFunction> complex_named(std::string_view name) {
  const auto function = named<ComplexFunction>(complex_rows, 0, name);
  return function && *function <= ComplexFunction::imag ? function : std::nullopt;
}

std::optional<DType> parts_of_type_named(std::string_view name) {
  for (const DType parts : {DType::f32, DType::f64}) {
    if (name_of_complex(parts) == name) return parts;
  }
  return std::nullopt;
}

std::string_view name_of(ComplexFunction function) { return complex_rows[static_cast<std::size_t>(function)].name; }

std::string_view name_of_complex(DType parts) {
  invariant(parts == DType::f32 || parts == DType::f64, "parts of complex numbers are f32 or f64");
  return parts == DType::f32 ? "c64" : "c128";
}

std::vector<OpaqueResult> results_of(OpaqueFunction function) {
  std::vector<OpaqueResult> results;
  for (const OpaqueResult& result : opaque_results) {
    if (result.function == function) results.push_back(result);
  }
  return results;
}

std::size_t matrix_labels(OpaqueFunction function) { return function == OpaqueFunction::qr ? 3 : 2; }

std::array<std::size_t, 2> matrix_dimensions(OpaqueResult result) {
  constexpr std::size_t rows = 0;
  constexpr std::size_t columns = 1;
  constexpr std::size_t between = 2;
  if (result.function == OpaqueFunction::inverse) return {rows, columns};
  if (result.output == 0) return {rows, between};
  return {between, columns};
}

std::string_view name_of(UnaryFunction function) { return unary_rows[static_cast<std::size_t>(function)].name; }
std::string_view name_of(BinaryFunction function) { return binary_rows[static_cast<std::size_t>(function)].name; }
std::string_view name_of(Reducer reducer) { return reducer_rows[static_cast<std::size_t>(reducer)].name; }

std::string_view name_of(RandomFunction function) { return random_rows[static_cast<std::size_t>(function)].name; }
std::string_view name_of(OpaqueResult result) {
  const auto* const found = std::find(opaque_results.begin(), opaque_results.end(), result);
  return opaque_rows[static_cast<std::size_t>(found - opaque_results.begin())].name;
}

bool has(UnaryFunction function, Trait trait) { return includes(traits_of(function), trait); }

BinaryKind kind_of(BinaryFunction function) {
  switch (function) {
#define EINREL_BINARY(id, name, usage, meaning, kind, ...) \
  case BinaryFunction::id: {                               \
    return BinaryKind::kind;                               \
  }
#include "einsum/expr/functions.def"
  }
  throw Bug("a binary function outside its enumeration");
}

ReducedAs result_of(Reducer reducer) { return row_of(reducer).result; }
bool has(Reducer reducer, ReducerTrait trait) { return row_of(reducer).traits == trait; }
Kept kept_by(Reducer reducer) { return row_of(reducer).kept; }
PartialResults partial_results(Reducer reducer) { return row_of(reducer).partial; }

double value_of_nothing(Reducer reducer) {
  invariant(!has(reducer, ReducerTrait::needs_one), "an extreme of nothing");
  return reducer == Reducer::mean ? std::numeric_limits<double>::quiet_NaN() : row_of(reducer).start;
}

std::optional<BinaryFunction> continuation(std::optional<Reducer> reducer) {
  return reducer ? row_of(*reducer).continues : std::nullopt;
}

DType reduced_type(Reducer reducer, DType operand) {
  switch (result_of(reducer)) {
    case ReducedAs::same: return operand;
    case ReducedAs::counted: return operand == DType::boolean ? DType::i64 : operand;
    case ReducedAs::floating: return is_float(operand) ? operand : DType::f64;
    case ReducedAs::truth: return DType::boolean;
    case ReducedAs::position: return DType::i64;
  }
  throw Bug("a result outside its enumeration");
}

double apply(UnaryFunction function, double x) { return value_of(function, x); }
double apply(BinaryFunction function, double a, double b) { return value_of(function, a, b); }
std::int64_t apply(UnaryFunction function, std::int64_t x) { return value_of(function, WholeNumber(x)).value; }
std::int64_t apply(BinaryFunction function, std::int64_t a, std::int64_t b) {
  return value_of(function, WholeNumber(a), WholeNumber(b)).value;
}

const std::vector<FunctionInfo>& all_functions() {
  static const std::vector<FunctionInfo> rows = [] {
    std::vector<FunctionInfo> all;
    const auto append = [&all](const auto& some) { all.insert(all.end(), some.begin(), some.end()); };
    append(unary_rows);
    append(binary_rows);
    append(other_rows);
    append(random_rows);
    append(random_at_rows);
    append(reducer_rows);
    append(opaque_rows);
    append(complex_rows);
    return all;
  }();
  return rows;
}

}  // namespace einrel
