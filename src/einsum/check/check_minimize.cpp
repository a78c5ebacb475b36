#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "einsum/check/check_state.h"
#include "einsum/check/typing.h"
#include "einsum/front/build/fresh_name.h"
#include "einsum/passes/optimisers.h"

namespace einrel::checking {
namespace {

using build::Formula;

/// One minimize statement: becomes a gradient, states for moments, and next values.
class Minimizer {
 public:
  Minimizer(CheckState& state, const build::Minimize& minimize, Span where)
      : state_(state), minimize_(minimize), where_(where) {}

  void run() {
    optimiser_ = find_optimiser();
    bool is_good = optimiser_ != nullptr && check_arguments();
    for (const build::Name& weight : minimize_.over) is_good = check_weight(weight) && is_good;
    if (!is_good) return define_unknown();
    const std::vector<std::string> gradients = differentiate();
    add_numbers();
    for (std::size_t w = 0; w < minimize_.over.size(); ++w) update(minimize_.over[w], gradients[w]);
  }

 private:
  /// Next values that nobody is blamed for reading.
  void define_unknown() {
    for (const build::Name& weight : minimize_.over) {
      const auto known = state_.tensors.find(weight.text);
      if (known == state_.tensors.end()) continue;
      TensorInfo broken = known->second;
      broken.broken = true;
      state_.tensors.insert({next_name(weight.text), std::move(broken)});
    }
  }

  const Optimiser* find_optimiser() {
    std::vector<std::string> names;
    for (const Optimiser& optimiser : optimisers()) {
      if (optimiser.name == minimize_.optimiser.text) return &optimiser;
      names.push_back(optimiser.name);
    }
    const std::string near = did_you_mean(minimize_.optimiser.text, names);
    state_.error(fmt::format("unknown optimiser '{}'", minimize_.optimiser.text), {minimize_.optimiser.span},
                 !near.empty() ? near : fmt::format("the optimisers are {}", fmt::join(names, ", ")));
    return nullptr;
  }

  /// They are computed of numbers and scalars.
  bool check_arguments() {
    const std::vector<OptimiserParameter>& parameters = optimiser_->parameters;
    const auto least = std::count_if(parameters.begin(), parameters.end(),
                                     [](const OptimiserParameter& parameter) { return !parameter.value; });
    if (minimize_.arguments.size() < static_cast<std::size_t>(least) ||
        minimize_.arguments.size() > parameters.size()) {
      const std::string most = counted(parameters.size(), "number");
      const std::string wanted =
          static_cast<std::size_t>(least) == parameters.size() ? most : fmt::format("{} to {}", least, most);
      state_.error(fmt::format("'{}' takes {}, not {}", optimiser_->name, wanted, minimize_.arguments.size()),
                   {minimize_.optimiser.span}, fmt::format("as in {}", usage_of(*optimiser_)));
      return false;
    }
    bool is_good = true;
    for (const build::Expr& argument : minimize_.arguments) {
      for (const build::Node& node : argument.nodes) is_good = check_node(node) && is_good;
    }
    return is_good;
  }

  bool check_node(const build::Node& node) {
    if (const auto* const use = std::get_if<build::NameUse>(&node.op)) {
      if (state_.scalars.count(use->name) != 0) return true;
      report_unknown_name(state_, use->name, node.span, {});
      return false;
    }
    const bool is_arithmetic =
        std::holds_alternative<build::Number>(node.op) || std::holds_alternative<build::Unary>(node.op) ||
        std::holds_alternative<build::Binary>(node.op) || std::holds_alternative<build::Where>(node.op);
    if (is_arithmetic) return true;
    state_.error(fmt::format("'{}' takes numbers and scalars, and what is computed of them", optimiser_->name),
                 {node.span}, "a rate that changes from step to step can be computed of `iteration`");
    return false;
  }

  bool check_weight(const build::Name& weight) {
    const CheckedState* const declared = find_state(state_, weight.text);
    if (declared == nullptr) {
      if (state_.is_suspect(weight.text)) return false;
      state_.error(fmt::format("'{}' is no state, which `minimize` could change", weight.text), {weight.span},
                   fmt::format("say what it begins with: state {}[...] = ...", weight.text));
      return false;
    }
    const TensorInfo& info = state_.tensors.at(weight.text);
    if (!info.broken && !is_float(info.dtype)) {
      state_.error(fmt::format("'{}' is {}, but what `minimize` changes has to be of a float type", weight.text,
                               name_of(info.dtype)),
                   {weight.span, declared->where}, "nothing changes by small steps there");
      return false;
    }
    const auto known = state_.defined.find(next_name(weight.text));
    if (known == state_.defined.end()) {
      state_.defined.insert({next_name(weight.text), weight.span});
      return !info.broken;
    }
    state_.error(fmt::format("'{}' has two next values", weight.text), {weight.span, known->second},
                 "let it be changed in one place");
    return false;
  }

  void claim(const std::string& name) {
    state_.tensor_names.insert(name);
    state_.defined.insert({name, where_});
  }

