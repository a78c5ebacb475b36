#include "einsum/front/build/formula_type.h"

#include <vector>

#include "base/error.h"
#include "einsum/front/build/visit.h"

namespace einrel::build {

/// What arithmetic makes of two types.
FormulaTypes::Type FormulaTypes::together(const Type& a, const Type& b, bool counts) {
  if (!a.type && !b.type) return {std::nullopt, a.is_whole && b.is_whole};
  DType type = a.type && b.type ? promote(*a.type, *b.type) : a.type.value_or(b.type.value_or(DType::f32));
  if (type != DType::boolean || !counts) return {type};
  const Type& other = a.type ? b : a;
  return {a.type && b.type ? DType::i64 : other.is_whole ? DType::i64 : DType::f32};
}

struct FormulaTypes::OfPart {
  const std::vector<Type>& arguments;
  const std::function<DType(const std::string&)>& tensor;

  Type operator()(const Number& number) const { return {std::nullopt, number.integer.has_value()}; }
  Type operator()(const NameUse&) const { return {std::nullopt, true}; }
  Type operator()(const Access& access) const { return {tensor(access.tensor.text)}; }
  Type operator()(const Unary& unary) const {
    Type type = arguments[0];
    if (!type.type) return {std::nullopt, type.is_whole && keeps_integers(unary.function)};
    if (is_float(*type.type)) return type;
    if (!keeps_integers(unary.function)) return {DType::f64};
    return {*type.type == DType::boolean ? DType::i64 : *type.type};
  }
  Type operator()(const Binary& binary) const {
    return is_comparison(binary.function) ? Type{DType::boolean} : together(arguments[0], arguments[1], true);
  }
  Type operator()(const Where&) const { return together(arguments[1], arguments[2], false); }
  Type operator()(const Cast& cast) const { return {cast.type}; }
  Type operator()(const Reduce& reduce) const {
    const DType type = arguments[0].type.value_or(arguments[0].is_whole ? DType::i64 : DType::f32);
    return {reduced_type(reduce.reducer, type)};
  }
  Type operator()(const Random&) const { return {std::nullopt, false}; }
  Type operator()(const InRange&) const { return {DType::i64}; }
  Type operator()(const OpaqueCall&) const { return arguments[0]; }
  Type operator()(const ComplexCall&) const { throw Bug("complex numbers have left the program"); }
  Type operator()(const MacroCall&) const { throw Bug("macros have been expanded"); }
};

std::optional<DType> FormulaTypes::operator()(const Formula& formula) {
  const auto known = [&](const Formula& part) { return types_.count(part) != 0; };
  visit_after_arguments(formula, known, [&](const Formula& part) {
    std::vector<Type> arguments;
    for (const Formula& argument : part.arguments()) arguments.push_back(types_.at(argument));
    types_.insert({part, std::visit(OfPart{arguments, tensor_}, part.op())});
  });
  return types_.at(formula).type;
}

}  // namespace einrel::build
