#include "compute.h"

#include <einrel/error.h>

#include <algorithm>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <utility>

#include "gradient_graph.h"
#include "held.h"
#include "history.h"
#include "made_input.h"

namespace einrel::python {
namespace {

/// The statements of a walk, named: x1, x2, ... are leaves, t1, t2, ... what is computed, where nobody has given a
/// name.
class Names {
 public:
  explicit Names(const Walk& walk, std::map<const Node*, std::string> given = {},
                 std::function<api::Variable(const std::string& name, const Node& leaf)> leaf = {})
      : given_(std::move(given)), leaf_(std::move(leaf)) {
    for (const auto& [node, name] : given_) taken_.insert(name);
    for (const Walk::Place& place : walk.places()) name_gradient(place);
    for (const Walk::Place& place : walk.places()) variables_.push_back(variable_of(place));
  }
  const api::Variable& operator[](std::size_t place) const { return variables_[place]; }

 private:
  std::string fresh(const char* letter, std::size_t& count) const {
    std::string name;
    do name = letter + std::to_string(++count);
    while (taken_.count(name) != 0);
    return name;
  }
  void name_gradient(const Walk::Place& place) {
    const auto given = given_.find(place.node);
    if (place.is_leaf || given == given_.end()) return;
    if (const auto* const gradient = std::get_if<Gradient>(&place.node->definition()->meaning()))
      gradient_names_[place.operands].emplace(gradient->which, given->second);
  }
  api::Variable variable_of(const Walk::Place& place) {
    const std::shared_ptr<const Definition>& definition = place.node->definition();
    const auto given = given_.find(place.node);
    if (place.is_leaf) {
      const std::string name = given == given_.end() ? fresh("x", leaves_) : given->second;
      return leaf_ ? leaf_(name, *place.node) : input_of(name, *place.node->type());
    }
    std::vector<api::Variable> operands;
    for (const std::size_t operand : place.operands) operands.push_back(variables_[operand]);
    if (const auto* const gradient = std::get_if<Gradient>(&definition->meaning()))
      return gradients(place.operands, operands).at(gradient->which);
    return definition->variable(given == given_.end() ? fresh("t", computed_) : given->second, operands);
  }
  /// Of the first operand by all others, at once.
  const std::vector<api::Variable>& gradients(const std::vector<std::size_t>& places,
                                              const std::vector<api::Variable>& operands) {
    const auto [known, is_new] = gradients_.try_emplace(places);
    if (is_new) {
      std::map<std::size_t, std::string>& given = gradient_names_[places];
      std::vector<std::string> names;
      for (std::size_t which = 0; which + 1 < operands.size(); ++which)
        names.push_back(given.count(which) == 0 ? fresh("t", computed_) : given.at(which));
      known->second = api::gradient(names, operands.front(), {operands.begin() + 1, operands.end()});
    }
    return known->second;
  }

