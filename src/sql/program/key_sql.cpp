#include "sql/program/key_sql.h"

#include <fmt/format.h>

#include "base/error.h"

namespace einrel::sql {
namespace {

/// SQL; whether it is never negative, where SQL's division, which truncates, rounds down; whether it is a condition.
struct Term {
  std::string text;
  bool is_natural = true;
  bool is_condition = false;
};

std::string number(const Term& term, Dialect dialect) {
  return term.is_condition ? number_of_condition(dialect, term.text) : term.text;
}

std::string condition(const Term& term, Dialect dialect) {
  return term.is_condition ? term.text : condition_of_number(dialect, term.text);
}

Term call(KeyFunction function, const Term& first, const Term& second, Dialect dialect) {
  const bool both = first.is_natural && second.is_natural;
  const std::string a = number(first, dialect);
  const std::string b = number(second, dialect);
  const auto infix = [&](const char* sign, bool is_natural) {
    return Term{fmt::format("({} {} {})", a, sign, b), is_natural};
  };
  const auto compare = [&](const char* sign) { return Term{infix(sign, true).text, true, true}; };
  // PostgreSQL itself has no remainder of a key and a small number.
  const std::string divisor = dialect == Dialect::postgres ? fmt::format("CAST({} AS bigint)", b) : b;
  const auto modulo = [&] { return fmt::format("((({0}) % ({1}) + ({1})) % ({1}))", a, divisor); };
  switch (function) {
    case KeyFunction::add: return infix("+", both);
    case KeyFunction::subtract: return infix("-", false);
    case KeyFunction::multiply: return infix("*", both);
    case KeyFunction::divide:
      if (both) return infix("/", true);
      return {fmt::format("((({}) - {}) / ({}))", a, modulo(), b), false};
    case KeyFunction::modulo:
      if (both) return {fmt::format("({} % {})", a, divisor), true};
      return {modulo(), second.is_natural};
    case KeyFunction::minimum: return {least(dialect, a, b), both};
    case KeyFunction::maximum: return {greatest(dialect, a, b), first.is_natural || second.is_natural};
    case KeyFunction::equal: return compare("=");
    case KeyFunction::not_equal: return compare("<>");
    case KeyFunction::less: return compare("<");
    case KeyFunction::less_equal: return compare("<=");
    case KeyFunction::greater: return compare(">");
    case KeyFunction::greater_equal: return compare(">=");
    case KeyFunction::logical_and:
      return {fmt::format("({} AND {})", condition(first, dialect), condition(second, dialect)), true, true};
    case KeyFunction::logical_or:
      return {fmt::format("({} OR {})", condition(first, dialect), condition(second, dialect)), true, true};
  }
  throw Bug("a function of keys outside its enumeration");
}

Term term_of(const KeyExpr& expr, const std::vector<std::string>& columns, Dialect dialect) {
  std::vector<Term> stack;
  for (const auto& step : expr.steps) {
    if (const auto* const position = std::get_if<KeyPosition>(&step)) {
      stack.push_back({columns.at(position->position)});
    } else if (const auto* const constant = std::get_if<KeyConstant>(&step)) {
      stack.push_back({fmt::format("{}", constant->value), constant->value >= 0});
    } else {
      const Term b = stack.back();
      stack.pop_back();
      stack.back() = call(std::get<KeyCall>(step).function, stack.back(), b, dialect);
    }
  }
  invariant(stack.size() == 1, "an expression over keys leaves one value");
  return stack.back();
}

}  // namespace

std::string to_sql(const KeyExpr& expr, const std::vector<std::string>& columns, Dialect dialect) {
  return number(term_of(expr, columns, dialect), dialect);
}

std::string condition_sql(const KeyExpr& expr, const std::vector<std::string>& columns, Dialect dialect) {
  return condition(term_of(expr, columns, dialect), dialect);
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

std::string extent_of_chunk(Extent extent, const DimensionCut& cut, const std::string& part) {
  const std::int64_t large = chunk_extent(extent, cut, 0).value();
  const std::int64_t small = chunk_extent(extent, cut, cut.parts - 1).value();
  if (large == small) return fmt::format("{}", large);
  return fmt::format("CASE WHEN {} < {} THEN {} ELSE {} END", part, extent.value() / cut.unit % cut.parts, large,
                     small);
}

std::vector<std::string> chunk_begins(const RelationType& type, const std::vector<std::string>& columns,
                                      Dialect dialect) {
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
      const std::string later = greatest(dialect, fmt::format("{} - {}", columns[d], equal), "0");
      begins.push_back(fmt::format("{} * {} - {} * {}", columns[d], large, later, large - extent_of(equal)));
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
