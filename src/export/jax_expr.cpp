#include "export/jax_expr.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "export/python_names.h"

namespace einrel {
namespace {

/// How tightly the outermost operator of a text binds: Python's order, of those that formulas have.
enum class Binding : std::uint8_t { comparison, sum, product, sign, power, name };

struct JaxText {
  std::string text;
  Binding binding = Binding::name;
  DType type = DType::f32;
  bool is_bare = false;  ///< numbers alone, which follow the type of arrays beside them
};

std::string within(const JaxText& text, Binding least) {
  return text.binding < least ? fmt::format("({})", text.text) : text.text;
}

JaxText call(std::string text, DType type, bool is_bare = false) {
  return {std::move(text), Binding::name, type, is_bare};
}

/// Of each function, its text of {}.
std::string_view jax_text_of(UnaryFunction function) {
  switch (function) {
    case UnaryFunction::negate: return "-{}";
    case UnaryFunction::abs: return "jnp.abs({})";
    case UnaryFunction::exp: return "jnp.exp({})";
    case UnaryFunction::log: return "jnp.log({})";
    case UnaryFunction::log1p: return "jnp.log1p({})";
    case UnaryFunction::expm1: return "jnp.expm1({})";
    case UnaryFunction::sqrt: return "jnp.sqrt({})";
    case UnaryFunction::rsqrt: return "lax.rsqrt({})";
    case UnaryFunction::sq: return "jnp.square({})";
    case UnaryFunction::tanh: return "jnp.tanh({})";
    case UnaryFunction::sigmoid: return "jax.nn.sigmoid({})";
    case UnaryFunction::relu: return "jnp.maximum({}, 0)";
    case UnaryFunction::step: return "jnp.sign(jnp.maximum({}, 0))";
    case UnaryFunction::gelu: return "jax.nn.gelu({}, approximate=False)";
    case UnaryFunction::silu: return "jax.nn.silu({})";
    case UnaryFunction::erf: return "lax.erf({})";
    case UnaryFunction::erfc: return "lax.erfc({})";
    case UnaryFunction::sin: return "jnp.sin({})";
    case UnaryFunction::cos: return "jnp.cos({})";
    case UnaryFunction::floor: return "jnp.floor({})";
    case UnaryFunction::stop_gradient: return "lax.stop_gradient({})";
  }
  throw Bug("a function outside its enumeration");
}

class FormulaWriter {
 public:
  FormulaWriter(const JaxLeaves& leaves, JaxHelpers& helpers) : leaves_(leaves), helpers_(helpers) {}

  JaxText run(const ScalarExpr& expr) {
    for (const ScalarStep& step : expr.steps) {
      type_ = step.type;
      stack_.push_back(std::visit([&](const auto& op) { return write(op); }, step.op));
    }
    return stack_.back();
  }

 private:
  JaxText pop() {
    JaxText top = std::move(stack_.back());
    stack_.pop_back();
    return top;
  }

