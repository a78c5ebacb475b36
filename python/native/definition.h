#pragma once

#include <einrel/program.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "formula.h"

namespace einrel::python {

/// What is known of an array that is not computed yet.
struct Type {
  api::DType dtype = api::DType::f32;
  api::Shape shape;
  auto operator<=>(const Type&) const = default;
};
/// There is one for all that are equal, so that Python's dicts find one by its address.
using TypePtr = std::shared_ptr<const Type>;
TypePtr type_of(api::DType dtype, const api::Shape& shape);

/// Result[first labels] = value, reduced over the others.
struct Statement {
  Formula value;
  std::vector<std::int64_t> extents;  ///< of all labels
  std::size_t rank;                   ///< how many of them the result has
};

/// The same elements under other dimensions, each of some labels.
struct View {
  std::vector<std::vector<std::size_t>> to;
  std::vector<std::vector<std::size_t>> from;
  std::vector<std::int64_t> extents;
};

struct Einsum {
  std::string subscripts;
  std::optional<std::string> join;
  std::optional<std::string> reduce;
};

/// How the first operand changes with each of the others: of these, the one that is meant.
struct Gradient {
  std::size_t which;
};

struct TracedGraph;

/// A result of a function that was traced, of these as its arguments.
struct Call {
  std::shared_ptr<const TracedGraph> graph;
  std::size_t which;
  TypePtr type;
};

using Meaning = std::variant<Statement, View, Einsum, Gradient, Call>;

/// What a node computes of its operands: a statement of the language without names. Does not change, and is shared by
/// all nodes that compute the same of operands of the same types.
class Definition {
 public:
  /// Asks the language for the type of the result. Throws UserError where it sees a mistake.
  Definition(std::vector<TypePtr> operands, Meaning meaning);

  /// No other definition has it, also none that comes after this one is gone.
  std::int64_t id() const { return id_; }
  const TypePtr& type() const { return type_; }
  /// The types of what it is computed of.
  const std::vector<TypePtr>& operands() const { return operands_; }
  const Meaning& meaning() const { return meaning_; }

  /// The statement of that name, of these operands. Not of gradients, of which there are several at once, nor of calls.
  api::Variable variable(const std::string& name, const std::vector<api::Variable>& operands) const;

 private:
  std::int64_t id_;
  std::vector<TypePtr> operands_;
  Meaning meaning_;
  TypePtr type_;
};

/// An input of that name and type.
api::Variable input_of(const std::string& name, const Type& type);
/// The same elements as those of a variable of that shape, under that name.
api::Variable renamed(const std::string& name, const api::Variable& variable, const api::Shape& shape);

}  // namespace einrel::python
