#pragma once

#include <optional>
#include <vector>

#include "einsum/check/check_vertex.h"

namespace einrel::checking {

/// A call of linear algebra: inverse[i,j](body).
struct OpaqueArgument {
  const build::OpaqueCall& call;
  std::vector<std::optional<std::size_t>> matrix;  ///< per label of the call, what it is; nothing where it is none
  const ScalarExpr& body;
  DType dtype = DType::f32;
  const std::vector<std::size_t>& left;  ///< labels of the statement
  Span span;
};

struct OpaqueVertex {
  Vertex vertex;
  std::vector<std::size_t> output;  ///< its dimensions
};

/// The vertex over the batches and the matrices of the argument, which reads the tensor that this is, or a new one that
/// computes it. Batches stand as they do on the left. Nothing, with an error, where labels or types do not fit.
std::optional<OpaqueVertex> opaque_vertex(CheckState& state, LabelScope& scope, VertexMaker& maker,
                                          const OpaqueArgument& argument);

}  // namespace einrel::checking
