#include "definition.h"

#include <einrel/error.h>

#include <map>
#include <stdexcept>
#include <utility>

namespace einrel::python {
namespace {

/// A name that is one label's in the whole program: it says the extent. The letters are none that subscripts end in.
api::Label label_of(std::size_t label, std::int64_t extent) {
  constexpr std::string_view letters = "ijklmnopqrstuvwxyzabcdfgh";
  std::string name(label / letters.size() + 1, letters[label % letters.size()]);
  return api::Label(name + "_" + std::to_string(extent), extent);
}

api::Labels labels_of(const std::vector<std::int64_t>& extents) {
  api::Labels labels;
  for (std::size_t label = 0; label < extents.size(); ++label) labels.push_back(label_of(label, extents[label]));
  return labels;
}

std::vector<api::LabelGroup> groups_of(const std::vector<std::vector<std::size_t>>& dimensions,
                                       const api::Labels& labels) {
  std::vector<api::LabelGroup> groups;
  for (const std::vector<std::size_t>& dimension : dimensions) {
    api::Labels group;
    for (const std::size_t label : dimension) group.push_back(labels.at(label));
    groups.emplace_back(std::move(group));
  }
  return groups;
}

/// A statement for each kind of meaning.
struct Naming {
  const std::string& name;
  const std::vector<api::Variable>& operands;
  const std::vector<TypePtr>& types;

  api::Variable operator()(const Statement& statement) const {
    api::Labels labels = labels_of(statement.extents);
    const api::Expression value = statement.value.of(operands, labels);
    labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(statement.rank), labels.end());
    return api::define(name, labels, value);
  }
  api::Variable operator()(const View& view) const {
    const api::Labels labels = labels_of(view.extents);
    return api::view(name, groups_of(view.to, labels), operands.front(), groups_of(view.from, labels));
  }
  api::Variable operator()(const Einsum& einsum) const {
    std::vector<api::EinsumOperand> given;
    for (std::size_t i = 0; i < operands.size(); ++i) given.push_back({operands[i], types[i]->dtype, types[i]->shape});
    return api::einsum(name, einsum.subscripts, given, einsum.join, einsum.reduce);
  }
  api::Variable operator()(const Gradient&) const { throw api::Bug("a gradient is no statement by itself"); }
  api::Variable operator()(const Call&) const { throw api::Bug("a call of a traced function is many statements"); }
};

TypePtr type_of(const api::TensorInfo& info) {
  api::Shape shape;
  for (const std::optional<std::int64_t>& extent : info.extents) shape.push_back(extent.value());
  return python::type_of(info.dtype, shape);
}

}  // namespace

TypePtr type_of(api::DType dtype, const api::Shape& shape) {
  static auto& known = *new std::map<Type, std::weak_ptr<const Type>>;  // owned by nobody: types may outlive all else
  const auto at = known.try_emplace(Type{dtype, shape}).first;
  if (TypePtr type = at->second.lock()) return type;
  const auto forget = [at](const Type*) { known.erase(at); };
  const TypePtr type(&at->first, forget);
  at->second = type;
  return type;
}

api::Variable input_of(const std::string& name, const Type& type) {
  return api::input(name, labels_of(type.shape), type.dtype);
}

api::Variable renamed(const std::string& name, const api::Variable& variable, const api::Shape& shape) {
  const api::Labels labels = labels_of(shape);
  return api::define(name, labels, variable.element({labels.begin(), labels.end()}));
}

Definition::Definition(std::vector<TypePtr> operands, Meaning meaning)
    : operands_(std::move(operands)), meaning_(std::move(meaning)) {
  static std::int64_t made = 0;  // under Python's lock
  id_ = made++;
  if (const auto* const gradient = std::get_if<Gradient>(&meaning_)) {
    if (operands_.empty() || gradient->which >= operands_.size() - 1)
      throw std::out_of_range("a gradient by an operand that there is not");
    type_ = operands_[1 + gradient->which];
    return;
  }
  if (const auto* const call = std::get_if<Call>(&meaning_)) {
    type_ = call->type;
    return;
  }
  std::vector<api::Variable> inputs;
  for (const TypePtr& type : operands_) inputs.push_back(input_of("x" + std::to_string(inputs.size() + 1), *type));
  type_ = type_of(api::Program::build({variable("result", inputs)}).outputs().front());
}

api::Variable Definition::variable(const std::string& name, const std::vector<api::Variable>& operands) const {
  return std::visit(Naming{name, operands, operands_}, meaning_);
}

}  // namespace einrel::python
