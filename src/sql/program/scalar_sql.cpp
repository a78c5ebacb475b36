#include "sql/program/scalar_sql.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "einsum/expr/scalar_value.h"

namespace einrel::sql {
namespace {

/// Texts that are used twice inside each other grow: refused where they are longer than databases read.
constexpr std::size_t most_characters = 100'000;

bool is_sqlite(Dialect dialect) { return dialect == Dialect::sqlite; }

/// Numbers have NaN but in SQLite, where it is NULL. There NaN is equal to itself, and above all others.
std::string nan_sql(Dialect dialect) { return is_sqlite(dialect) ? "NULL" : "CAST('NaN' AS DOUBLE PRECISION)"; }

/// NaN is not 0.
std::string is_true(const std::string& x, Dialect dialect) {
  return fmt::format("{} {} 0", x, is_sqlite(dialect) ? "IS NOT" : "<>");
}

class ScalarTranslator {
 public:
  ScalarTranslator(const ScalarSources& sources, Dialect dialect) : sources_(sources), dialect_(dialect) {}

  std::string run(const ScalarExpr& expr) {
    for (const ScalarStep& step : expr.steps) {
      if (is_narrow(step.type)) throw NotInSql{"SQL has no floats that narrow"};
      type_ = step.type;
      std::string text = std::visit([&](const auto& op) { return translate(op); }, step.op);
      if (text.size() > most_characters) throw NotInSql{"its formula is too long"};
      const auto* const operand = std::get_if<OperandValue>(&step.op);
      const bool has_type = operand == nullptr || sources_.operands[operand->operand].has_type;
      stack_.push_back({std::move(text), step.type, std::holds_alternative<Constant>(step.op), has_type});
    }
    return pop().text;
  }

 private:
  struct Term {
    std::string text;
    DType type;
    bool is_constant;
    bool has_type;
  };

  Term take() {
    Term top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }

  Term typed(Term term) const {
    if (!term.has_type) term.text = typed_sql(term.type, term.text, dialect_);
    term.has_type = true;
    return term;
  }

  Term pop() { return typed(take()); }

  /// Of two floats it is enough that one is a double, which the other follows, but in SQLite's extremes.
  std::pair<Term, Term> take_two(BinaryFunction function) {
    Term second = take();
    Term first = take();
    const bool is_extreme = function == BinaryFunction::maximum || function == BinaryFunction::minimum;
    const bool follows = !is_extreme && is_float(first.type) && is_float(second.type);
    if (follows && (first.has_type || second.has_type)) return {std::move(first), std::move(second)};
    return {typed(std::move(first)), follows ? std::move(second) : typed(std::move(second))};
  }

  std::string translate(const OperandValue& op) { return sources_.operands[op.operand].text; }
  std::string translate(const LabelValue& op) {
    return is_float(type_) ? as_double(sources_.labels[op.label]) : sources_.labels[op.label];
  }
  std::string translate(const ScalarValue& op) {
    const Number value = as_type(type_, sources_.scalars.at(op.name));
    return std::visit([&](auto number) { return number_sql(type_, static_cast<double>(number), dialect_); }, value);
  }
  std::string translate(const Constant& op) {
    if (const auto* const whole = std::get_if<std::int64_t>(&op.value)) return fmt::format("{}", *whole);
    return number_sql(type_, std::get<double>(op.value), dialect_);
  }
  std::string translate(const ApplyUnary& op) {
    const std::string x = pop().text;
    switch (op.function) {
#define EINREL_UNARY(id, name, usage, meaning, traits, value, slope, sql, ...) \
  case UnaryFunction::id: {                                                    \
    return sql;                                                                \
  }
#include "einsum/expr/functions.def"
    }
    throw Bug("a function outside its enumeration");
  }
  std::string translate(const ApplyBinary& op) {
    const auto [first, second] = take_two(op.function);
    if (is_comparison(op.function)) return compared(op.function, first, second);
    const std::string& a = first.text;
    const std::string& b = second.text;
    switch (op.function) {
      case BinaryFunction::power:
        if (!is_float(type_)) throw NotInSql{"powers of whole numbers are no whole numbers in SQL"};
        return fmt::format("power({}, {})", a, b);
      case BinaryFunction::divide: return fmt::format("({} / {})", a, b);
      case BinaryFunction::maximum: return greatest(dialect_, a, b);
      case BinaryFunction::minimum:  // of NaN, too, which is the greatest number
        return is_float(type_) && !is_sqlite(dialect_) ? fmt::format("(- greatest(- {}, - {}))", a, b)
                                                       : least(dialect_, a, b);
      default: return in_type(fmt::format("({} {} {})", a, name_of(op.function), b));
    }
  }
  std::string translate(const ApplyWhere&) {
    const std::string b = pop().text;
    const std::string a = pop().text;
    return fmt::format("CASE WHEN {} THEN {} ELSE {} END", is_true(pop().text, dialect_), a, b);
  }
  std::string translate(const Convert&) {
    const Term x = pop();
    if (is_float(type_)) return is_float(x.type) ? x.text : as_double(x.text);
    if (type_ == DType::boolean && x.type != type_) return truth_sql(x.text, dialect_);
    if (is_float(x.type)) return truncated(x.text);
    return x.type == DType::i64 ? in_type(x.text) : x.text;
  }
  std::string translate(const Round&) { throw NotInSql{"SQL has no floats that narrow"}; }
  std::string translate(const ApplyRandom&) { throw NotInSql{"SQL's random numbers are not those of the program"}; }
  std::string translate(const CheckRange&) { throw NotInSql{"SQL does not check an index that is read from data"}; }

