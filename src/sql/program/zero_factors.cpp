#include "sql/program/zero_factors.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

namespace einrel::sql {
namespace {

/// The operands that make a value zero, one by one.
using Zeros = std::vector<bool>;

Zeros both(Zeros a, const Zeros& b) {
  std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::logical_and<>());
  return a;
}

Zeros either(Zeros a, const Zeros& b) {
  std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::logical_or<>());
  return a;
}

/// What is known of a value.
struct Known {
  Zeros zeros;
  std::optional<double> constant = {};
};

class ZeroReader {
 public:
  explicit ZeroReader(std::size_t operands) : none_(operands, false) {}

  Zeros run(const ScalarExpr& body) {
    for (const ScalarStep& step : body.steps) {
      taken_.assign(stack_.end() - static_cast<std::ptrdiff_t>(arity(step)), stack_.end());
      stack_.resize(stack_.size() - taken_.size());
      stack_.push_back(std::visit([&](const auto& op) { return read(op); }, step.op));
    }
    return std::move(stack_.back().zeros);
  }

 private:
  template <class Other>
  Known read(const Other&) {
    return {none_};
  }
  Known read(const OperandValue& op) {
    Zeros zeros = none_;
    zeros[op.operand] = true;
    return {zeros};
  }
  Known read(const Constant& op) {
    const double value = std::visit([](auto number) { return static_cast<double>(number); }, op.value);
    return {Zeros(none_.size(), value == 0), value};
  }
  Known read(const ApplyUnary& op) { return {einrel::apply(op.function, 0.0) == 0 ? zeros(0) : none_}; }
  Known read(const ApplyBinary& op) {
    if (op.function == BinaryFunction::multiply) return {either(zeros(0), zeros(1))};
    const std::optional<double> second = taken_[1].constant;
    const bool is_by_constant = (op.function == BinaryFunction::divide && second.value_or(0) != 0) ||
                                (op.function == BinaryFunction::power && second.value_or(0) > 0);
    if (is_by_constant) return {zeros(0)};
    return {einrel::apply(op.function, 0.0, 0.0) == 0 ? both(zeros(0), zeros(1)) : none_};
  }
  Known read(const ApplyWhere&) { return {both(either(zeros(0), zeros(1)), zeros(2))}; }
  Known read(const Convert&) { return {zeros(0)}; }
  Known read(const Round&) { return {zeros(0)}; }

  const Zeros& zeros(std::size_t argument) const { return taken_[argument].zeros; }

  Zeros none_;
  std::vector<Known> stack_;
  std::vector<Known> taken_;
};

}  // namespace

std::vector<bool> zero_factors(const ScalarExpr& body, std::size_t operands) { return ZeroReader(operands).run(body); }

}  // namespace einrel::sql
