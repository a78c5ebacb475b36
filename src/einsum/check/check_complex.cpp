#include "einsum/check/check_complex.h"

#include <algorithm>
#include <map>
#include <utility>

#include "einsum/front/build/fresh_name.h"
#include "einsum/passes/complex.h"

namespace einrel::checking {
namespace {

/// The expressions that a statement has.
std::vector<const build::Expr*> expressions_of(const build::Statement& statement) {
  struct Expressions {
    std::vector<const build::Expr*> operator()(const build::Definition& definition) const {
      return {&definition.value};
    }
    std::vector<const build::Expr*> operator()(const build::MacroDef& macro) const { return {&macro.body}; }
    std::vector<const build::Expr*> operator()(const build::State& state) const { return {&state.initial.value}; }
    std::vector<const build::Expr*> operator()(const build::Next& next) const { return {&next.value.value}; }
    std::vector<const build::Expr*> operator()(const build::Until& until) const { return {&until.condition}; }
    std::vector<const build::Expr*> operator()(const build::Dims&) const { return {}; }
    std::vector<const build::Expr*> operator()(const build::Inputs&) const { return {}; }
    std::vector<const build::Expr*> operator()(const build::Scalars&) const { return {}; }
    std::vector<const build::Expr*> operator()(const build::ViewDefinition&) const { return {}; }
    std::vector<const build::Expr*> operator()(const build::Gradient&) const { return {}; }
    std::vector<const build::Expr*> operator()(const build::Minimize&) const { return {}; }
    std::vector<const build::Expr*> operator()(const build::Outputs&) const { return {}; }
  };
  return std::visit(Expressions{}, statement.what);
}

class ComplexDefinition {
 public:
  ComplexDefinition(CheckState& state, build::Definition definition, Span where)
      : state_(state), definition_(std::move(definition)), where_(where) {}

  TensorInfo run() {
    if (!state_.macros.expand(definition_.value, state_.errors)) return broken();
    if (!is_complex()) return checked_in_real_numbers(state_, definition_, where_);
    const ReadTensors read = [this](const std::string& name) { return read_tensor(name); };
    std::optional<RealDefinitions> made = without_complex(definition_, read, constants(), state_.errors);
    if (!made) return broken();
    for (std::size_t l = 0; l < made->labels; ++l) declare_parts(state_, l);
    if (made->labels > 1) define_constants();
    std::map<std::string, std::string> renamed;
    for (build::Definition& before : made->before) {
      rename_reads(before.value, renamed);
      before.name.text = renamed[before.name.text] = free_name(before.name.text);
      define(before);
    }
    rename_reads(made->definition.value, renamed);
    TensorInfo info = checked_in_real_numbers(state_, made->definition, where_);
    info.is_complex = made->is_complex;
    return info;
  }

 private:
  /// Readers stay silent about it.
  TensorInfo broken() const {
    TensorInfo info;
    info.where = definition_.name.span;
    info.broken = true;
    info.extents.resize(definition_.labels.size());
    return info;
  }

  std::optional<ReadTensor> read_tensor(const std::string& name) const {
    const auto found = state_.tensors.find(name);
    if (found == state_.tensors.end()) return std::nullopt;
    const TensorInfo& info = found->second;
    return ReadTensor{info.is_complex, info.extents.size() - (info.is_complex ? 1U : 0U), info.dtype};
  }

  bool is_complex() const {
    if (has_complex(definition_.value)) return true;
    return std::any_of(definition_.value.nodes.begin(), definition_.value.nodes.end(), [&](const build::Node& node) {
      const auto* const access = std::get_if<build::Access>(&node.op);
      const auto read = access == nullptr ? std::nullopt : read_tensor(access->tensor.text);
      return read && read->is_complex;
    });
  }

  std::string free_name(const std::string& wish) const {
    return build::fresh_name(wish, [&](const std::string& name) {
      return state_.tensor_names.count(name) == 0 && state_.tensors.count(name) == 0;
    });
  }
  const ComplexConstants& constants() {
    if (state_.constants.product.empty()) state_.constants = {free_name("complex_product"), free_name("complex_signs")};
    return state_.constants;
  }

  void define_constants() {
    if (state_.tensors.count(constants().product) != 0) return;
    for (std::size_t l = 0; l < 3; ++l) declare_parts(state_, l);
    for (const build::Definition& definition : definitions_of(constants())) define(definition);
  }

  /// A tensor that nobody named.
  void define(build::Definition definition) {
    for (build::Node& node : definition.value.nodes) node.span = where_;
    state_.unnamed.insert(definition.name.text);
    TensorInfo info = checked_in_real_numbers(state_, definition, where_);
    info.read = true;
    state_.tensors.insert({definition.name.text, std::move(info)});
    state_.tensor_names.insert(definition.name.text);
  }

  static void rename_reads(build::Expr& expr, const std::map<std::string, std::string>& renamed) {
    for (build::Node& node : expr.nodes) {
      auto* const access = std::get_if<build::Access>(&node.op);
      if (access == nullptr) continue;
      const auto other = renamed.find(access->tensor.text);
      if (other != renamed.end()) access->tensor.text = other->second;
    }
  }

  CheckState& state_;
  build::Definition definition_;
  Span where_;
};

}  // namespace

bool has_complex_numbers(const build::Program& program) {
  return std::any_of(program.statements.begin(), program.statements.end(), [](const build::Statement& statement) {
    if (const auto* const inputs = std::get_if<build::Inputs>(&statement.what)) {
      return std::any_of(inputs->inputs.begin(), inputs->inputs.end(),
                         [](const build::InputDecl& input) { return input.is_complex; });
    }
    const std::vector<const build::Expr*> expressions = expressions_of(statement);
    return std::any_of(expressions.begin(), expressions.end(),
                       [](const build::Expr* expr) { return has_complex(*expr); });
  });
}

void declare_parts(CheckState& state, std::size_t number) {
  state.labels.insert({parts_label(number), DeclaredLabel{2, "complex numbers", {}}});
}

TensorInfo checked_complex(CheckState& state, const build::Definition& definition, Span where) {
  return ComplexDefinition(state, definition, where).run();
}

}  // namespace einrel::checking