  /// A tensor that the program does not have.
  std::string fresh(const std::string& wish) {
    std::string name = build::fresh_name(wish, [&](const std::string& free) { return is_free(free); });
    claim(name);
    return name;
  }
  /// The same, with its initial and its next value.
  std::string fresh_state(const std::string& wish) {
    std::string name = build::fresh_name(wish, [&](const std::string& free) {
      return is_free(free) && is_free(initial_name(free)) && is_free(next_name(free));
    });
    for (const std::string& each : {name, initial_name(name), next_name(name)}) claim(each);
    return name;
  }
  bool is_free(const std::string& name) const { return state_.tensor_names.count(name) == 0; }

  std::vector<std::string> differentiate() {
    std::vector<std::string> names;
    for (const build::Name& weight : minimize_.over) names.push_back(fresh(weight.text + "_gradient"));
    state_.unnamed.insert(names.begin(), names.end());
    build::Gradient gradient{build::names(names), minimize_.loss, minimize_.over, std::nullopt};
    for (build::Name& name : gradient.results) name.span = where_;
    check_gradient(state_, gradient, where_);
    for (const std::string& name : names) state_.tensors.at(name).read = true;
    return names;
  }

  build::Definition definition(const std::string& name, const std::vector<std::string>& labels, const Formula& value) {
    build::Definition made{{name, where_}, build::names(labels), build::expr_of(value)};
    for (build::Node& node : made.value.nodes) node.span = where_;
    for (build::Name& label : made.labels) label.span = where_;
    return made;
  }

  void add_numbers() {
    for (std::size_t p = 0; p < optimiser_->parameters.size(); ++p) {
      const auto& [name, value] = optimiser_->parameters[p];
      parameters_.emplace(
          name, p < minimize_.arguments.size() ? build::formula_of(minimize_.arguments[p]) : build::number(*value));
    }
    const Formula steps = build::apply(BinaryFunction::add, build::name(iteration_name), build::whole_number(1));
    for (const auto& [name, value] : optimiser_->numbers(parameters_, steps)) {
      const std::string tensor = fresh(fmt::format("{}_{}", optimiser_->name, name));
      check_definition(state_, definition(tensor, {}, build::cast(DType::f64, value)), where_);
      state_.tensors.at(tensor).read = true;
      numbers_[name] = tensor;
    }
  }

  /// A state of a weight's extents, whatever labels of the same names have elsewhere, of the type that it is computed
  /// in: means of gradients and of their squares take small steps.
  void begin_with_zero(const std::string& tensor, const TensorInfo& weight) {
    const DType dtype = compute_type(weight.dtype);
    const Formula zero = build::cast(dtype, build::whole_number(0));
    std::map<std::string, Extent> extents;
    for (std::size_t d = 0; d < weight.extents.size(); ++d) {
      if (!weight.extents[d])  // said by data that is still to come
        return check_state_statement(state_, {definition(tensor, weight.labels, zero)}, where_);
      extents.insert({weight.labels[d], Extent(*weight.extents[d])});
    }
    TensorInfo initial = weight;
    initial.dtype = dtype;
    initial.vertex = check_made(state_, definition(initial_name(tensor), weight.labels, zero), where_, {extents, true});
    declare_state(state_, {tensor, where_}, std::move(initial), where_);
  }

  void update(const build::Name& weight, const std::string& gradient) {
    const TensorInfo info = state_.tensors.at(weight.text);
    const DType computed = compute_type(info.dtype);
    const auto element = [&](const std::string& tensor) { return build::element(tensor, info.labels); };
    UpdateParts parts{element(weight.text), element(gradient), {}, parameters_, {}};
    for (const auto& [name, tensor] : numbers_)
      parts.numbers.emplace(name, build::cast(computed, build::element(tensor, std::vector<std::string>{})));
    std::map<std::string, std::string> moments;
    for (const std::string& moment : optimiser_->moments) {
      const std::string tensor = fresh_state(fmt::format("{}_{}", weight.text, moment));
      begin_with_zero(tensor, info);
      parts.moments.emplace(moment, element(tensor));
      moments[moment] = tensor;
    }
    for (const auto& [moment, value] : optimiser_->new_moments(parts)) {
      const std::string& tensor = moments.at(moment);
      check_next(state_, {definition(tensor, info.labels, value)}, where_);
      state_.tensors.at(next_name(tensor)).read = true;
      parts.moments.at(moment) = element(next_name(tensor));
    }
    Formula value = optimiser_->new_weight(parts);
    if (is_narrow(info.dtype)) value = build::cast(info.dtype, value);
    check_next(state_, {definition(weight.text, info.labels, value)}, where_);
  }

  CheckState& state_;
  const build::Minimize& minimize_;
  Span where_;
  const Optimiser* optimiser_ = nullptr;
  std::map<std::string, Formula> parameters_;
  std::map<std::string, std::string> numbers_;  // tensors, by what the optimiser calls them
};

}  // namespace

void check_minimize(CheckState& state, const build::Minimize& minimize, Span where) {
  std::vector<std::string> weights;
  for (const build::Name& weight : minimize.over) weights.push_back(weight.text);
  run_pass(state, "minimize",
           fmt::format("{} over {} by {}", minimize.loss.text, fmt::join(weights, ", "), minimize.optimiser.text),
           [&] { Minimizer(state, minimize, where).run(); });
}

}  // namespace einrel::checking