  std::map<const Node*, std::string> given_;
  std::set<std::string> taken_;
  std::function<api::Variable(const std::string& name, const Node& leaf)> leaf_;  // else an input
  std::size_t leaves_ = 0;
  std::size_t computed_ = 0;
  std::vector<api::Variable> variables_;  // by place
  std::map<std::vector<std::size_t>, std::vector<api::Variable>> gradients_;
  std::map<std::vector<std::size_t>, std::map<std::size_t, std::string>> gradient_names_;  // those that are given
};

bool overlaps(const api::Tensor& a, const api::Tensor& b) {
  const std::span<const std::byte> left = a.bytes();
  const std::span<const std::byte> right = b.bytes();
  const std::less<> before;
  return before(left.data(), right.data() + right.size()) && before(right.data(), left.data() + left.size());
}

/// Whether two are over the same elements.
bool share_elements(const std::vector<NodePtr>& leaves) {
  std::set<const std::byte*> known;
  return std::any_of(leaves.begin(), leaves.end(), [&](const NodePtr& leaf) {
    return leaf->value() && !known.insert(leaf->value()->tensor.bytes().data()).second;
  });
}

/// What computed graphs before, the one that was used last first.
struct Kept {
  std::list<std::pair<std::vector<std::int64_t>, std::shared_ptr<Compiled>>> graphs;
  std::map<std::vector<std::int64_t>, decltype(graphs)::iterator> by_key;
};

/// Those that a program is to compute; of what is made by itself all is made.
std::vector<NodePtr> without_values(const std::vector<NodePtr>& nodes) {
  std::vector<NodePtr> open;
  for (const NodePtr& node : nodes) {
    if (node->source()) {
      const api::Input source = *node->source();  // its own: meanwhile another thread may make it, too
      node->become({elements_of(source), true});
    } else if (!node->value()) {
      open.push_back(node);
    }
  }
  return open;
}

template <class Number>
api::Expression complex_of(const std::complex<Number>& value) {
  return complex(api::Expression(static_cast<double>(value.real())), static_cast<double>(value.imag()));
}

/// The only element, as a formula of its type.
api::Expression number_in(const api::Tensor& tensor) {
  const auto element = [&]() -> api::Expression {
    switch (tensor.dtype()) {
      case api::DType::f64: return tensor.values<double>()[0];
      case api::DType::f32: return static_cast<double>(tensor.values<float>()[0]);
      case api::DType::f16: return static_cast<double>(to_float(tensor.values<api::Float16>()[0]));
      case api::DType::bf16: return static_cast<double>(to_float(tensor.values<api::BFloat16>()[0]));
      case api::DType::i32: return tensor.values<std::int32_t>()[0];
      case api::DType::i64: return tensor.values<std::int64_t>()[0];
      case api::DType::boolean: return tensor.values<bool>()[0] ? 1 : 0;
      case api::DType::c64: return complex_of(tensor.values<std::complex<float>>()[0]);
      case api::DType::c128: return complex_of(tensor.values<std::complex<double>>()[0]);
    }
    throw api::Bug("an element type outside its enumeration");
  };
  return cast(tensor.dtype(), element());
}

/// Names of a program's arrays. `computed` are the outputs, in order. Throws UserError, where they are no outputs or
/// inputs.
std::map<const Node*, std::string> names_of(const GivenNames& outputs, const std::vector<NodePtr>& computed,
                                            const GivenNames& inputs) {
  std::map<const Node*, std::string> names;
  const auto add = [&](const std::string& name, const NodePtr& node) {
    const auto [other, is_new] = names.emplace(node.get(), name);
    if (!is_new) throw api::UserError(name + " and " + other->second + " are the same array; a program has one name");
  };
  std::size_t output = 0;
  for (const auto& [name, node] : outputs) {
    add(name, computed[output]);
    if (computed[output++]->is_leaf())
      throw api::UserError(name +
                           " is an input, or has been computed and forgot how it was made: take its program "
                           "before");
  }
  for (const auto& [name, node] : inputs) {
    add(name, node);
    if (!node->is_leaf())
      throw api::UserError(name + " is made of other arrays; an input is one that has its elements");
  }
  return names;
}

/// Those that the language has names for, each once.
std::map<const Node*, std::string> sayable(const GivenNames& given) {
  std::map<const Node*, std::string> names;
  std::set<std::string> taken;
  for (const auto& [name, node] : given) {
    try {
      static_cast<void>(api::Label(name));
      if (names.count(node.get()) == 0 && taken.insert(name).second) names.emplace(node.get(), name);
    } catch (const api::UserError&) {
      continue;  // a word of the language, say
    }
  }
  return names;
}

/// Names of what lies in a walk as copies of these.
void add_alike(std::map<const Node*, std::string>& names, const Walk& walk, const GivenNames& given) {
  std::map<std::int64_t, const std::string*> by_identity;
  for (const auto& [name, node] : given) by_identity.emplace(node->identity(), &name);
  for (const Walk::Place& place : walk.places()) {
    const auto found = by_identity.find(place.node->identity());
    if (found != by_identity.end()) names.emplace(place.node, *found->second);
  }
}

GivenNames names_in(const Walk& walk, const Names& names) {
  GivenNames all;
  for (std::size_t place = 0; place < walk.places().size(); ++place)
    all.emplace_back(names[place].name(), walk.places()[place].node->shared_from_this());
  return all;
}

}  // namespace

TextOfNodes program_text(const GivenNames& outputs, const GivenNames& inputs, const GivenNames& names) {
  std::vector<NodePtr> wanted;
  std::vector<NodePtr> given;
  for (const auto& [name, node] : outputs) wanted.push_back(node);
  for (const auto& [name, node] : inputs) given.push_back(node);
  const GradientGraph graph = gradient_graph(wanted, given);
  if (!graph.left.empty())
    throw api::UserError("the results are made of the inputs by what is no part of a program: " +
                         graph.left.front().second);
  std::map<const Node*, std::string> given_names = names_of(outputs, graph.of, inputs);
  std::size_t reached = 0;
  for (const auto& [name, node] : inputs) {
    if (!graph.are_reached[reached++]) throw api::UserError("nothing is made of the input " + name);
  }
  std::vector<NodePtr> all = given;  // first, so that leaves over the same elements go by the name of one of these
  all.insert(all.end(), graph.of.begin(), graph.of.end());
  const Walk walk(all, share_elements(given));
  add_alike(given_names, walk, names);
  std::set<const Node*> are_inputs;
  for (const NodePtr& node : given) are_inputs.insert(node.get());
  const Names variables(walk, std::move(given_names), [&](const std::string& name, const Node& leaf) {
    if (are_inputs.count(&leaf) != 0) return input_of(name, *leaf.type());
    std::string extents;
    for (const std::int64_t extent : leaf.type()->shape) extents += std::to_string(extent) + ",";
    if (!leaf.type()->shape.empty() || !leaf.value())
      throw api::UserError("the results are made of an array of the shape (" + extents +
                           ") that is none of the inputs: give it a name among them");
    return api::define(name, {}, number_in(leaf.value()->tensor));
  });
  std::vector<api::Variable> results;
  for (const auto& [name, node] : outputs) {
    const api::Variable& result = variables[walk.wanted()[given.size() + results.size()]];
    results.push_back(result.name() == name ? result : renamed(name, result, node->type()->shape));  // a gradient, say
  }
  return {api::Program::build(results).text(), names_in(walk, variables)};
}

Value output_value(const api::Tensor& tensor, const std::vector<NodePtr>& leaves) {
  const bool is_writable = std::none_of(leaves.begin(), leaves.end(), [&](const NodePtr& leaf) {
    const std::optional<Value>& value = leaf->value();
    return value && !value->is_writable && overlaps(tensor, value->tensor);
  });
  return {tensor, is_writable};
}

Compiled::Compiled(const Walk& walk, const GivenNames& given) {
  const Names names(walk, sayable(given));
  std::vector<api::Variable> outputs;
  for (const std::size_t place : walk.wanted()) {
    outputs_.push_back(names[place].name());
    if (std::count(outputs_.begin(), outputs_.end(), outputs_.back()) == 1) outputs.push_back(names[place]);
  }
  for (std::size_t place = 0; place < walk.places().size(); ++place) {
    if (walk.places()[place].is_leaf) inputs_.push_back(names[place].name());
  }
  program_.emplace([outputs] { return api::Program::build(outputs, {}, {}, api::LabelNames::common); });
}

std::vector<Value> Compiled::run(const std::vector<NodePtr>& leaves, const api::RunOptions& options) {
  api::Inputs inputs;
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs.emplace(inputs_[i], leaves[i]->input());
  const api::RunResult result = program_->run(inputs, options);
  std::vector<Value> values;
  for (const std::string& output : outputs_) values.push_back(output_value(result.outputs.at(output), leaves));
  return values;
}

GivenNames names_in_program(const std::vector<NodePtr>& nodes) {
  const Walk walk(nodes);
  return names_in(walk, Names(walk));
}

std::vector<NodePtr> leaves_of(const std::vector<NodePtr>& nodes) {
  const Walk walk(nodes);
  std::vector<NodePtr> leaves;
  for (Node* const leaf : walk.leaves()) leaves.push_back(leaf->shared_from_this());
  return leaves;
}

std::shared_ptr<Compiled> compiled(const Walk& walk) {
  constexpr std::size_t most_kept = 128;
  static Kept& kept = *new Kept;  // under Python's lock; owned by nobody: threads of programs may be gone at the end
  const auto found = kept.by_key.find(walk.key());
  if (found != kept.by_key.end()) {
    kept.graphs.splice(kept.graphs.begin(), kept.graphs, found->second);
    return found->second->second;
  }
  auto made = std::make_shared<Compiled>(walk);
  if (kept.by_key.count(walk.key()) != 0) return made;  // another thread was faster
  if (kept.graphs.size() == most_kept) {
    kept.by_key.erase(kept.graphs.back().first);
    kept.graphs.pop_back();
  }
  kept.graphs.emplace_front(walk.key(), made);
  kept.by_key.emplace(walk.key(), kept.graphs.begin());
  return made;
}

void compute(const std::vector<NodePtr>& nodes, const api::RunOptions& options) {
  std::vector<NodePtr> open = without_values(nodes);
  if (open.empty()) return;
  std::optional<Walk> walk(open);
  std::vector<NodePtr> keeping = open;
  for (const HeldNode& held : held_on_the_way(*walk, options)) {
    open.push_back(held.computed);
    keeping.push_back(held.array);
  }
  if (open.size() > walk->wanted().size()) walk.emplace(open);
  std::vector<NodePtr> leaves;
  for (Node* const leaf : walk->leaves()) leaves.push_back(leaf->shared_from_this());
  const std::vector<Value> values = compiled(*walk)->run(leaves, options);
  for (std::size_t i = 0; i < keeping.size(); ++i) keeping[i]->become(values[i]);
  remember(keeping);
}

}  // namespace einrel::python
