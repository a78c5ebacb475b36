#include "sql/zero_factors.h"

#include <algorithm>
#include <functional>
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

/// f(0) = 0
bool keeps_zero(UnaryFunction function) {
  switch (function) {
    case UnaryFunction::exp:
    case UnaryFunction::log:
    case UnaryFunction::rsqrt:
    case UnaryFunction::sigmoid:
    case UnaryFunction::cos: return false;
    default: return true;
  }
}

/// f(0, 0) = 0
bool keeps_zeros(BinaryFunction function) {
  switch (function) {
    case BinaryFunction::add:
    case BinaryFunction::subtract:
    case BinaryFunction::less:
    case BinaryFunction::greater:
    case BinaryFunction::not_equal:
    case BinaryFunction::maximum:
    case BinaryFunction::minimum: return true;
    default: return false;
  }
}

class ZeroReader {
 public:
  explicit ZeroReader(std::size_t operands) : none_(operands, false) {}

  Zeros run(const ScalarExpr& body) {
    for (const ScalarStep& step : body.steps) {
      taken_.assign(stack_.end() - static_cast<std::ptrdiff_t>(arity(step)), stack_.end());
      stack_.resize(stack_.size() - taken_.size());
      stack_.push_back(std::visit([&](const auto& op) { return read(op); }, step.op));
    }
    return std::move(stack_.back());
  }

 private:
  template <class Other>
  Zeros read(const Other&) {
    return none_;
  }
  Zeros read(const OperandValue& op) {
    Zeros zeros = none_;
    zeros[op.operand] = true;
    return zeros;
  }
  Zeros read(const Constant& op) {
    const bool is_zero = std::visit([](auto number) { return number == 0; }, op.value);
    return Zeros(none_.size(), is_zero);
  }
  Zeros read(const ApplyUnary& op) { return keeps_zero(op.function) ? taken_[0] : none_; }
  Zeros read(const ApplyBinary& op) {
    if (op.function == BinaryFunction::multiply) return either(taken_[0], taken_[1]);
    return keeps_zeros(op.function) ? both(taken_[0], taken_[1]) : none_;
  }
  Zeros read(const ApplyWhere&) { return both(either(taken_[0], taken_[1]), taken_[2]); }
  Zeros read(const Convert&) { return taken_[0]; }
  Zeros read(const Round&) { return taken_[0]; }

  Zeros none_;
  std::vector<Zeros> stack_;
  std::vector<Zeros> taken_;
};

}  // namespace

std::vector<bool> zero_factors(const ScalarExpr& body, std::size_t operands) { return ZeroReader(operands).run(body); }

}  // namespace einrel::sql
