#include "tra/key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace einrel {
namespace {

constexpr int tightest = 6;

/// The sign of a function and how tightly it binds; functions written as calls bind tightest.
struct Notation {
  const char* sign;
  int binding;
};

Notation notation(KeyFunction function) {
  switch (function) {
    case KeyFunction::add: return {"+", 4};
    case KeyFunction::subtract: return {"-", 4};
    case KeyFunction::multiply: return {"*", 5};
    case KeyFunction::divide: return {"/", 5};
    case KeyFunction::modulo: return {"%", 5};
    case KeyFunction::minimum: return {"min", tightest};
    case KeyFunction::maximum: return {"max", tightest};
    case KeyFunction::equal: return {"==", 3};
    case KeyFunction::not_equal: return {"!=", 3};
    case KeyFunction::less: return {"<", 3};
    case KeyFunction::less_equal: return {"<=", 3};
    case KeyFunction::greater: return {">", 3};
    case KeyFunction::greater_equal: return {">=", 3};
    case KeyFunction::logical_and: return {"and", 2};
    case KeyFunction::logical_or: return {"or", 1};
  }
  throw Bug("a key function outside its enumeration");
}

std::int64_t checked(bool overflow, std::int64_t result) {
  if (overflow) throw UserError("the key expression exceeds 63 bits");
  return result;
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) throw UserError("the key expression divides by zero");
  if (b == -1) {
    std::int64_t result = 0;
    const bool overflow = __builtin_sub_overflow(std::int64_t{0}, a, &result);
    return checked(overflow, result);
  }
  return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

std::int64_t apply(KeyFunction function, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (function) {
    case KeyFunction::add: {
      const bool overflow = __builtin_add_overflow(a, b, &result);
      return checked(overflow, result);
    }
    case KeyFunction::subtract: {
      const bool overflow = __builtin_sub_overflow(a, b, &result);
      return checked(overflow, result);
    }
    case KeyFunction::multiply: {
      const bool overflow = __builtin_mul_overflow(a, b, &result);
      return checked(overflow, result);
    }
    case KeyFunction::divide: return floor_divide(a, b);
    case KeyFunction::modulo: return b == -1 ? 0 : a - floor_divide(a, b) * b;
    case KeyFunction::minimum: return std::min(a, b);
    case KeyFunction::maximum: return std::max(a, b);
    case KeyFunction::equal: return a == b ? 1 : 0;
    case KeyFunction::not_equal: return a != b ? 1 : 0;
    case KeyFunction::less: return a < b ? 1 : 0;
    case KeyFunction::less_equal: return a <= b ? 1 : 0;
    case KeyFunction::greater: return a > b ? 1 : 0;
    case KeyFunction::greater_equal: return a >= b ? 1 : 0;
    case KeyFunction::logical_and: return a != 0 && b != 0 ? 1 : 0;
    case KeyFunction::logical_or: return a != 0 || b != 0 ? 1 : 0;
  }
  throw Bug("a key function outside its enumeration");
}

const KeyConstant* as_constant(const KeyExpr& expr) {
  return expr.steps.size() == 1 ? std::get_if<KeyConstant>(&expr.steps.front()) : nullptr;
}

bool is_constant(const KeyExpr& expr, std::int64_t value) {
  const KeyConstant* constant = as_constant(expr);
  return constant != nullptr && constant->value == value;
}

/// `f(a, b)` where it is one of its arguments or a constant already; nullopt else.
const KeyExpr* neutral(KeyFunction function, const KeyExpr& a, const KeyExpr& b) {
  if (function == KeyFunction::add && is_constant(a, 0)) return &b;
  if ((function == KeyFunction::add || function == KeyFunction::subtract) && is_constant(b, 0)) return &a;
  if (function == KeyFunction::multiply && is_constant(a, 1)) return &b;
  if ((function == KeyFunction::multiply || function == KeyFunction::divide) && is_constant(b, 1)) return &a;
  return nullptr;
}

}  // namespace

std::string to_string(const Key& key) { return fmt::format("<{}>", fmt::join(key, ",")); }
std::string to_string(const KeyPositions& positions) { return fmt::format("<{}>", fmt::join(positions, ",")); }

Key project(const Key& key, const KeyPositions& positions) {
  Key result;
  result.reserve(positions.size());
  for (const std::size_t position : positions) result.push_back(key.at(position));
  return result;
}

KeyPositions all_positions(std::size_t arity) {
  KeyPositions result(arity);
  for (std::size_t i = 0; i < arity; ++i) result[i] = i;
  return result;
}

KeyPositions complement(const KeyPositions& positions, std::size_t arity) {
  KeyPositions result;
  for (std::size_t i = 0; i < arity; ++i) {
    if (std::find(positions.begin(), positions.end(), i) == positions.end()) result.push_back(i);
  }
  return result;
}

bool is_subset(const KeyPositions& part, const KeyPositions& whole) {
  return std::all_of(part.begin(), part.end(), [&](std::size_t position) {
    return std::find(whole.begin(), whole.end(), position) != whole.end();
  });
}

KeyExpr key_position(std::size_t position) { return {{KeyPosition{position}}}; }
KeyExpr key_constant(std::int64_t value) { return {{KeyConstant{value}}}; }

