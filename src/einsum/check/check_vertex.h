#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "einsum/check/check_state.h"
#include "einsum/check/label_scope.h"

namespace einrel::checking {

/// X[...] as the steps of one statement read it; labels are ids of its LabelScope.
struct PooledAccess {
  VertexId vertex;
  DType dtype = DType::f32;  ///< in the language: a vertex that nobody named is stored in what this computes in
  Access access;
};

/// A reduced label may carry the name of an outer one; inside one vertex names must differ for people.
void make_names_unique(std::vector<Label>& labels);

/// Makes vertices of bodies whose labels are ids of a LabelScope and whose operands are numbers of what is in the pool:
/// all that one statement reads.
class VertexMaker {
 public:
  /// `name`: of the tensor that the statement defines.
  VertexMaker(CheckState& state, const std::string& name, Span where, const LabelScope& scope)
      : state_(state), name_(name), where_(where), scope_(scope) {}

  /// Its number in the pool.
  std::size_t add(PooledAccess read);
  const PooledAccess& operator[](std::size_t operand) const { return pool_[operand]; }
  const EinGraph& graph() const { return state_.builder.graph(); }

  /// A label that nothing binds, which has been reported.
  void add_loose(const std::string& name, std::size_t label) { loose_[name] = label; }
  std::optional<std::size_t> find_loose(const std::string& name) const;

  /// The labels that operands and label values in `body` use, ascending.
  std::vector<std::size_t> labels_of(const ScalarExpr& body) const;
  /// Reports what is too large to be stored.
  Vertex make(ScalarExpr body, const std::vector<std::size_t>& output, const std::vector<std::size_t>& reduced,
              std::optional<Reducer> reducer, DType dtype);
  void check_size(const Vertex& vertex);
  /// Adds a vertex that is none of the program's statements, unless there is one that computes the same.
  VertexId find_or_add(Vertex vertex, const std::string& suffix = "");
  /// A tensor over all labels of a body; its number in the pool.
  std::size_t add_tensor(const ScalarExpr& body, DType dtype, const std::string& suffix);

 private:
  CheckState& state_;
  const std::string& name_;
  Span where_;
  const LabelScope& scope_;
  std::vector<PooledAccess> pool_;
  std::map<std::string, std::size_t> loose_;
};

}  // namespace einrel::checking