  JaxText write(const OperandValue& op) { return call(leaves_.operand(op.operand), type_); }
  JaxText write(const LabelValue& op) {
    helpers_.positions = true;
    const std::string positions = leaves_.position(op.label);
    return call(type_ == DType::i64 ? positions : fmt::format("{}.astype({})", positions, jax_type(type_)), type_);
  }
  JaxText write(const ScalarValue& op) {
    return call(fmt::format("jnp.asarray({}, {})", leaves_.scalar(op.name), jax_type(type_)), type_);
  }
  JaxText write(const Constant& op) {
    const auto* const whole = std::get_if<std::int64_t>(&op.value);
    const bool is_below = whole != nullptr ? *whole < 0 : std::get<double>(op.value) < 0;
    std::string text = whole == nullptr ? python_number(std::get<double>(op.value)) : fmt::format("{}", *whole);
    if (type_ == DType::boolean) text = whole != nullptr && *whole == 0 ? "False" : "True";
    return {std::move(text), is_below ? Binding::sign : Binding::name, type_, true};
  }
  JaxText write(const ApplyUnary& op) {
    JaxText x = pop();
    if (op.function == UnaryFunction::floor && !is_float(type_)) return x;
    const std::string_view row = jax_text_of(op.function);
    const bool is_sign = op.function == UnaryFunction::negate;
    return {fmt::format(fmt::runtime(row), is_sign ? within(x, Binding::sign) : x.text),
            is_sign ? Binding::sign : Binding::name, type_, x.is_bare};
  }
  JaxText write(const ApplyBinary& op) {
    const JaxText b = pop();
    const JaxText a = pop();
    const bool is_bare = a.is_bare && b.is_bare;
    const auto between = [&](Binding binding, Binding left, Binding right) {
      return JaxText{fmt::format("{} {} {}", within(a, left), name_of(op.function), within(b, right)), binding, type_,
                     is_bare};
    };
    switch (kind_of(op.function)) {
      case BinaryKind::extreme:
        return call(fmt::format("jnp.{}imum({}, {})", name_of(op.function), a.text, b.text), type_, is_bare);
      case BinaryKind::comparison: return between(Binding::comparison, Binding::sum, Binding::sum);
      case BinaryKind::power: {
        if (!is_float(type_)) helpers_.whole_power = true;
        const std::string_view name = is_float(type_) ? "jnp.power" : "_whole_power";
        return call(fmt::format("{}({}, {})", name, a.text, b.text), type_, is_bare);
      }
      case BinaryKind::quotient: return between(Binding::product, Binding::product, Binding::sign);
      case BinaryKind::arithmetic: break;
    }
    if (op.function == BinaryFunction::multiply) return between(Binding::product, Binding::product, Binding::sign);
    return between(Binding::sum, Binding::sum, Binding::product);
  }
  JaxText write(const ApplyWhere&) {
    const JaxText b = pop();
    const JaxText a = pop();
    const JaxText condition = pop();
    const std::string holds =
        condition.type == DType::boolean ? condition.text : within(condition, Binding::sum) + " != 0";
    return call(fmt::format("jnp.where({}, {}, {})", holds, a.text, b.text), type_, a.is_bare && b.is_bare);
  }
  JaxText write(const Convert&) {
    JaxText x = pop();
    if (x.type == type_) return x;
    if (type_ == DType::boolean) return {within(x, Binding::sum) + " != 0", Binding::comparison, type_};
    if (is_float(x.type) && !is_float(type_)) {
      helpers_.to_integer = true;
      return call(fmt::format("_to_integer({}, {})", x.text, jax_type(type_)), type_);
    }
    return call(fmt::format("jnp.asarray({}).astype({})", x.text, jax_type(type_)), type_);
  }
  JaxText write(const Round& op) {
    const JaxText x = pop();
    const bool is_wide = x.type != DType::f32;
    const std::string from = fmt::format("jnp.asarray({}, {})", x.text, jax_type(is_wide ? DType::f64 : DType::f32));
    const std::string rounded = jax_rounded(from, op.to, helpers_);
    return call(is_wide ? fmt::format("{}.astype(jnp.float32)", rounded) : rounded, type_);
  }
  JaxText write(const ApplyRandom& op) {
    const JaxText iteration = pop();
    const JaxText position = pop();
    const JaxText seed = pop();
    (op.function == RandomFunction::uniform ? helpers_.uniform : helpers_.normal) = true;
    return call(fmt::format("_{}({}, {}, {}, {}, {})", name_of(op.function), seed.text, position.text, iteration.text,
                            op.stream, jax_type(type_)),
                type_);
  }
  /// Nothing ends a run on devices: what lies outside reads, or adds, nothing.
  JaxText write(const CheckRange&) {
    pop();
    return pop();
  }

  const JaxLeaves& leaves_;
  JaxHelpers& helpers_;
  DType type_ = DType::f32;
  std::vector<JaxText> stack_;
};

}  // namespace

std::string jax_formula(const ScalarExpr& expr, const JaxLeaves& leaves, JaxHelpers& helpers) {
  const JaxText found = FormulaWriter(leaves, helpers).run(expr);
  return found.is_bare ? fmt::format("jnp.asarray({}, {})", found.text, jax_type(found.type)) : found.text;
}

std::string jax_rounded(const std::string& values, DType to, JaxHelpers& helpers) {
  if (to == DType::bf16) return fmt::format("lax.reduce_precision({}, 8, 7)", values);
  helpers.half = true;
  return fmt::format("_half({})", values);
}

std::string jax_type(DType type) {
  switch (type) {
    case DType::f32: return "jnp.float32";
    case DType::f64: return "jnp.float64";
    case DType::bf16: return "jnp.bfloat16";
    case DType::f16: return "jnp.float16";
    case DType::i32: return "jnp.int32";
    case DType::i64: return "jnp.int64";
    default: return "jnp.bool_";
  }
}

}  // namespace einrel
