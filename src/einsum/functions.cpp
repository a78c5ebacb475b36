#include "einsum/functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "einsum/complex_function.h"

namespace einrel {
namespace {

// The rows stand in the order of their enumerations.
constexpr std::array unary_rows{
    FunctionInfo{"-", "-x", "the negative of x"},
    FunctionInfo{"abs", "abs(x)", "the absolute value |x|"},
    FunctionInfo{"exp", "exp(x)", "e to the power x"},
    FunctionInfo{"log", "log(x)", "the natural logarithm of x; NaN below 0"},
    FunctionInfo{"log1p", "log1p(x)", "log(1 + x), accurate near 0"},
    FunctionInfo{"expm1", "expm1(x)", "exp(x) - 1, accurate near 0"},
    FunctionInfo{"sqrt", "sqrt(x)", "the square root of x; NaN below 0"},
    FunctionInfo{"rsqrt", "rsqrt(x)", "1 / sqrt(x)"},
    FunctionInfo{"sq", "sq(x)", "x * x"},
    FunctionInfo{"tanh", "tanh(x)", "the hyperbolic tangent of x"},
    FunctionInfo{"sigmoid", "sigmoid(x)", "1 / (1 + exp(-x))"},
    FunctionInfo{"relu", "relu(x)", "max(x, 0)"},
    FunctionInfo{"step", "step(x)", "1 where x > 0, else 0; the derivative of relu"},
    FunctionInfo{"gelu", "gelu(x)", "x / 2 * (1 + erf(x / sqrt(2)))"},
    FunctionInfo{"silu", "silu(x)", "x * sigmoid(x)"},
    FunctionInfo{"erf", "erf(x)", "the error function of x"},
    FunctionInfo{"sin", "sin(x)", "the sine of x in radians"},
    FunctionInfo{"cos", "cos(x)", "the cosine of x in radians"},
    FunctionInfo{"floor", "floor(x)", "the largest integer not above x"},
    FunctionInfo{"stop_gradient", "stop_gradient(x)", "x, which gradients take for a constant"},
};
static_assert(unary_rows.size() == static_cast<std::size_t>(UnaryFunction::stop_gradient) + 1);

constexpr std::array binary_rows{
    FunctionInfo{"+", "a + b", "the sum"},
    FunctionInfo{"-", "a - b", "the difference"},
    FunctionInfo{"*", "a * b", "the product"},
    FunctionInfo{"/", "a / b", "the quotient of floats; cast integers first"},
    FunctionInfo{"**", "a ** b", "a to the power b"},
    FunctionInfo{"<", "a < b", "bool: a is less than b"},
    FunctionInfo{"<=", "a <= b", "bool: a is less than or equal to b"},
    FunctionInfo{">", "a > b", "bool: a is greater than b"},
    FunctionInfo{">=", "a >= b", "bool: a is greater than or equal to b"},
    FunctionInfo{"==", "a == b", "bool: a equals b"},
    FunctionInfo{"!=", "a != b", "bool: a differs from b"},
    FunctionInfo{"max", "max(a, b)", "the larger of a and b"},
    FunctionInfo{"min", "min(a, b)", "the smaller of a and b"},
};
static_assert(binary_rows.size() == static_cast<std::size_t>(BinaryFunction::minimum) + 1);

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
    FunctionInfo{"sum", "sum[j] x", "the sum of x over j; 0 over nothing"},
    FunctionInfo{"prod", "prod[j] x", "the product of x over j; 1 over nothing"},
    FunctionInfo{"max", "max[j] x", "the largest x over j"},
    FunctionInfo{"min", "min[j] x", "the smallest x over j"},
    FunctionInfo{"mean", "mean[j] x", "the sum of x over j divided by the extent of j"},
    FunctionInfo{"any", "any[j] x", "bool: some x over j is not 0"},
    FunctionInfo{"all", "all[j] x", "bool: no x over j is 0"},
    FunctionInfo{"argmax", "argmax[j] x", "i64: the first j at which x is largest"},
    FunctionInfo{"argmin", "argmin[j] x", "i64: the first j at which x is smallest"},
    FunctionInfo{"logsumexp", "logsumexp[j] x", "log(sum[j] exp(x)) without overflow"},
};
static_assert(reducer_rows.size() == static_cast<std::size_t>(Reducer::logsumexp) + 1);

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

std::int64_t wrapped(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }

/// By squaring: O(log exponent) multiplications modulo 2^64.
std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == -1) return exponent % 2 == 0 ? 1 : -1;
    return base == 1 ? 1 : 0;
  }
  std::uint64_t result = 1;
  auto square = static_cast<std::uint64_t>(base);
  for (auto left = static_cast<std::uint64_t>(exponent); left != 0; left >>= 1U) {
    if ((left & 1U) != 0) result *= square;
    square *= square;
  }
  return wrapped(result);
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

std::optional<BinaryFunction> continuation(std::optional<Reducer> reducer) {
  if (!reducer) return std::nullopt;
  switch (*reducer) {
    case Reducer::sum: return BinaryFunction::add;
    case Reducer::prod: return BinaryFunction::multiply;
    case Reducer::max:
    case Reducer::any: return BinaryFunction::maximum;
    case Reducer::min:
    case Reducer::all: return BinaryFunction::minimum;
    default: return std::nullopt;
  }
}

