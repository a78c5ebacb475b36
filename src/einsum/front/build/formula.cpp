#include "einsum/front/build/formula.h"

#include <map>
#include <utility>

namespace einrel::build {

Formula::Formula(Operation op, std::vector<Formula> arguments)
    : data_(std::make_shared<Data>(std::move(op), std::move(arguments))) {}

Formula::Data::~Data() {
  std::vector<Formula> waiting = std::move(arguments);
  while (!waiting.empty()) {
    const Formula formula = std::move(waiting.back());
    waiting.pop_back();
    if (formula.data_.use_count() > 1) continue;
    for (Formula& argument : formula.data_->arguments) waiting.push_back(std::move(argument));
    formula.data_->arguments.clear();
  }
}

Index index(const std::string& label) { return {{{1, {label, {}}}}, 0, {}}; }

bool is_plain(const Index& index) {
  return index.offset == 0 && index.terms.size() == 1 && index.terms.front().coefficient == 1;
}

namespace {

/// a + sign * b, where no number overflows.
std::optional<Index> sum_of(Index a, const Index& b, std::int64_t sign) {
  for (const IndexTerm& term : b.terms) a.terms.push_back({sign * term.coefficient, term.label});
  std::int64_t offset = 0;
  if (__builtin_mul_overflow(sign, b.offset, &offset)) return std::nullopt;
  if (__builtin_add_overflow(a.offset, offset, &a.offset)) return std::nullopt;
  return a;
}

std::optional<Index> product_of(Index a, Index b) {
  if (a.terms.empty()) std::swap(a, b);
  if (!b.terms.empty()) return std::nullopt;
  for (IndexTerm& term : a.terms) {
    if (__builtin_mul_overflow(term.coefficient, b.offset, &term.coefficient)) return std::nullopt;
  }
  if (__builtin_mul_overflow(a.offset, b.offset, &a.offset)) return std::nullopt;
  return a;
}

/// What an operation makes of the indices that it takes; nothing where that is no index.
std::optional<Index> index_by(const Operation& op, const std::vector<Index>& taken) {
  if (const auto* const number = std::get_if<Number>(&op)) {
    return number->integer ? std::optional(Index{{}, *number->integer, {}}) : std::nullopt;
  }
  if (const auto* const use = std::get_if<NameUse>(&op)) return index(use->name);
  if (const auto* const unary = std::get_if<Unary>(&op)) {
    return unary->function == UnaryFunction::negate ? sum_of({}, taken.front(), -1) : std::nullopt;
  }
  const auto* const binary = std::get_if<Binary>(&op);
  if (binary == nullptr) return std::nullopt;
  switch (binary->function) {
    case BinaryFunction::add: return sum_of(taken[0], taken[1], 1);
    case BinaryFunction::subtract: return sum_of(taken[0], taken[1], -1);
    case BinaryFunction::multiply: return product_of(taken[0], taken[1]);
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<Index> index_of(const Formula& formula) {
  std::vector<Index> stack;
  for (const Node& node : expr_of(formula).nodes) {
    const auto first = stack.end() - static_cast<std::ptrdiff_t>(arity(node));
    const std::vector<Index> taken(first, stack.end());
    stack.erase(first, stack.end());
    std::optional<Index> made = index_by(node.op, taken);
    if (!made) return std::nullopt;
    stack.push_back(std::move(*made));
  }
  return std::move(stack.back());
}

Formula number(double value) { return Formula(Number{value, std::nullopt}); }
Formula whole_number(std::int64_t value) { return Formula(Number{static_cast<double>(value), value}); }
Formula name(const std::string& name) { return Formula(NameUse{name}); }
Formula element(const std::string& tensor, std::vector<Index> indices, std::optional<double> pad) {
  return Formula(Access{{tensor, {}}, std::move(indices), pad});
}
Formula element(const std::string& tensor, const std::vector<std::string>& labels) {
  std::vector<Index> indices;
  for (const std::string& label : labels) indices.push_back(index(label));
  return element(tensor, std::move(indices));
}
Formula apply(UnaryFunction function, const Formula& x) { return Formula(Unary{function}, {x}); }
Formula apply(BinaryFunction function, const Formula& a, const Formula& b) { return Formula(Binary{function}, {a, b}); }
Formula where(const Formula& condition, const Formula& a, const Formula& b) {
  return Formula(Where{}, {condition, a, b});
}
Formula cast(DType type, const Formula& x) { return Formula(Cast{type}, {x}); }
Formula reduce(Reducer reducer, const std::vector<std::string>& labels, const Formula& x) {
  return Formula(Reduce{reducer, names(labels)}, {x});
}
Formula random(RandomFunction function, const Formula& seed) { return Formula(Random{function, std::nullopt}, {seed}); }
Formula call(OpaqueResult result, const std::vector<std::string>& matrix, const Formula& x) {
  return Formula(OpaqueCall{result, names(matrix)}, {x});
}
Formula call(const std::string& macro, const std::vector<std::string>& labels, std::vector<Formula> arguments) {
  const std::size_t count = arguments.size();
  return Formula(MacroCall{{macro, {}}, names(labels), count}, std::move(arguments));
}

std::vector<Name> names(const std::vector<std::string>& texts) {
  std::vector<Name> result;
  for (const std::string& text : texts) result.push_back({text, {}});
  return result;
}

Formula formula_of(const Expr& expr) {
  std::vector<Formula> open;
  for (const Node& node : expr.nodes) {
    const auto first = open.end() - static_cast<std::ptrdiff_t>(arity(node));
    Formula formula(node.op, {first, open.end()});
    open.erase(first, open.end());
    open.push_back(std::move(formula));
  }
  return open.back();
}

}  // namespace einrel::build
