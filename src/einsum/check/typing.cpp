#include "einsum/check/typing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace einrel {
namespace {

using Kind = TypedBuilder::Value::Kind;

/// Whether a weak value can still become an integer.
bool is_whole(const TypedBuilder::Value& value) { return value.kind == Kind::weak_integer || value.may_be_whole; }

std::string cast_first(std::string_view what) { return fmt::format("cast first, for example f32(...); {}", what); }

}  // namespace

void TypedBuilder::emit(ScalarStep step, bool weak) {
  expr_.steps.push_back(std::move(step));
  weak_.push_back(weak);
}

void TypedBuilder::push(Kind kind, DType dtype, ScalarStep step, bool weak) {
  stack_.push_back({kind, dtype, expr_.steps.size(), false});
  emit(std::move(step), weak);
}

void TypedBuilder::push_operand(std::size_t operand, DType dtype, DType stored) {
  push(Kind::strong, dtype, {compute_type(dtype), OperandValue{operand}}, false);
  stack_.back().is_rounded = stored == dtype;
}

void TypedBuilder::push_number(const build::Number& number) {
  if (number.integer) {
    push(Kind::weak_integer, DType::f32, {DType::i64, Constant{*number.integer}}, true);
  } else {
    push(Kind::weak_float, DType::f32, {DType::f32, Constant{number.value}}, true);
  }
}

void TypedBuilder::push_label(std::size_t label) {
  push(Kind::weak_integer, DType::i64, {DType::i64, LabelValue{label}}, true);
  stack_.back().has_label = true;
}

void TypedBuilder::push_scalar(const std::string& name) {
  push(Kind::weak_float, DType::f32, {DType::f32, ScalarValue{name}}, true);
  stack_.back().may_be_whole = true;
}

void TypedBuilder::push_poison() { push(Kind::poison, DType::f32, {DType::f32, Constant{0.0}}, false); }

std::size_t TypedBuilder::end_of(std::size_t value) const {
  return value + 1 < stack_.size() ? stack_[value + 1].begin : expr_.steps.size();
}

void TypedBuilder::merge(std::size_t values, Value result) {
  result.begin = stack_[stack_.size() - values].begin;
  stack_.resize(stack_.size() - values);
  stack_.push_back(result);
}

bool TypedBuilder::any_poison(std::size_t values) {
  const bool poison = std::any_of(stack_.end() - static_cast<std::ptrdiff_t>(values), stack_.end(),
                                  [](const Value& value) { return value.kind == Kind::poison; });
  if (poison) merge(values, {Kind::poison, DType::f32, 0, false});
  return poison;
}

void TypedBuilder::retag_constant(Constant& constant, DType dtype, Span where) {
  const auto* integer = std::get_if<std::int64_t>(&constant.value);
  if (is_float(dtype)) {
    if (integer != nullptr) constant.value = static_cast<double>(*integer);
    return;
  }
  const bool fits =
      integer != nullptr && (dtype != DType::i32 || (*integer >= std::numeric_limits<std::int32_t>::min() &&
                                                     *integer <= std::numeric_limits<std::int32_t>::max()));
  if (fits) return;
  if (integer != nullptr) {
    errors_.push_back({fmt::format("the number {} is no {}, which the other side is", *integer, name_of(dtype)),
                       {where},
                       "cast the other side first: i64(...)"});
  } else {
    const double value = std::get<double>(constant.value);
    const bool whole = value == std::floor(value);
    errors_.push_back({fmt::format("the number {}{} is written as a fraction, but meets {}", value, whole ? ".0" : "",
                                   name_of(dtype)),
                       {where},
                       whole ? "write it without point and exponent, or cast the other side: f32(...)"
                             : cast_first("a bare number takes the type of what it meets")});
  }
  constant.value = std::int64_t{0};
}

