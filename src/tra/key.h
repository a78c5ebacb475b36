#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace einrel {

/// The key of one tuple of a tensor relation (paper: k, TRA section 3).
using Key = std::vector<std::int64_t>;
/// Positions of a key, in an order that matters: <0,2>.
using KeyPositions = std::vector<std::size_t>;

std::string to_string(const Key& key);                 // "<0,2>"
std::string to_string(const KeyPositions& positions);  // "<0,2>"

/// The values of `key` at `positions`, in that order (relational projection).
Key project(const Key& key, const KeyPositions& positions);
/// 0, 1, ..., arity-1.
KeyPositions all_positions(std::size_t arity);
/// The positions below `arity` that are not in `positions`, ascending.
KeyPositions complement(const KeyPositions& positions, std::size_t arity);
/// Whether every position of `part` is one of `whole`.
bool is_subset(const KeyPositions& part, const KeyPositions& whole);

/// Integer arithmetic on keys. Division and modulo round down (so -1 / 2 = -1 and -1 % 2 = 1); comparisons and the
/// logical functions give 0 or 1.
enum class KeyFunction : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  modulo,
  minimum,
  maximum,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  logical_and,
  logical_or
};
/// The value of the key at a position; written k0, k1, ...
struct KeyPosition {
  std::size_t position = 0;
  bool operator==(const KeyPosition&) const = default;
};
struct KeyConstant {
  std::int64_t value = 0;
  bool operator==(const KeyConstant&) const = default;
};
/// Pops b, then a; pushes f(a, b).
struct KeyCall {
  KeyFunction function{};
  bool operator==(const KeyCall&) const = default;
};

/// An arithmetic expression over the positions of a key, in postorder. Data, so that guards can inspect it, plans print
/// it and other backends translate it.
struct KeyExpr {
  std::vector<std::variant<KeyPosition, KeyConstant, KeyCall>> steps;
  bool operator==(const KeyExpr&) const = default;
};

/// A key function: one expression per position of the new key.
struct KeyMap {
  std::vector<KeyExpr> outputs;
  bool operator==(const KeyMap&) const = default;
};

// Building; neutral elements and constants are folded away.
KeyExpr key_position(std::size_t position);
KeyExpr key_constant(std::int64_t value);
KeyExpr key_call(KeyFunction function, const KeyExpr& a, const KeyExpr& b);

KeyMap identity_map(std::size_t arity);
/// <k_p0, k_p1, ...>
KeyMap projection_map(const KeyPositions& positions);

/// Throws UserError on overflow, on division by zero, and when the key has no such position.
std::int64_t evaluate(const KeyExpr& expr, const Key& key);
Key evaluate(const KeyMap& map, const Key& key);

/// Position i of the new key is exactly position i of the old one.
bool is_identity(const KeyMap& map, std::size_t arity);
/// Stands for no position of any key.
constexpr std::size_t no_position = static_cast<std::size_t>(-1);
/// The position that the expression copies, no_position when it computes something.
std::size_t copied_position(const KeyExpr& expr);
/// The positions that an expression reads, ascending.
KeyPositions positions_read(const KeyExpr& expr);
/// `expr` over the keys that `map` makes, as an expression over the keys that `map` takes.
KeyExpr substitute(const KeyExpr& expr, const KeyMap& map);
/// outer . inner
KeyMap compose(const KeyMap& outer, const KeyMap& inner);

/// As it is written: "2*k0 + k1", "k0 == k1".
std::string to_string(const KeyExpr& expr);
/// "<k0,k1> -> <2*k0 + k1>"
std::string to_string(const KeyMap& map, std::size_t arity);

}  // namespace einrel
