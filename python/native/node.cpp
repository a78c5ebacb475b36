#include "node.h"

#include <einrel/error.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "history.h"

namespace einrel::python {

namespace {

std::int64_t next_number() {
  static std::int64_t number = 0;
  return number++;
}

}  // namespace

Node::Node(std::shared_ptr<const Definition> definition, std::vector<NodePtr> operands)
    : type_(definition->type()),
      definition_(std::move(definition)),
      operands_(std::move(operands)),
      needs_gradient_(std::holds_alternative<Gradient>(definition_->meaning())),
      number_(next_number()),
      identity_(number_) {
  for (const NodePtr& operand : operands_) {
    needs_gradient_ = needs_gradient_ || operand->needs_gradient_;
    is_traced_ = is_traced_ || operand->is_traced_;
    operand->consumers_.insert(this);
  }
}

Node::Node(TypePtr type, std::optional<Value> value)
    : type_(std::move(type)),
      value_(std::move(value)),
      is_traced_(!value_),
      number_(next_number()),
      identity_(number_) {}

Node::Node(api::Input source)
    : type_(type_of(source.dtype(), source.shape())),
      source_(std::move(source)),
      number_(next_number()),
      identity_(number_) {}

Node::~Node() {
  if (value_) forget_history(*this);
  consume_nothing();
  std::vector<NodePtr> waiting = std::move(operands_);
  while (!waiting.empty()) {
    const NodePtr node = std::move(waiting.back());
    waiting.pop_back();
    if (node.use_count() > 1) continue;
    node->consume_nothing();
    for (NodePtr& operand : node->operands_) waiting.push_back(std::move(operand));
    node->operands_.clear();
  }
}

void Node::consume_nothing() {
  for (const NodePtr& operand : operands_) operand->consumers_.erase(this);
}

void Node::become(Value value) {
  if (value_) return;  // another thread has computed it: who has seen its memory shares it
  consume_nothing();
  value_ = std::move(value);
  source_.reset();
  needs_gradient_ = false;
}

void Node::was_made_by(std::shared_ptr<const Definition> definition, std::vector<NodePtr> operands) {
  definition_ = std::move(definition);
  operands_ = std::move(operands);
}

std::vector<NodePtr> Node::forget() {
  definition_ = nullptr;
  return std::exchange(operands_, {});
}

NodePtr Node::copy(std::vector<NodePtr> operands) {
  auto made = std::make_shared<Node>(definition_, std::move(operands));
  made->identity_ = identity_;
  made->original_ = original();
  made->is_apart_ = is_apart_;
  made->set_origin(shared_from_this());
  return made;
}

NodePtr Node::original() {
  NodePtr original = original_.lock();
  return original ? original : shared_from_this();
}

std::optional<Node::Origin> Node::origin() const {
  if (definition_ && !operands_.empty()) {
    const auto* const gradient = std::get_if<Gradient>(&definition_->meaning());
    if (gradient != nullptr && gradient->which + 1 < operands_.size())
      return followed(operands_[gradient->which + 1], 1);
    if (is_apart_) return followed(operands_.front(), 0);
  }
  NodePtr node = origin_.lock();
  return node ? std::optional(Origin{std::move(node), times_}) : std::nullopt;
}

Node::Origin Node::followed(const NodePtr& node, std::size_t times) {
  std::optional<Origin> origin = node->origin();
  return origin ? Origin{std::move(origin->node), origin->times + times} : Origin{node, times};
}

void Node::set_origin(const NodePtr& node) {
  const Origin origin = followed(node, 0);
  origin_ = origin.node;
  times_ = origin.times;
  line_ = node->line_;
}

void Node::set_gradient_by(const NodePtr& node) {
  const Origin origin = followed(node, 1);
  origin_ = origin.node;
  times_ = origin.times;
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
    if (step.next == (step.node->is_leaf() ? 0 : step.node->operands_.size())) {
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
  if (node->is_leaf()) {
    if (node->value_ && !keeps_leaves_apart_) {
      const auto [known, is_new] = elements_.try_emplace(node->value_->tensor.bytes().data(), places_.size());
      if (!is_new && places_[known->second].node->type_ == node->type_) return known->second;
    }
    leaves_.push_back(node);
    key_.push_back(-2 - static_cast<std::int64_t>(node->type_->dtype));
    key_.push_back(static_cast<std::int64_t>(node->type_->shape.size()));
    key_.insert(key_.end(), node->type_->shape.begin(), node->type_->shape.end());
    places_.push_back({node, true, {}});
    return places_.size() - 1;
  }
  std::vector<std::size_t> operands;
  std::vector<std::int64_t> what{node->definition_->id()};
  for (const NodePtr& operand : node->operands_) {
    operands.push_back(operand->place_);
    what.push_back(static_cast<std::int64_t>(operand->place_));
  }
  const std::vector<std::int64_t> shown = what;  // twice in the key, where the second one is apart from the first
  if (node->is_apart_) what.push_back(node->identity_);
  const auto [known, is_new] = known_.try_emplace(std::move(what), places_.size());
  if (is_new) {
    key_.insert(key_.end(), shown.begin(), shown.end());
    places_.push_back({node, false, std::move(operands)});
  }
  return known->second;
}

}  // namespace einrel::python