/// Gives the open steps of a weak value the type `dtype`.
void TypedBuilder::retag(std::size_t value, DType dtype, Span where) {
  Value& it = stack_[value];
  const DType type = compute_type(dtype);
  const bool float_to_integer = it.kind == Kind::weak_float && !it.may_be_whole && !is_float(type);
  for (std::size_t i = it.begin; i < end_of(value); ++i) {
    if (!weak_[i]) continue;
    weak_[i] = false;
    ScalarStep& step = expr_.steps[i];
    step.type = type;
    if (auto* constant = std::get_if<Constant>(&step.op)) retag_constant(*constant, type, where);
    if (const auto* scalar = std::get_if<ScalarValue>(&step.op); scalar != nullptr && !is_float(type)) {
      DType& known = integer_scalars_.insert({scalar->name, type}).first->second;
      if (type == DType::i32) known = type;
    }
  }
  const bool said = !errors_.empty() && errors_.back().marks == std::vector<Span>{where};
  if (float_to_integer && !said) {
    errors_.push_back({fmt::format("a fraction meets {}, which holds whole numbers", name_of(dtype)),
                       {where},
                       cast_first("a bare number takes the type of what it meets")});
  }
  it = {Kind::strong, dtype, it.begin, false};
}

/// Appends a conversion to a strong value; the values above it move up by one step.
void TypedBuilder::convert(std::size_t value, DType dtype) {
  Value& it = stack_[value];
  const DType type = compute_type(dtype);
  const std::size_t end = end_of(value);
  if (expr_.steps[end - 1].type != type) {
    expr_.steps.insert(expr_.steps.begin() + static_cast<std::ptrdiff_t>(end), ScalarStep{type, Convert{}});
    weak_.insert(weak_.begin() + static_cast<std::ptrdiff_t>(end), false);
    for (std::size_t above = value + 1; above < stack_.size(); ++above) ++stack_[above].begin;
  }
  it.is_rounded = it.is_rounded && it.dtype == dtype;
  it.dtype = dtype;
}

/// Makes a value of any kind strong with type `dtype`.
void TypedBuilder::make(std::size_t value, DType dtype, Span where) {
  if (stack_[value].kind == Kind::strong) {
    convert(value, dtype);
  } else {
    retag(value, dtype, where);
  }
}

void TypedBuilder::settle(Span where) {
  const Value value = top();
  if (value.kind == Kind::weak_float) retag(stack_.size() - 1, DType::f32, where);
  if (value.kind == Kind::weak_integer) retag(stack_.size() - 1, value.has_label ? DType::i64 : DType::f32, where);
}

/// Brings two values to one type. Two weak ones stay weak (false); `arithmetic` counts bool as 0/1.
bool TypedBuilder::unify(std::size_t a, std::size_t b, bool arithmetic, Span where) {
  const bool a_strong = stack_[a].kind == Kind::strong;
  const bool b_strong = stack_[b].kind == Kind::strong;
  if (!a_strong && !b_strong) return false;
  DType dtype = DType::f32;
  if (a_strong && b_strong) {
    dtype = promote(stack_[a].dtype, stack_[b].dtype);
    if (arithmetic && dtype == DType::boolean) dtype = DType::i64;
  } else {
    const Value& strong = a_strong ? stack_[a] : stack_[b];
    const Value& weak = a_strong ? stack_[b] : stack_[a];
    dtype = strong.dtype;
    // A bool has no numbers of its own: the number, label or scalar that meets it keeps its own type.
    if (dtype == DType::boolean) dtype = weak.kind == Kind::weak_float ? DType::f32 : DType::i64;
  }
  make(a, dtype, where);
  make(b, dtype, where);
  return true;
}

