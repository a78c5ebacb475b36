#include "export/formula.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "base/error.h"
#include "export/python_names.h"

namespace einrel {
namespace {

struct FormulaText {
  PythonText text;
  DType type = DType::f32;
  bool is_bare = false;  ///< numbers of Python alone, which follow the type of arrays beside them
};

class FormulaWriter {
 public:
  FormulaWriter(const FormulaLeaves& leaves, const ArrayLibrary& library, ModuleNeeds& needs)
      : leaves_(leaves), library_(library), needs_(needs) {}

  PythonText run(const ScalarExpr& expr) {
    for (const ScalarStep& step : expr.steps) {
      type_ = step.type;
      stack_.push_back(std::visit([&](const auto& op) { return write(op); }, step.op));
    }
    return array(stack_.back());
  }

 private:
  FormulaText pop() {
    FormulaText top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }

  std::string type_text(DType type) const { return python_type(library_, type); }
  PythonText number(const std::string& text, DType type) const {
    return {fmt::format(fmt::runtime(library_.number), fmt::arg("x", text), fmt::arg("type", type_text(type)))};
  }
  PythonText array(const FormulaText& x) const { return x.is_bare ? number(x.text.text, x.type) : x.text; }
  /// What functions of the library are given.
  FormulaText argument(FormulaText x) const {
    return library_.takes_numbers ? std::move(x) : FormulaText{array(x), x.type};
  }

  FormulaText write(const OperandValue& op) { return {leaves_.operand(op.operand), type_}; }
  FormulaText write(const LabelValue& op) {
    const PythonText positions = leaves_.position(op.label);
    return {type_ == DType::i64 ? positions : cast_text(positions, type_text(type_), library_), type_};
  }
  FormulaText write(const ScalarValue& op) { return {number(leaves_.scalar(op.name), type_), type_}; }
  FormulaText write(const Constant& op) {
    const auto* const whole = std::get_if<std::int64_t>(&op.value);
    const bool is_below = whole != nullptr ? *whole < 0 : std::get<double>(op.value) < 0;
    std::string text =
        whole == nullptr ? python_number(std::get<double>(op.value), library_.module) : fmt::format("{}", *whole);
    if (type_ == DType::boolean) text = whole != nullptr && *whole == 0 ? "False" : "True";
    return {{std::move(text), is_below ? Binding::sign : Binding::name}, type_, true};
  }
  FormulaText write(const ApplyUnary& op) {
    FormulaText x = pop();
    if (op.function == UnaryFunction::floor && !is_float(type_)) return x;
    const std::string_view row = library_.unary(op.function);
    if (op.function == UnaryFunction::negate)
      return {{fmt::format(fmt::runtime(row), within(x.text, Binding::sign)), Binding::sign}, type_, x.is_bare};
    x = argument(std::move(x));
    return {{fmt::format(fmt::runtime(row), x.text.text)}, type_, x.is_bare};
  }
  FormulaText write(const ApplyBinary& op) {
    FormulaText b = pop();
    FormulaText a = pop();
    const auto between = [&](Binding binding, Binding left, Binding right) {
      return FormulaText{
          {fmt::format("{} {} {}", within(a.text, left), name_of(op.function), within(b.text, right)), binding},
          type_,
          a.is_bare && b.is_bare};
    };
    const auto call = [&](const std::string& name) {
      a = argument(std::move(a));
      b = argument(std::move(b));
      return FormulaText{{fmt::format("{}({}, {})", name, a.text.text, b.text.text)}, type_, a.is_bare && b.is_bare};
    };
    switch (kind_of(op.function)) {
      case BinaryKind::extreme: return call(fmt::format("{}.{}imum", library_.module, name_of(op.function)));
      case BinaryKind::comparison: return between(Binding::comparison, Binding::sum, Binding::sum);
      case BinaryKind::power: {
        if (is_float(type_)) return call(fmt::format("{}.{}", library_.module, library_.power));
        needs_.whole_power = true;
        return call("_whole_power");
      }
      case BinaryKind::quotient:
        if (a.is_bare && b.is_bare) b = {array(b), type_};  // Python's own numbers have no quotient by 0
        return between(Binding::product, Binding::product, Binding::sign);
      case BinaryKind::arithmetic: break;
    }
    if (op.function == BinaryFunction::multiply) return between(Binding::product, Binding::product, Binding::sign);
    return between(Binding::sum, Binding::sum, Binding::product);
  }
  FormulaText write(const ApplyWhere&) {
    FormulaText b = pop();
    FormulaText a = pop();
    const FormulaText condition = argument(pop());
    if (a.is_bare && b.is_bare) a = argument(std::move(a));
    const std::string holds =
        condition.type == DType::boolean ? condition.text.text : within(condition.text, Binding::sum) + " != 0";
    return {{fmt::format("{}.where({}, {}, {})", library_.module, holds, a.text.text, b.text.text)},
            type_,
            a.is_bare && b.is_bare};
  }
  FormulaText write(const Convert&) {
    FormulaText x = pop();
    if (x.type == type_) return x;
    if (type_ == DType::boolean)
      return {{within(x.text, Binding::sum) + " != 0", Binding::comparison}, type_, x.is_bare};
    if (is_float(x.type) && !is_float(type_)) {
      needs_.to_integer = true;
      return {{fmt::format("_to_integer({}, {})", array(x).text, type_text(type_))}, type_};
    }
    return {cast_text(array(x), type_text(type_), library_), type_};
  }
  FormulaText write(const Round& op) {
    const FormulaText x = pop();
    const DType from = x.type == DType::f32 ? DType::f32 : DType::f64;
    const PythonText values = x.type == from ? array(x) : cast_text(array(x), type_text(from), library_);
    const std::string rounded = library_.rounded(values, from, op.to, needs_);
    return {from == DType::f32 ? PythonText{rounded} : cast_text({rounded}, type_text(DType::f32), library_), type_};
  }
  FormulaText write(const ApplyRandom& op) {
    const FormulaText iteration = argument(pop());
    const FormulaText position = argument(pop());
    const FormulaText seed = argument(pop());
    (op.function == RandomFunction::uniform ? needs_.uniform : needs_.normal) = true;
    return {{fmt::format("_{}({}, {}, {}, {}, {})", name_of(op.function), seed.text.text, position.text.text,
                         iteration.text.text, leaves_.stream(op.stream), type_text(type_))},
            type_};
  }
  /// Nothing ends a run on devices: what lies outside reads, or adds, nothing.
  FormulaText write(const CheckRange&) {
    pop();
    return pop();
  }

  const FormulaLeaves& leaves_;
  const ArrayLibrary& library_;
  ModuleNeeds& needs_;
  DType type_ = DType::f32;
  std::vector<FormulaText> stack_;
};

}  // namespace

PythonText formula_text(const ScalarExpr& expr, const FormulaLeaves& leaves, const ArrayLibrary& library,
                        ModuleNeeds& needs) {
  return FormulaWriter(leaves, library, needs).run(expr);
}

}  // namespace einrel
