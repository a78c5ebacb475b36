#pragma once

#include <vector>

#include "einsum/check/check_vertex.h"

namespace einrel::checking {

/// A computed index: a whole number of an integer type, as steps over the pool of a statement.
struct ComputedIndex {
  std::size_t dimension = 0;  ///< of the tensor that it indexes
  ScalarExpr position;
  DType dtype = DType::i64;
};

/// The element that computed indices pick, as what is to be reduced over `label`.
struct Pick {
  std::size_t label = 0;
  /// All others as they stand in the access, those of an index in its place: rows that are picked lie as they lay.
  std::vector<std::size_t> output;
  ScalarExpr body;
  Reducer reducer = Reducer::sum;
};

/// Whether there may be something to pick; reports why not.
bool may_be_picked(CheckState& state, const build::Access& access, const PooledAccess& tensor,
                   const std::vector<ComputedIndex>& indices, Span span);

/// E[T[s],d], where `tensor` reads E[v,d]: sum[v] where(v == T[s], E[v,d], 0); of bools any[v] min(v == T[s], E[v,d]).
/// Several computed indices pick from their dimensions as one, a view of the tensor. A position outside of its
/// dimension ends the run when it is looked at, in a tensor in front of this one; with a pad it picks 0.
Pick pick_element(VertexMaker& maker, LabelScope& scope, PooledAccess tensor,
                  const std::vector<ComputedIndex>& indices);

}  // namespace einrel::checking