void TypedBuilder::unary(UnaryFunction function, Span where) {
  if (any_poison(1)) return;
  const std::size_t value = stack_.size() - 1;
  if (stack_[value].kind == Kind::strong) {
    const DType dtype = stack_[value].dtype;
    if (!is_float(dtype))
      convert(value, !keeps_integers(function) ? DType::f64 : dtype == DType::boolean ? DType::i64 : dtype);
    emit({expr_.steps.back().type, ApplyUnary{function}}, false);
    stack_[value].is_rounded = false;
    return;
  }
  if (function == UnaryFunction::negate && stack_[value].begin + 1 == expr_.steps.size()) {
    // -2147483648 is an i32 although 2147483648 is none: the sign belongs to the number.
    if (auto* constant = std::get_if<Constant>(&expr_.steps.back().op)) {
      std::visit([](auto& number) { number = -number; }, constant->value);
      return;
    }
  }
  if (!keeps_integers(function) && stack_[value].kind == Kind::weak_integer) {
    for (std::size_t i = stack_[value].begin; i < expr_.steps.size(); ++i) {
      if (auto* constant = std::get_if<Constant>(&expr_.steps[i].op); constant != nullptr && weak_[i]) {
        retag_constant(*constant, DType::f32, where);
      }
    }
    stack_[value].kind = Kind::weak_float;
  }
  if (!keeps_integers(function)) stack_[value].may_be_whole = false;
  emit({DType::f32, ApplyUnary{function}}, true);
}

/// A negative whole exponent makes a fraction: of bare numbers that is what it means, of integers an error (false).
bool TypedBuilder::check_exponent(std::size_t base, std::size_t exponent, Span where) {
  Value& value = stack_[exponent];
  auto* constant = std::get_if<Constant>(&expr_.steps.back().op);
  const auto* integer = constant == nullptr ? nullptr : std::get_if<std::int64_t>(&constant->value);
  if (value.kind != Kind::weak_integer || integer == nullptr || *integer >= 0) return true;
  const bool of_integers = stack_[base].kind == Kind::strong ? !is_float(stack_[base].dtype) : stack_[base].has_label;
  if (of_integers) {
    errors_.push_back({"a negative power of integers", {where}, cast_first("the result is a fraction")});
    merge(2, {Kind::poison, DType::f32, 0, false});
    return false;
  }
  retag_constant(*constant, DType::f32, where);
  value.kind = Kind::weak_float;
  return true;
}

void TypedBuilder::binary(BinaryFunction function, Span where) {
  if (any_poison(2)) return;
  const std::size_t a = stack_.size() - 2;
  const std::size_t b = stack_.size() - 1;
  if (function == BinaryFunction::power && !check_exponent(a, b, where)) return;
  const bool extremum = function == BinaryFunction::maximum || function == BinaryFunction::minimum;
  const bool integers = stack_[a].kind == Kind::weak_integer && stack_[b].kind == Kind::weak_integer;
  const bool label = stack_[a].has_label || stack_[b].has_label;
  bool strong = unify(a, b, !is_comparison(function) && !extremum, where);
  if (!strong && is_comparison(function)) {  // two weak values: compare exactly
    retag(a, integers ? DType::i64 : DType::f64, where);
    retag(b, integers ? DType::i64 : DType::f64, where);
    strong = true;
  }
  const bool divides_integers =
      function == BinaryFunction::divide && (strong ? !is_float(stack_[a].dtype) : integers && label);
  if (divides_integers) {
    errors_.push_back({"division of integers", {where}, cast_first("floor(f64(a) / f64(b)) divides and rounds down")});
    merge(2, {Kind::poison, DType::f32, 0, false});
    return;
  }
  if (strong) {
    const DType dtype = is_comparison(function) ? DType::boolean : stack_[a].dtype;
    emit({compute_type(dtype), ApplyBinary{function}}, false);
    merge(2, {Kind::strong, dtype, 0, false});
    return;
  }
  const bool stays_integer = integers && function != BinaryFunction::divide;
  emit({DType::f32, ApplyBinary{function}}, true);
  const bool may_be_whole = function != BinaryFunction::divide && is_whole(stack_[a]) && is_whole(stack_[b]);
  merge(2,
        {stays_integer ? Kind::weak_integer : Kind::weak_float, DType::f32, 0, stays_integer && label, may_be_whole});
}

