#pragma once

#include <einrel/error.h>
#include <einrel/input.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "definition.h"
#include "user_line.h"

namespace einrel::python {

class Node;
using NodePtr = std::shared_ptr<Node>;

/// The elements of a node.
struct Value {
  api::Tensor tensor;
  bool is_writable = true;  ///< whether those who see the memory may write to it
};

/// An array that is or will be: a definition and its operands, or elements, or what makes them, or none of these, as an
/// argument of a function that is traced. What has been computed keeps how it was made as long as somebody may ask for
/// a gradient through it (history.h). All under Python's lock.
class Node : public std::enable_shared_from_this<Node> {
 public:
  Node(std::shared_ptr<const Definition> definition, std::vector<NodePtr> operands);
  Node(TypePtr type, std::optional<Value> value);
  /// What is made piece by piece, where a run needs it.
  explicit Node(api::Input source);
  /// Loops where a chain of nodes would go down one call for each.
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const TypePtr& type() const { return type_; }
  /// How it is computed or was; of what was computed only as long as that is kept.
  const std::shared_ptr<const Definition>& definition() const { return definition_; }
  /// Of its definition. Of elements without one: what they were made of outside of the graph, as by a function of
  /// NumPy's.
  const std::vector<NodePtr>& operands() const { return operands_; }
  const std::optional<Value>& value() const { return value_; }
  /// Those without elements that are made of it.
  const std::unordered_set<Node*>& consumers() const { return consumers_; }
  /// Of a node without elements, if they can be made.
  const std::optional<api::Input>& source() const { return source_; }
  /// Whether a computation takes it as an input.
  bool is_leaf() const { return value_ || !definition_; }
  /// Whether it is, or is made of, an argument of a function that is traced.
  bool is_traced() const { return is_traced_; }
  /// What a run takes for it. Throws UserError where it is an argument of a function that is traced.
  api::Input input() const;
  /// It is computed, and keeps how.
  void become(Value value);
  /// Of what has elements: how they were computed, of what.
  void was_made_by(std::shared_ptr<const Definition> definition, std::vector<NodePtr> operands);
  /// It keeps what it was made of no longer. Gives its operands, which may be gone with the result.
  std::vector<NodePtr> forget();

  /// No node that was made before it is made of it.
  std::int64_t number() const { return number_; }
  /// The number of the node that this is a copy of, else its own.
  std::int64_t identity() const { return identity_; }
  /// Another node that computes the same, without elements, of these.
  NodePtr copy(std::vector<NodePtr> operands);
  /// What this is a copy of, while that is there; else itself.
  NodePtr original();
  /// Nothing else is taken for alike but its copies: it is the argument of a function that is differentiated.
  void set_apart() { is_apart_ = true; }
  bool is_apart() const { return is_apart_; }
  /// Where in the user's code it was made, if that is known; a copy where the other one was.
  const UserLine& line() const { return line_; }
  void set_line(const UserLine& line) { line_ = line; }
  /// What the user's code calls it; of arguments of functions that are traced.
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  /// What it goes by in what is said of it, where it has no name of its own.
  struct Origin {
    NodePtr node;       ///< that goes by no other one
    std::size_t times;  ///< that a gradient by it was taken; 0 where it stands for that node
  };
  std::optional<Origin> origin() const;
  /// It stands for that one, of which it is a copy, or which it is of many samples: it was made where that one was.
  void set_origin(const NodePtr& node);
  /// It is how something changes with that one.
  void set_gradient_by(const NodePtr& node);
  /// The same elements elsewhere.
  void hold(Value value) { value_ = std::move(value); }

 private:
  friend class Walk;
  /// What goes by that node, so often as a gradient by it.
  static Origin followed(const NodePtr& node, std::size_t times);
  /// Its operands need not be there for it.
  void consume_nothing();

  TypePtr type_;
  std::shared_ptr<const Definition> definition_;
  std::vector<NodePtr> operands_;
  std::unordered_set<Node*> consumers_;
  std::optional<Value> value_;
  std::optional<api::Input> source_;
  bool needs_gradient_ = false;  ///< it is one, or made of one
  bool is_traced_ = false;
  bool is_apart_ = false;
  UserLine line_;
  std::string name_;
  std::weak_ptr<Node> origin_;
  std::size_t times_ = 0;  ///< that a gradient by its origin was taken
  std::int64_t number_;
  std::int64_t identity_;
  std::weak_ptr<Node> original_;
  std::int64_t walk_ = 0;  ///< the last one that came here
  std::size_t place_ = 0;  ///< in it
};

/// What a function gave that was traced.
struct TracedGraph {
  std::vector<NodePtr> results;
  std::vector<NodePtr> arguments;
};

/// What Python is told that needs elements while a function is traced.
api::UserError no_elements();

/// Some nodes and all that they need, each after its operands; what is alike comes once.
class Walk {
 public:
  /// Leaves over the same elements are one, but not where there are gradients, which are by one of them, or where
  /// `keeps_leaves_apart` says so.
  explicit Walk(const std::vector<NodePtr>& wanted, bool keeps_leaves_apart = false);

  struct Place {
    Node* node;
    bool is_leaf;
    std::vector<std::size_t> operands;  ///< their places
  };
  const std::vector<Place>& places() const { return places_; }
  /// Of the nodes that are wanted.
  const std::vector<std::size_t>& wanted() const { return wanted_; }
  /// In order: what a program of this takes as inputs.
  const std::vector<Node*>& leaves() const { return leaves_; }
  /// Whether the walk came to this node, or one that is alike.
  bool has(const Node& node) const { return node.walk_ == number_; }
  /// The same numbers for every walk that one program computes.
  const std::vector<std::int64_t>& key() const { return key_; }

 private:
  void visit(Node* wanted);
  void enter(Node* node);
  std::size_t place_of(Node* node);

  bool keeps_leaves_apart_;
  std::int64_t number_;
  std::vector<Place> places_;
  std::vector<std::size_t> wanted_;
  std::vector<Node*> leaves_;
  std::vector<std::int64_t> key_;
  std::map<std::vector<std::int64_t>, std::size_t> known_;  // places by definition and operands
  std::map<const std::byte*, std::size_t> elements_;        // places of leaves by where their elements lie
};

}  // namespace einrel::python
