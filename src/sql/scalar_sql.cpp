#include "sql/scalar_sql.h"

#include <fmt/format.h>

#include <cmath>

#include "base/error.h"
#include "einsum/scalar_value.h"

namespace einrel::sql {
namespace {

/// Texts that are used twice inside each other grow: refused where they are longer than databases read.
constexpr std::size_t most_characters = 100'000;

bool is_sqlite(Dialect dialect) { return dialect == Dialect::sqlite; }

class ScalarTranslator {
 public:
  ScalarTranslator(const ScalarSources& sources, Dialect dialect) : sources_(sources), dialect_(dialect) {}

  std::string run(const ScalarExpr& expr) {
    for (const ScalarStep& step : expr.steps) {
      if (is_narrow(step.type)) throw NotInSql{"SQL has no floats that narrow"};
      type_ = step.type;
      std::string text = std::visit([&](const auto& op) { return translate(op); }, step.op);
      if (text.size() > most_characters) throw NotInSql{"its formula is too long"};
      stack_.push_back({std::move(text), step.type});
    }
    return stack_.back().text;
  }

 private:
  struct Term {
    std::string text;
    DType type;
  };

  Term pop() {
    Term top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }

  std::string translate(const OperandValue& op) { return sources_.operands[op.operand]; }
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
    std::string x = pop().text;
    const char* const largest = is_sqlite(dialect_) ? "max" : "greatest";
    switch (op.function) {
      case UnaryFunction::negate: return fmt::format("(- {})", x);
      case UnaryFunction::abs:
      case UnaryFunction::exp:
      case UnaryFunction::sqrt:
      case UnaryFunction::tanh:
      case UnaryFunction::sin:
      case UnaryFunction::cos:
      case UnaryFunction::floor: return fmt::format("{}({})", name_of(op.function), x);
      case UnaryFunction::log: return fmt::format("ln({})", x);
      case UnaryFunction::log1p: return fmt::format("ln(1 + {})", x);
      case UnaryFunction::expm1: return fmt::format("(exp({}) - 1)", x);
      case UnaryFunction::rsqrt: return fmt::format("(1 / sqrt({}))", x);
      case UnaryFunction::sq: return is_float(type_) ? fmt::format("power({}, 2)", x) : fmt::format("({0} * {0})", x);
      case UnaryFunction::sigmoid: return fmt::format("(1 / (1 + exp(- {})))", x);
      case UnaryFunction::silu: return fmt::format("({0} / (1 + exp(- {0})))", x);
      case UnaryFunction::relu: return fmt::format("{}({}, 0)", largest, x);
      case UnaryFunction::step: return fmt::format("CASE WHEN {} > 0 THEN 1 ELSE 0 END", x);
      case UnaryFunction::gelu:
      case UnaryFunction::erf: throw NotInSql{"SQL has no erf"};
      case UnaryFunction::stop_gradient: return x;
    }
    throw Bug("a function outside its enumeration");
  }
  std::string translate(const ApplyBinary& op) {
    const std::string b = pop().text;
    const std::string a = pop().text;
    const bool sqlite = is_sqlite(dialect_);
    switch (op.function) {
      case BinaryFunction::power:
        if (!is_float(type_)) throw NotInSql{"powers of whole numbers are no whole numbers in SQL"};
        return fmt::format("power({}, {})", a, b);
      case BinaryFunction::divide: return fmt::format("({} / {})", a, b);
      case BinaryFunction::maximum: return fmt::format("{}({}, {})", sqlite ? "max" : "greatest", a, b);
      case BinaryFunction::minimum: return fmt::format("{}({}, {})", sqlite ? "min" : "least", a, b);
      case BinaryFunction::equal: return fmt::format("CASE WHEN {} = {} THEN 1 ELSE 0 END", a, b);
      case BinaryFunction::not_equal: return fmt::format("CASE WHEN {} <> {} THEN 1 ELSE 0 END", a, b);
      default: break;
    }
    if (is_comparison(op.function))
      return fmt::format("CASE WHEN {} {} {} THEN 1 ELSE 0 END", a, name_of(op.function), b);
    return fmt::format("({} {} {})", a, name_of(op.function), b);
  }
  std::string translate(const ApplyWhere&) {
    const std::string b = pop().text;
    const std::string a = pop().text;
    return fmt::format("CASE WHEN {} <> 0 THEN {} ELSE {} END", pop().text, a, b);
  }
  std::string translate(const Convert&) {
    const Term x = pop();
    if (is_float(type_)) return is_float(x.type) ? x.text : as_double(x.text);
    if (type_ == DType::boolean && x.type != type_) return fmt::format("CASE WHEN {} <> 0 THEN 1 ELSE 0 END", x.text);
    if (!is_float(x.type)) return x.text;
    return is_sqlite(dialect_) ? fmt::format("CAST({} AS INTEGER)", x.text)
                               : fmt::format("CAST(trunc({}) AS BIGINT)", x.text);
  }
  std::string translate(const Round&) { throw NotInSql{"SQL has no floats that narrow"}; }
  std::string translate(const ApplyRandom&) { throw NotInSql{"SQL's random numbers are not those of the program"}; }
  std::string translate(const CheckRange&) { throw NotInSql{"SQL does not check an index that is read from data"}; }

  static std::string as_double(const std::string& x) { return fmt::format("CAST({} AS DOUBLE PRECISION)", x); }

  const ScalarSources& sources_;
  Dialect dialect_;
  DType type_ = DType::f32;
  std::vector<Term> stack_;
};

}  // namespace

std::string number_sql(DType type, double value, Dialect dialect) {
  if (!is_float(type)) return fmt::format("{}", static_cast<std::int64_t>(value));
  if (std::isnan(value)) throw NotInSql{"not every database has the number NaN"};
  if (std::isinf(value)) {
    const char* const sign = value < 0 ? "-" : "";
    return is_sqlite(dialect) ? fmt::format("({}9e999)", sign)
                              : fmt::format("CAST('{}Infinity' AS DOUBLE PRECISION)", sign);
  }
  return fmt::format("CAST({} AS DOUBLE PRECISION)", value);
}

std::string to_sql(const ScalarExpr& expr, const ScalarSources& sources, Dialect dialect) {
  return ScalarTranslator(sources, dialect).run(expr);
}

}  // namespace einrel::sql