KeyExpr key_call(KeyFunction function, const KeyExpr& a, const KeyExpr& b) {
  if (const KeyExpr* same = neutral(function, a, b)) return *same;
  const bool divides_by_zero =
      (function == KeyFunction::divide || function == KeyFunction::modulo) && is_constant(b, 0);
  if (as_constant(a) != nullptr && as_constant(b) != nullptr && !divides_by_zero)
    return key_constant(apply(function, as_constant(a)->value, as_constant(b)->value));
  KeyExpr result = a;
  result.steps.insert(result.steps.end(), b.steps.begin(), b.steps.end());
  result.steps.emplace_back(KeyCall{function});
  return result;
}

KeyMap identity_map(std::size_t arity) { return projection_map(all_positions(arity)); }

KeyMap projection_map(const KeyPositions& positions) {
  KeyMap map;
  for (const std::size_t position : positions) map.outputs.push_back(key_position(position));
  return map;
}

std::int64_t evaluate(const KeyExpr& expr, const Key& key) {
  std::vector<std::int64_t> stack;
  for (const auto& step : expr.steps) {
    if (const auto* position = std::get_if<KeyPosition>(&step)) {
      if (position->position >= key.size()) {
        throw UserError(fmt::format("key position k{} is read, but keys such as {} have {} positions",
                                    position->position, to_string(key), key.size()));
      }
      stack.push_back(key[position->position]);
    } else if (const auto* constant = std::get_if<KeyConstant>(&step)) {
      stack.push_back(constant->value);
    } else {
      const std::int64_t b = stack.back();
      stack.pop_back();
      stack.back() = apply(std::get<KeyCall>(step).function, stack.back(), b);
    }
  }
  invariant(stack.size() == 1, "a key expression leaves one value");
  return stack.back();
}

Key evaluate(const KeyMap& map, const Key& key) {
  Key result;
  result.reserve(map.outputs.size());
  for (const KeyExpr& output : map.outputs) result.push_back(evaluate(output, key));
  return result;
}

bool is_identity(const KeyMap& map, std::size_t arity) { return map == identity_map(arity); }

std::size_t copied_position(const KeyExpr& expr) {
  const auto* position = expr.steps.size() == 1 ? std::get_if<KeyPosition>(&expr.steps.front()) : nullptr;
  return position == nullptr ? no_position : position->position;
}

KeyPositions positions_read(const KeyExpr& expr) {
  KeyPositions result;
  for (const auto& step : expr.steps) {
    if (const auto* position = std::get_if<KeyPosition>(&step)) result.push_back(position->position);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

KeyExpr substitute(const KeyExpr& expr, const KeyMap& map) {
  std::vector<KeyExpr> stack;
  for (const auto& step : expr.steps) {
    if (const auto* position = std::get_if<KeyPosition>(&step)) {
      stack.push_back(map.outputs.at(position->position));
    } else if (const auto* constant = std::get_if<KeyConstant>(&step)) {
      stack.push_back(key_constant(constant->value));
    } else {
      const KeyExpr b = std::move(stack.back());
      stack.pop_back();
      stack.back() = key_call(std::get<KeyCall>(step).function, stack.back(), b);
    }
  }
  return stack.back();
}

KeyMap compose(const KeyMap& outer, const KeyMap& inner) {
  KeyMap result;
  for (const KeyExpr& output : outer.outputs) result.outputs.push_back(substitute(output, inner));
  return result;
}

std::string to_string(const KeyExpr& expr) {
  std::vector<std::pair<std::string, int>> stack;
  for (const auto& step : expr.steps) {
    if (const auto* position = std::get_if<KeyPosition>(&step)) {
      stack.emplace_back(fmt::format("k{}", position->position), tightest);
      continue;
    }
    if (const auto* constant = std::get_if<KeyConstant>(&step)) {
      stack.emplace_back(fmt::format("{}", constant->value), constant->value < 0 ? 0 : tightest);
      continue;
    }
    const auto [sign, binding] = notation(std::get<KeyCall>(step).function);
    const auto [b, b_binding] = std::move(stack.back());
    stack.pop_back();
    const auto [a, a_binding] = std::move(stack.back());
    stack.pop_back();
    if (binding == tightest) {
      stack.emplace_back(fmt::format("{}({}, {})", sign, a, b), tightest);
      continue;
    }
    const bool comparison = binding == 3;  // comparisons do not chain
    const std::string left = a_binding < binding + (comparison ? 1 : 0) ? "(" + a + ")" : a;
    const std::string right = b_binding <= binding ? "(" + b + ")" : b;
    const bool close = binding == 5;
    stack.emplace_back(close ? fmt::format("{}{}{}", left, sign, right) : fmt::format("{} {} {}", left, sign, right),
                       binding);
  }
  return stack.back().first;
}

std::string to_string(const KeyMap& map, std::size_t arity) {
  std::vector<std::string> from;
  std::vector<std::string> to;
  for (std::size_t i = 0; i < arity; ++i) from.push_back(fmt::format("k{}", i));
  for (const KeyExpr& output : map.outputs) to.push_back(to_string(output));
  return fmt::format("<{}> -> <{}>", fmt::join(from, ","), fmt::join(to, ","));
}

}  // namespace einrel
