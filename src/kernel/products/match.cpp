#include "kernel/products/match.h"

#include <optional>
#include <vector>

#include "base/error.h"

namespace einrel::contraction {
namespace {

/// A value on the stack of a body, as far as it is of use here.
struct Term {
  enum class Kind : std::uint8_t {
    scalar,      ///< scale
    operand,     ///< scale * X
    difference,  ///< X - Y
    join         ///< scale * join(X, Y)
  };
  Kind kind = Kind::scalar;
  Match match;  ///< of a join; of an operand, its operands[0]; of a difference, both
  double scale = 1;
  bool converted = false;  ///< of an operand: its elements are computed in another type than they are stored in
};
using Kind = Term::Kind;

bool is_plain_operand(const Term& term) { return term.kind == Kind::operand && term.scale == 1; }

/// What has a factor already takes no other, since the product of both might leave the range of the type.
std::optional<Term> scaled(Term term, double factor) {
  const bool is_sign = factor == 1 || factor == -1;
  if (term.kind == Kind::difference || (term.scale != 1 && !is_sign)) return std::nullopt;
  term.scale *= factor;
  return term;
}

Term joined(Join join, const Term& a, const Term& b) {
  Term term{Kind::join, {}, 1, false};
  term.match.combination.join = join;
  term.match.operands = {a.match.operands[0], b.match.operands[0]};
  term.match.factors = {a.scale, b.scale};
  for (double& factor : term.match.factors) {
    if (factor == -1) {
      factor = 1;
      term.scale *= -1;
    }
  }
  return term;
}

Term of_difference(Join join, const Term& difference) {
  Term term{Kind::join, difference.match, 1, false};
  term.match.combination.join = join;
  return term;
}

std::optional<Term> multiply(const Term& a, const Term& b) {
  if (a.kind == Kind::scalar && b.kind != Kind::scalar) return scaled(b, a.scale);
  if (b.kind == Kind::scalar && a.kind != Kind::scalar) return scaled(a, b.scale);
  if (a.kind == Kind::operand && b.kind == Kind::operand) return joined(Join::multiply, a, b);
  if (a.kind == Kind::difference && b.kind == Kind::difference && a.match.operands == b.match.operands) {
    return of_difference(Join::square_difference, a);
  }
  return std::nullopt;
}

/// Walks the steps of a body and keeps what their stack would hold, as terms.
class Matcher {
 public:
  explicit Matcher(const ScalarBindings& scalars) : scalars_(scalars) {}

  std::optional<Term> run(const ScalarExpr& body) {
    for (const ScalarStep& step : body.steps) {
      const std::optional<Term> term = std::visit([&](const auto& op) { return apply(op, step.type); }, step.op);
      if (!term) return std::nullopt;
      stack_.push_back(*term);
    }
    return stack_.back();
  }

 private:
  Term pop() {
    const Term top = stack_.back();
    stack_.pop_back();
    return top;
  }

  static std::optional<Term> apply(const OperandValue& op, DType) {
    Term term{Kind::operand, {}, 1, false};
    term.match.operands[0] = op.operand;
    return term;
  }
  static std::optional<Term> apply(const Constant& op, DType) {
    return Term{Kind::scalar, {}, std::visit([](auto x) { return static_cast<double>(x); }, op.value), false};
  }
  std::optional<Term> apply(const ScalarValue& op, DType) const {
    const auto bound = scalars_.find(op.name);
    invariant(bound != scalars_.end(), "a scalar is not bound");
    return Term{Kind::scalar, {}, bound->second, false};
  }
  static std::optional<Term> apply(const LabelValue&, DType) { return std::nullopt; }

  std::optional<Term> apply(const ApplyUnary& op, DType) {
    const Term x = pop();
    if (op.function == UnaryFunction::negate) return scaled(x, -1);
    if (x.kind != Kind::difference) return std::nullopt;
    if (op.function == UnaryFunction::sq) return of_difference(Join::square_difference, x);
    if (op.function == UnaryFunction::abs) return of_difference(Join::absolute_difference, x);
    return std::nullopt;
  }

