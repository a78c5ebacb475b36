#include "sql/key_sql.h"

#include <fmt/format.h>

#include "base/error.h"

namespace einrel::sql {
namespace {

/// SQL and whether it is never negative, where SQL's division, which truncates, rounds down.
struct Term {
  std::string text;
  bool is_natural = true;
};

Term call(KeyFunction function, const Term& a, const Term& b) {
  const bool both = a.is_natural && b.is_natural;
  const auto infix = [&](const char* sign, bool is_natural) {
    return Term{fmt::format("({} {} {})", a.text, sign, b.text), is_natural};
  };
  const auto modulo = [&] { return fmt::format("((({0}) % ({1}) + ({1})) % ({1}))", a.text, b.text); };
  switch (function) {
    case KeyFunction::add: return infix("+", both);
    case KeyFunction::subtract: return infix("-", false);
    case KeyFunction::multiply: return infix("*", both);
    case KeyFunction::divide:
      if (both) return infix("/", true);
      return {fmt::format("((({}) - {}) / ({}))", a.text, modulo(), b.text), false};
    case KeyFunction::modulo:
      if (both) return infix("%", true);
      return {modulo(), b.is_natural};
    case KeyFunction::minimum: return {fmt::format("min({}, {})", a.text, b.text), both};
    case KeyFunction::maximum: return {fmt::format("max({}, {})", a.text, b.text), a.is_natural || b.is_natural};
    case KeyFunction::equal: return infix("=", true);
    case KeyFunction::not_equal: return infix("<>", true);
    case KeyFunction::less: return infix("<", true);
    case KeyFunction::less_equal: return infix("<=", true);
    case KeyFunction::greater: return infix(">", true);
    case KeyFunction::greater_equal: return infix(">=", true);
    case KeyFunction::logical_and: return infix("AND", true);
    case KeyFunction::logical_or: return infix("OR", true);
  }
  throw Bug("a function of keys outside its enumeration");
}

}  // namespace

std::string to_sql(const KeyExpr& expr, const std::vector<std::string>& columns) {
  std::vector<Term> stack;
  for (const auto& step : expr.steps) {
    if (const auto* const position = std::get_if<KeyPosition>(&step)) {
      stack.push_back({columns.at(position->position)});
    } else if (const auto* const constant = std::get_if<KeyConstant>(&step)) {
      stack.push_back({fmt::format("{}", constant->value), constant->value >= 0});
    } else {
      const Term b = stack.back();
      stack.pop_back();
      stack.back() = call(std::get<KeyCall>(step).function, stack.back(), b);
    }
  }
  invariant(stack.size() == 1, "an expression over keys leaves one value");
  return stack.back().text;
}

std::string chunk_of(Extent extent, const DimensionCut& cut, const std::string& element) {
  if (cut.parts == 1) return "0";
  const std::int64_t small = extent.value() / cut.unit / cut.parts * cut.unit;
  const std::int64_t more = extent.value() / cut.unit % cut.parts;  // so many chunks have a unit more
  if (more == 0) return fmt::format("{} / {}", element, small);
  const std::int64_t large = small + cut.unit;
  return fmt::format("CASE WHEN {0} < {1} THEN {0} / {2} ELSE {3} + ({0} - {1}) / {4} END", element, more * large,
                     large, more, small);
}

std::vector<std::string> chunk_begins(const RelationType& type, const std::vector<std::string>& columns) {
  std::vector<std::string> begins;
  const Key end = frontier(type);
  for (std::size_t d = 0; d < type.rank; ++d) {
    Key key(type.key_arity, 0);
    const auto extent_of = [&](std::int64_t part) {
      key[d] = part;
      const Chunk* const chunk = find_chunk(type, key);
      invariant(chunk != nullptr, "a stored tensor has no holes");
      return chunk->bound[d].value();
    };
    const std::int64_t large = extent_of(0);
    std::int64_t equal = 1;  // chunks as large as the first
    while (equal < end[d] && extent_of(equal) == large) ++equal;
    if (end[d] == 1) {
      begins.emplace_back("0");
    } else if (equal >= end[d] - 1) {
      begins.push_back(fmt::format("{} * {}", columns[d], large));
    } else {
      begins.push_back(
          fmt::format("{0} * {1} - max({0} - {2}, 0) * {3}", columns[d], large, equal, large - extent_of(equal)));
    }
  }
  return begins;
}

std::vector<std::string> column_names(std::size_t arity, const std::string& before) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arity; ++i) names.push_back(fmt::format("{}k{}", before, i));
  return names;
}

}  // namespace einrel::sql
