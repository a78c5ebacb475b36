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
#define EINREL_UNARY(id, ...) id,
#include "einsum/expr/functions.def"
};

enum class BinaryFunction : std::uint8_t {
#define EINREL_BINARY(id, ...) id,
#include "einsum/expr/functions.def"
};

/// What is known of a function of one value, besides the value.
enum class Trait : std::uint8_t {
  none = 0,
  whole = 1,          ///< an integer argument stays an integer: the others compute in a float type
  stays_in_type = 2,  ///< what comes of an integer is in the range of its type
  approximated = 4,   ///< over blocks it is computed to some units in the last place, not rounded
  rises = 8,          ///< a larger argument never has a smaller value
};
constexpr Trait operator|(Trait a, Trait b) {
  return static_cast<Trait>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}

enum class BinaryKind : std::uint8_t { arithmetic, quotient, power, comparison, extreme };

/// How a vertex reduces over its aggregated labels (the paper's (+), EinDecomp section 3).
enum class Reducer : std::uint8_t {
#define EINREL_REDUCER(id, ...) id,
#include "einsum/expr/functions.def"
};

/// What comes of a reduction of values of some type: `counted` bools give i64, `floating` integers f64.
enum class ReducedAs : std::uint8_t { same, counted, floating, truth, position };

enum class ReducerTrait : std::uint8_t {
  none,
  needs_one,   ///< it has no value over nothing
  skips_zeros  ///< a value that is 0 changes nothing
};

/// In what a reduction is kept on the way: in the type of its values, floats in double and integers in int64, in
/// double, or as 0 and 1.
enum class Kept : std::uint8_t { as_it_comes, wide, real, truth };

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

bool has(UnaryFunction function, Trait trait);
BinaryKind kind_of(BinaryFunction function);
inline bool is_comparison(BinaryFunction f) { return kind_of(f) == BinaryKind::comparison; }
/// True when an integer argument stays an integer: the others compute in a float type.
inline bool keeps_integers(UnaryFunction f) { return has(f, Trait::whole); }

ReducedAs result_of(Reducer reducer);
bool has(Reducer reducer, ReducerTrait trait);
Kept kept_by(Reducer reducer);
inline bool finds_position(std::optional<Reducer> reducer) {
  return reducer && result_of(*reducer) == ReducedAs::position;
}
/// What comes of no values. Throws Bug where one is needed.
double value_of_nothing(Reducer reducer);

/// Of results of parts, how they become that of the whole.
struct PartialResults {
  Reducer each{};         ///< what each is the result of
  std::string_view fold;  ///< the named kernel that makes one of two; empty where none does
};
PartialResults partial_results(Reducer reducer);

/// The type of a reduction over values of type `operand`.
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