void TypedBuilder::where(Span where) {
  if (any_poison(3)) return;
  const std::size_t c = stack_.size() - 3;
  if (stack_[c].kind == Kind::strong) {
    convert(c, DType::boolean);
  } else {
    retag(c, stack_[c].kind == Kind::weak_integer ? DType::i64 : DType::f64, where);
    convert(c, DType::boolean);
  }
  const Value x = stack_[c + 1];
  const Value y = stack_[c + 2];
  if (unify(c + 1, c + 2, false, where)) {
    const DType dtype = stack_[c + 1].dtype;
    emit({compute_type(dtype), ApplyWhere{}}, false);
    merge(3, {Kind::strong, dtype, 0, false});
    return;
  }
  const bool integers = x.kind == Kind::weak_integer && y.kind == Kind::weak_integer;
  emit({DType::f32, ApplyWhere{}}, true);
  merge(3, {integers ? Kind::weak_integer : Kind::weak_float, DType::f32, 0, integers && (x.has_label || y.has_label),
            is_whole(x) && is_whole(y)});
}

void TypedBuilder::cast(DType dtype, Span where) {
  if (any_poison(1)) return;
  const std::size_t value = stack_.size() - 1;
  const bool is_narrow = compute_type(dtype) != dtype;
  // Exactly, so that it is rounded once: a whole number as one, what is computed of some in f64.
  const bool is_one = expr_.steps.size() - stack_[value].begin == 1;
  const DType as_float = is_narrow ? DType::f64 : dtype;
  if (stack_[value].kind == Kind::weak_integer) {
    retag(value, is_float(dtype) && !(is_narrow && is_one) ? as_float : DType::i64, where);
  } else if (stack_[value].kind == Kind::weak_float) {
    retag(value, is_float(dtype) ? as_float : DType::f64, where);
  }
  is_narrow ? round(dtype) : convert(value, dtype);
}

/// The values on top as i64; if one is no whole number, an error and one poison in their place.
bool TypedBuilder::make_whole(std::size_t values, const std::string& message, const std::string& help, Span where) {
  for (std::size_t value = stack_.size() - values; value < stack_.size(); ++value) {
    const bool is_integer =
        stack_[value].kind == Kind::strong ? !is_float(stack_[value].dtype) : is_whole(stack_[value]);
    if (!is_integer) {
      errors_.push_back({message, {where}, help});
      merge(values, {Kind::poison, DType::f32, 0, false});
      return false;
    }
    make(value, DType::i64, where);
  }
  return true;
}

void TypedBuilder::random(ApplyRandom function, Span where) {
  if (any_poison(3)) return;
  if (!make_whole(3, "a random number is found by whole numbers: its seed, say",
                  "give a whole number, a scalar whose value is one, or an element of an integer tensor", where))
    return;
  emit({DType::f32, function}, true);
  merge(3, {Kind::weak_float, DType::f32, 0, false});
}

void TypedBuilder::in_range(CheckRange check, Span where) {
  if (any_poison(2)) return;
  if (!make_whole(2, "only whole numbers index a tensor", "convert: i64(...)", where)) return;
  emit({DType::i64, std::move(check)}, false);
  merge(2, {Kind::strong, DType::i64, 0, false});
}

/// Rounds the strong top value to bf16 or f16, unless it is such a number as it stands.
void TypedBuilder::round(DType dtype) {
  Value& it = stack_.back();
  if (!it.is_rounded || it.dtype != dtype) emit({compute_type(dtype), Round{dtype}}, false);
  it.dtype = dtype;
  it.is_rounded = true;
}

void TypedBuilder::prepare_reduction(Reducer reducer) {
  const std::size_t value = stack_.size() - 1;
  const DType dtype = stack_[value].dtype;
  if (stack_[value].kind == Kind::poison) return;
  const ReducedAs result = result_of(reducer);
  if (result == ReducedAs::counted && dtype == DType::boolean) convert(value, DType::i64);
  if (result == ReducedAs::floating && !is_float(dtype)) convert(value, DType::f64);
}

ScalarExpr TypedBuilder::pop() {
  const auto begin = expr_.steps.begin() + static_cast<std::ptrdiff_t>(stack_.back().begin);
  ScalarExpr result{{begin, expr_.steps.end()}};
  expr_.steps.erase(begin, expr_.steps.end());
  weak_.resize(expr_.steps.size());
  stack_.pop_back();
  return result;
}

}  // namespace einrel
