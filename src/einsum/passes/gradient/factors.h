#pragma once

#include <map>
#include <string>
#include <vector>

#include "einsum/passes/gradient/gradient.h"

namespace einrel::gradient {

/// What flows back through one factor of A = Q R.
struct FactorAdjoint {
  const Vertex& vertex;             ///< the factor
  std::string seed;                 ///< the tensor of its shape that flows back into it
  std::vector<std::string> labels;  ///< what A's batches, rows and columns are called, as labels of the vertex
  /// Labels for the two sides of a matrix between Q and R.
  std::vector<std::string> between;
  std::map<std::string, Extent> extents;  ///< of all of them
};

/// What flows to A, over its labels (Walter, Lehmann and Lamour, On evaluating higher-order derivatives of the QR
/// decomposition, 2012; Roberts and Roberts, QR and LQ decomposition matrix backpropagation algorithms, 2020): with
/// M = R dR^T - dQ^T Q, and S = M below and on the diagonal, above as S^T,
///   dA = (dQ + Q S) R^-T
/// where A has no more columns than rows. Else R = [U V] and A = [X Y], V flows to Y as Q dV and to Q as Y dV^T, and
/// the formula holds for X = Q U. The first columns of A, as many as Q has, have to be independent: R is inverted.
build::Formula adjoint_through(const FactorAdjoint& adjoint, const GrowingGraph& growing);

}  // namespace einrel::gradient