  std::optional<Term> apply(const ApplyBinary& op, DType) {
    const Term b = pop();
    const Term a = pop();
    switch (op.function) {
      case BinaryFunction::multiply: return multiply(a, b);
      case BinaryFunction::power:
        if (a.kind == Kind::difference && b.kind == Kind::scalar && b.scale == 2) {
          return of_difference(Join::square_difference, a);
        }
        return std::nullopt;
      case BinaryFunction::subtract: {
        if (!is_plain_operand(a) || !is_plain_operand(b)) return std::nullopt;
        Term term = joined(Join::absolute_difference, a, b);
        term.kind = Kind::difference;
        return term;
      }
      case BinaryFunction::add: return of_operands(Join::add, a, b);
      case BinaryFunction::maximum: return of_operands(Join::maximum, a, b);
      case BinaryFunction::minimum: return of_operands(Join::minimum, a, b);
      default: return std::nullopt;
    }
  }

  static std::optional<Term> of_operands(Join join, const Term& a, const Term& b) {
    if (!is_plain_operand(a) || !is_plain_operand(b)) return std::nullopt;
    return joined(join, a, b);
  }

  static std::optional<Term> apply(const ApplyWhere&, DType) { return std::nullopt; }

  /// Of an operand only, and once: its elements are converted when they are read.
  std::optional<Term> apply(const Convert&, DType) {
    Term x = pop();
    if (!is_plain_operand(x) || x.converted) return std::nullopt;
    x.converted = true;
    return x;
  }

  /// Products are of operands as they are stored.
  static std::optional<Term> apply(const Round&, DType) { return std::nullopt; }
  static std::optional<Term> apply(const ApplyRandom&, DType) { return std::nullopt; }
  static std::optional<Term> apply(const CheckRange&, DType) { return std::nullopt; }

  const ScalarBindings& scalars_;
  std::vector<Term> stack_;
};

constexpr const char* no_reduction = "it reduces nothing";

std::optional<Reduce> reduce_of(Reducer reducer) {
  switch (reducer) {
    case Reducer::sum:
    case Reducer::mean: return Reduce::sum;
    case Reducer::max: return Reduce::max;
    case Reducer::min: return Reduce::min;
    default: return std::nullopt;
  }
}

double reduced_count(const EinSum& einsum) {
  double count = 1;
  for (const std::size_t label : einsum.reduced) count *= static_cast<double>(einsum.labels[label].extent.value());
  return count;
}

}  // namespace

std::variant<Match, std::string> match(const EinSum& einsum, const ScalarBindings& scalars) {
  const std::optional<Reduce> reduce = einsum.reducer ? reduce_of(*einsum.reducer) : Reduce::sum;
  if (!reduce) return "it reduces by " + std::string(name_of(*einsum.reducer));
  const DType type = einsum.body.type();
  if (type != DType::f32 && type != DType::f64 && !is_integer(type)) {
    return "it computes in " + std::string(name_of(type));
  }
  const std::optional<Term> term = Matcher(scalars).run(einsum.body);
  if (!term || term->kind != Kind::join) return "its body is no x*y, x+y, max(x,y), min(x,y), abs(x-y) or sq(x-y)";
  Match result = term->match;
  if (result.operands[0] == result.operands[1]) return "it reads only one operand";
  result.combination.reduce = *reduce;
  result.type = type;
  result.scale = term->scale;
  result.reduces = einsum.reducer.has_value();
  if (einsum.reducer == Reducer::mean) {
    if (!is_float(type)) return "the mean of integers is computed in f64";
    result.scale /= reduced_count(einsum);
  }
  const bool has_factor = result.scale != 1 || result.factors != std::array<double, 2>{1, 1};
  if (!result.reduces && (has_factor || term->match.combination.join != Join::multiply)) return no_reduction;
  if (!has_kernels(result.combination)) return "its join and reduction have no kernels together";
  if (has_factor && (*reduce != Reduce::sum || !is_float(type))) return "it has a factor beside its operands";
  return result;
}

}  // namespace einrel::contraction