  /// A row's formula, in which {0} is the first of these.
  template <class... Parts>
  static std::string of(std::string_view formula, const Parts&... parts) {
    return fmt::format(fmt::runtime(formula), parts...);
  }
  [[noreturn]] static std::string in_no_database(const std::string& function) {
    throw NotInSql{"SQL has no " + function};
  }
  /// x, but finite below: it may be multiplied by 0.
  std::string or_lowest(const std::string& x) const {
    return greatest(dialect_, x, number_sql(DType::f64, std::numeric_limits<double>::lowest(), dialect_));
  }

  /// What may have left its type, which SQL computes in 64 bits.
  std::string in_type(const std::string& x) const { return type_ == DType::i32 ? wrapped_to_i32(x) : x; }

  /// NaN compares false with everything, and is different from everything.
  std::string compared(BinaryFunction function, const Term& a, const Term& b) const {
    const bool is_different = function == BinaryFunction::not_equal;
    const bool is_same = is_different || function == BinaryFunction::equal;
    std::string holds = fmt::format("{} {} {}", a.text, is_same ? "=" : name_of(function), b.text);
    const bool is_above = function == BinaryFunction::greater || function == BinaryFunction::greater_equal;
    const Term& greater = is_above || (is_same && !a.is_constant) ? a : b;
    if (is_float(a.type) && !is_sqlite(dialect_) && !greater.is_constant)
      holds += fmt::format(" AND {} <> {}", greater.text, nan_sql(dialect_));
    return fmt::format("CASE WHEN {} THEN {} END", holds, is_different ? "0 ELSE 1" : "1 ELSE 0");
  }

  std::string step(const std::string& x) const {
    const std::string zero = number_sql(type_, 0, dialect_);
    const std::string one = number_sql(type_, 1, dialect_);
    if (!is_float(type_)) return fmt::format("CASE WHEN {} > 0 THEN {} ELSE {} END", x, one, zero);
    return fmt::format("CASE WHEN {0} <= 0 THEN {1} WHEN {0} <= {2} THEN {3} ELSE {0} END", x, zero,
                       number_sql(type_, std::numeric_limits<double>::infinity(), dialect_), one);
  }

  /// A float as a whole number, which stays in the range of its type; of NaN it is 0.
  std::string truncated(const std::string& x) const {
    const char* const low = type_ == DType::i32 ? "-2147483648" : "(-9223372036854775807 - 1)";
    const char* const high = type_ == DType::i32 ? "2147483647" : "9223372036854775807";
    if (is_sqlite(dialect_)) return fmt::format("coalesce(max(min(CAST({} AS INTEGER), {}), {}), 0)", x, high, low);
    return fmt::format(
        "CASE WHEN {0} = {1} THEN 0 WHEN {0} >= {2} THEN {2} WHEN {0} <= {3} THEN {3} ELSE CAST(trunc({0}) AS BIGINT) "
        "END",
        x, nan_sql(dialect_), high, low);
  }

  std::string as_double(const std::string& x) const { return typed_sql(DType::f64, x, dialect_); }

  const ScalarSources& sources_;
  Dialect dialect_;
  DType type_ = DType::f32;
  std::vector<Term> stack_;
};

}  // namespace

std::string typed_sql(DType type, const std::string& number, Dialect dialect) {
  if (is_float(type)) return fmt::format("CAST({} AS DOUBLE PRECISION)", number);
  if (is_sqlite(dialect)) return number;  // which has whole numbers of one size
  return fmt::format("CAST({} AS {})", number, type == DType::boolean ? "INTEGER" : "BIGINT");
}

std::string exp_sql(const std::string& x, Dialect dialect) {
  if (dialect != Dialect::postgres) return fmt::format("exp({})", x);
  return fmt::format("exp(CASE WHEN {0} BETWEEN -745 AND 709.782712893384 THEN {0} ELSE ({0}) * {1} END)", x,
                     number_sql(DType::f64, std::numeric_limits<double>::infinity(), dialect));
}

std::string number_sql(DType type, double value, Dialect dialect) {
  if (!is_float(type)) return fmt::format("{}", static_cast<std::int64_t>(value));
  if (std::isnan(value)) return nan_sql(dialect);
  if (std::isinf(value)) {
    const char* const sign = value < 0 ? "-" : "";
    return is_sqlite(dialect) ? fmt::format("({}9e999)", sign)
                              : fmt::format("CAST('{}Infinity' AS DOUBLE PRECISION)", sign);
  }
  return fmt::format("CAST({} AS DOUBLE PRECISION)", value);
}

std::string truth_sql(const std::string& number, Dialect dialect) {
  return fmt::format("CASE WHEN {} THEN 1 ELSE 0 END", is_true(number, dialect));
}

std::string wrapped_to_i32(const std::string& whole) {
  return fmt::format("((({} + 2147483648) & 4294967295) - 2147483648)", whole);
}

std::string to_sql(const ScalarExpr& expr, const ScalarSources& sources, Dialect dialect) {
  return ScalarTranslator(sources, dialect).run(expr);
}

}  // namespace einrel::sql
