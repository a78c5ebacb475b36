#include "node.h"

#include <einrel/error.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace einrel::python {

Node::Node(std::shared_ptr<const Definition> definition, std::vector<NodePtr> operands)
    : type_(definition->type()),
      definition_(std::move(definition)),
      operands_(std::move(operands)),
      needs_gradient_(std::holds_alternative<Gradient>(definition_->meaning()) ||
                      std::any_of(operands_.begin(), operands_.end(),
                                  [](const NodePtr& operand) { return operand->needs_gradient_; })) {}

Node::Node(api::Input source) : type_(type_of(source.dtype(), source.shape())), source_(std::move(source)) {}

Node::~Node() {
  std::vector<NodePtr> waiting = std::move(operands_);
  while (!waiting.empty()) {
    const NodePtr node = std::move(waiting.back());
    waiting.pop_back();
    if (node.use_count() > 1) continue;
    for (NodePtr& operand : node->operands_) waiting.push_back(std::move(operand));
    node->operands_.clear();
  }
}

void Node::become(Value value) {
  if (value_) return;  // another thread has computed it: who has seen its memory shares it
  value_ = std::move(value);
  source_.reset();
  definition_ = nullptr;
  const std::vector<NodePtr> forgotten = std::move(operands_);
  operands_.clear();
}

api::Input Node::input() const {
  if (value_) return value_->tensor;
  if (source_) return *source_;
  throw no_elements();
}

api::UserError no_elements() {
  return api::UserError(
      "Python asked for elements of an argument of a function that is traced, as if, float() and shapes made of "
      "elements do: "
      "use einrel.where, or give what decides as a string, a bool or None, or from outside the function");
}

Walk::Walk(const std::vector<NodePtr>& wanted, bool keeps_leaves_apart)
    : keeps_leaves_apart_(keeps_leaves_apart || std::any_of(wanted.begin(), wanted.end(), [](const NodePtr& node) {
                            return node->needs_gradient_;
                          })) {
  static std::int64_t walks = 0;
  number_ = ++walks;
  for (const NodePtr& node : wanted) visit(node.get());
  key_.push_back(-1);
  for (const std::size_t place : wanted_) key_.push_back(static_cast<std::int64_t>(place));
}

void Walk::visit(Node* wanted) {
  struct Step {
    Node* node;
    std::size_t next = 0;
  };
  std::vector<Step> path;
  if (wanted->walk_ != number_) path.push_back({wanted});
  while (!path.empty()) {
    Step& step = path.back();
    if (step.next == step.node->operands_.size()) {
      enter(step.node);
      path.pop_back();
      continue;
    }
    Node* const operand = step.node->operands_[step.next++].get();
    if (operand->walk_ != number_) path.push_back({operand});
  }
  wanted_.push_back(wanted->place_);
}

void Walk::enter(Node* node) {
  node->walk_ = number_;
  node->place_ = place_of(node);
}

std::size_t Walk::place_of(Node* node) {
  if (!node->definition_) {
    if (node->value_ && !keeps_leaves_apart_) {
      const auto [known, is_new] = elements_.try_emplace(node->value_->tensor.bytes().data(), places_.size());
      if (!is_new && places_[known->second].node->type_ == node->type_) return known->second;
    }
    leaves_.push_back(node);
    key_.push_back(-2 - static_cast<std::int64_t>(node->type_->dtype));
    key_.push_back(static_cast<std::int64_t>(node->type_->shape.size()));
    key_.insert(key_.end(), node->type_->shape.begin(), node->type_->shape.end());
    places_.push_back({node, {}});
    return places_.size() - 1;
  }
  std::vector<std::size_t> operands;
  std::vector<std::int64_t> what{node->definition_->id()};
  for (const NodePtr& operand : node->operands_) {
    operands.push_back(operand->place_);
    what.push_back(static_cast<std::int64_t>(operand->place_));
  }
  const auto [known, is_new] = known_.try_emplace(std::move(what), places_.size());
  if (is_new) {
    key_.insert(key_.end(), known->first.begin(), known->first.end());
    places_.push_back({node, std::move(operands)});
  }
  return known->second;
}

void copy_graph(std::vector<NodePtr>& nodes) {
  const Walk walk(nodes, true);
  std::vector<NodePtr> copies;
  for (const Walk::Place& place : walk.places()) {
    if (!place.node->definition()) {
      copies.push_back(place.node->shared_from_this());
      continue;
    }
    std::vector<NodePtr> operands;
    for (const std::size_t operand : place.operands) operands.push_back(copies[operand]);
    copies.push_back(std::make_shared<Node>(place.node->definition(), std::move(operands)));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i] = copies[walk.wanted()[i]];
}

}  // namespace einrel::python
