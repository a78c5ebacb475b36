#include "gradient_graph.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <variant>

#include "history.h"

namespace einrel::python {
namespace {

/// A walk after operands, without recursion: `operands(node)` are what `enter(node)` needs to have been entered.
template <class Operands, class Known, class Enter>
void visit_after_operands(const NodePtr& wanted, const Operands& operands, const Known& is_known, const Enter& enter) {
  struct Step {
    NodePtr node;
    std::vector<NodePtr> operands;
    std::size_t next = 0;
  };
  std::vector<Step> path;
  if (!is_known(wanted)) path.push_back({wanted, operands(wanted)});
  while (!path.empty()) {
    Step& step = path.back();
    if (step.next < step.operands.size()) {
      const NodePtr operand = step.operands[step.next++];
      if (!is_known(operand)) path.push_back({operand, operands(operand)});
      continue;
    }
    enter(step.node);
    path.pop_back();
  }
}

/// The result of a traced function of these: its graph with them in place of its arguments.
NodePtr result_of(const Call& call, const std::vector<NodePtr>& arguments) {
  return substituted({call.graph->results[call.which]}, call.graph->arguments, arguments).front();
}

class Copies {
 public:
  explicit Copies(const std::vector<NodePtr>& by) {
    for (const NodePtr& node : by) {
      by_.emplace(node->identity(), node);
      oldest_ = std::min(oldest_, node->number());
    }
  }

  NodePtr of(const NodePtr& wanted) {
    const NodePtr node = same(wanted);
    visit_after_operands(
        node, [this](const NodePtr& one) { return operands_of(one); },
        [this](const NodePtr& one) { return images_.count(one.get()) != 0; },
        [this](const NodePtr& one) { images_.emplace(one.get(), image_of(one)); });
    return images_.at(node.get()).node;
  }
  const std::vector<std::pair<NodePtr, std::string>>& left() const { return left_; }

 private:
  struct Image {
    NodePtr node;
    bool depends = false;  ///< on one of `by`
  };

  /// In place of a copy that an earlier gradient took of one of `by`, that one.
  NodePtr same(const NodePtr& node) const {
    const auto found = by_.find(node->identity());
    return found == by_.end() ? node : found->second;
  }
  std::vector<NodePtr> operands_of(const NodePtr& node) {
    if (node->number() < oldest_) return {};  // it is made of none
    const Call* const call = node->definition() ? std::get_if<Call>(&node->definition()->meaning()) : nullptr;
    std::vector<NodePtr> operands = call == nullptr ? node->operands() : std::vector{expanded(node, *call)};
    for (NodePtr& operand : operands) operand = same(operand);
    return operands;
  }
  NodePtr expanded(const NodePtr& node, const Call& call) {
    NodePtr& result = expanded_[node.get()];
    if (!result) result = result_of(call, node->operands());
    return result;
  }
  Image image_of(const NodePtr& node) {
    const bool is_by = by_.count(node->identity()) != 0;
    std::vector<NodePtr> operands;
    bool depends = false;
    for (const NodePtr& operand : operands_of(node)) {
      const Image& image = images_.at(operand.get());
      operands.push_back(image.node);
      depends = depends || image.depends;
    }
    if (!node->definition()) {
      const bool is_left = depends || has_lost(*node);
      if (is_left) left_.emplace_back(node, place_of_making(*node));
      return {node, is_by || is_left};
    }
    if (!depends) return {node, is_by};
    const bool is_call = std::holds_alternative<Call>(node->definition()->meaning());
    return {is_call ? operands.front() : node->copy(std::move(operands)), true};
  }
  bool has_lost(const Node& node) const {
    const std::vector<NodePtr> lost = lost_sources(node);
    return std::any_of(lost.begin(), lost.end(),
                       [&](const NodePtr& source) { return by_.count(source->identity()) != 0; });
  }

  std::unordered_map<std::int64_t, NodePtr> by_;
  std::int64_t oldest_ = std::numeric_limits<std::int64_t>::max();
  std::unordered_map<const Node*, Image> images_;
  std::unordered_map<const Node*, NodePtr> expanded_;
  std::vector<std::pair<NodePtr, std::string>> left_;
};

}  // namespace

std::vector<NodePtr> substituted(const std::vector<NodePtr>& nodes, const std::vector<NodePtr>& arguments,
                                 const std::vector<NodePtr>& values) {
  std::unordered_map<const Node*, NodePtr> made;
  for (std::size_t i = 0; i < arguments.size(); ++i) made.emplace(arguments[i].get(), values.at(i));
  const auto operands = [](const NodePtr& node) {
    return node->definition() ? node->operands() : std::vector<NodePtr>();
  };
  const auto known = [&](const NodePtr& node) { return !node->is_traced() || made.count(node.get()) != 0; };
  const auto image = [&](const NodePtr& node) { return node->is_traced() ? made.at(node.get()) : node; };
  std::vector<NodePtr> images;
  for (const NodePtr& wanted : nodes) {
    visit_after_operands(wanted, operands, known, [&](const NodePtr& node) {
      std::vector<NodePtr> own;
      for (const NodePtr& operand : operands(node)) own.push_back(image(operand));
      made.emplace(node.get(), node->definition() ? node->copy(std::move(own)) : node);
    });
    images.push_back(image(wanted));
  }
  return images;
}

GradientGraph gradient_graph(const std::vector<NodePtr>& of, const std::vector<NodePtr>& by) {
  Copies copies(by);
  GradientGraph graph;
  for (const NodePtr& node : by) graph.by.push_back(copies.of(node));
  for (const NodePtr& node : of) graph.of.push_back(copies.of(node));
  graph.left = copies.left();
  std::unordered_set<const Node*> reached;
  for (const NodePtr& node : graph.of) {
    visit_after_operands(
        node, [](const NodePtr& one) { return one->is_leaf() ? std::vector<NodePtr>() : one->operands(); },
        [&](const NodePtr& one) { return reached.count(one.get()) != 0; },
        [&](const NodePtr& one) { reached.insert(one.get()); });
  }
  for (const NodePtr& node : graph.by) graph.are_reached.push_back(reached.count(node.get()) != 0);
  return graph;
}

}  // namespace einrel::python