DType reduced_type(Reducer reducer, DType operand) {
  switch (reducer) {
    case Reducer::sum:
    case Reducer::prod: return operand == DType::boolean ? DType::i64 : operand;
    case Reducer::max:
    case Reducer::min: return operand;
    case Reducer::mean:
    case Reducer::logsumexp: return is_float(operand) ? operand : DType::f64;
    case Reducer::any:
    case Reducer::all: return DType::boolean;
    case Reducer::argmax:
    case Reducer::argmin: return DType::i64;
  }
  throw Bug("a reducer outside its enumeration");
}

double apply(UnaryFunction function, double x) {
  switch (function) {
    case UnaryFunction::negate: return -x;
    case UnaryFunction::abs: return std::abs(x);
    case UnaryFunction::exp: return std::exp(x);
    case UnaryFunction::log: return std::log(x);
    case UnaryFunction::log1p: return std::log1p(x);
    case UnaryFunction::expm1: return std::expm1(x);
    case UnaryFunction::sqrt: return std::sqrt(x);
    case UnaryFunction::rsqrt: return 1 / std::sqrt(x);
    case UnaryFunction::sq: return x * x;
    case UnaryFunction::tanh: return std::tanh(x);
    case UnaryFunction::sigmoid: return sigmoid(x);
    case UnaryFunction::relu: return apply(BinaryFunction::maximum, x, 0);
    case UnaryFunction::step: return std::isnan(x) ? x : static_cast<double>(x > 0);
    case UnaryFunction::gelu: return gelu(x);
    case UnaryFunction::silu: return silu(x);
    case UnaryFunction::erf: return std::erf(x);
    case UnaryFunction::sin: return std::sin(x);
    case UnaryFunction::cos: return std::cos(x);
    case UnaryFunction::floor: return std::floor(x);
    case UnaryFunction::stop_gradient: return x;
  }
  throw Bug("a unary function outside its enumeration");
}

double apply(BinaryFunction function, double a, double b) {
  switch (function) {
    case BinaryFunction::add: return a + b;
    case BinaryFunction::subtract: return a - b;
    case BinaryFunction::multiply: return a * b;
    case BinaryFunction::divide: return a / b;
    case BinaryFunction::power: return std::pow(a, b);
    case BinaryFunction::less: return static_cast<double>(a < b);
    case BinaryFunction::less_equal: return static_cast<double>(a <= b);
    case BinaryFunction::greater: return static_cast<double>(a > b);
    case BinaryFunction::greater_equal: return static_cast<double>(a >= b);
    case BinaryFunction::equal: return static_cast<double>(a == b);
    case BinaryFunction::not_equal: return static_cast<double>(a != b);
    case BinaryFunction::maximum: return a >= b || std::isnan(a) ? a : b;
    case BinaryFunction::minimum: return a <= b || std::isnan(a) ? a : b;
  }
  throw Bug("a binary function outside its enumeration");
}

std::int64_t apply(UnaryFunction function, std::int64_t x) {
  switch (function) {
    case UnaryFunction::negate: return apply(BinaryFunction::subtract, std::int64_t{0}, x);
    case UnaryFunction::abs: return x < 0 ? apply(BinaryFunction::subtract, std::int64_t{0}, x) : x;
    case UnaryFunction::sq: return apply(BinaryFunction::multiply, x, x);
    case UnaryFunction::relu: return std::max<std::int64_t>(x, 0);
    case UnaryFunction::step: return static_cast<std::int64_t>(x > 0);
    case UnaryFunction::floor:
    case UnaryFunction::stop_gradient: return x;
    default: throw Bug("a function of floats applied to an integer");
  }
}

std::int64_t apply(BinaryFunction function, std::int64_t a, std::int64_t b) {
  const auto a_bits = static_cast<std::uint64_t>(a);
  const auto b_bits = static_cast<std::uint64_t>(b);
  switch (function) {
    case BinaryFunction::add: return wrapped(a_bits + b_bits);
    case BinaryFunction::subtract: return wrapped(a_bits - b_bits);
    case BinaryFunction::multiply: return wrapped(a_bits * b_bits);
    case BinaryFunction::divide: throw Bug("integers have no division");
    case BinaryFunction::power: return integer_power(a, b);
    case BinaryFunction::less: return static_cast<std::int64_t>(a < b);
    case BinaryFunction::less_equal: return static_cast<std::int64_t>(a <= b);
    case BinaryFunction::greater: return static_cast<std::int64_t>(a > b);
    case BinaryFunction::greater_equal: return static_cast<std::int64_t>(a >= b);
    case BinaryFunction::equal: return static_cast<std::int64_t>(a == b);
    case BinaryFunction::not_equal: return static_cast<std::int64_t>(a != b);
    case BinaryFunction::maximum: return std::max(a, b);
    case BinaryFunction::minimum: return std::min(a, b);
  }
  throw Bug("a binary function outside its enumeration");
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
