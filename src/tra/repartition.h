#pragma once

#include "tra/tra_expr.h"

namespace einrel {

/// Adds what a Repartition means, in EinDecomp's order, for every dimension whose cut changes:
///   Tile into the largest pieces that make up the chunks of both cuts, ReKey each piece to (its new chunk, its place
///   in it), Concat the pieces of a chunk.
/// `bound` is that of the whole tensor; no cut has a window. Returns `in` when nothing changes.
TraId expand_repartition(TraExpr& program, TraId in, const Repartition& op, const Shape& bound);

/// Whether two cuts of a dimension give the same chunks. O(parts).
bool same_chunks(Extent extent, const DimensionCut& a, const DimensionCut& b);

/// Where chunk `part` of a dimension begins (relation.h), over keys; the cut has no window.
KeyExpr chunk_begin(Extent extent, const DimensionCut& cut, const KeyExpr& part);

/// What a chunk of a new cut takes of a chunk of the old one, along one dimension: elements begin .. begin + extent - 1
/// of the tensor.
struct Piece {
  std::int64_t part = 0;  ///< of the old cut
  std::int64_t begin = 0;
  std::int64_t extent = 0;
};
/// For each part of `to` the pieces that it is made of, ascending; none when the extent is 0. `from` has no window.
/// Where chunks of `to` overlap, what several have is a piece of each of them. O(parts of both, and pieces).
std::vector<std::vector<Piece>> pieces_of(Extent extent, const DimensionCut& from, const DimensionCut& to);
struct PieceCount {
  std::int64_t pieces = 0;   ///< in all; 1 of an extent of 0
  std::int64_t extents = 0;  ///< of the old chunk of each piece, added up
};
/// O(parts of both).
PieceCount count_of_pieces(Extent extent, const DimensionCut& from, const DimensionCut& to);

/// What bringing a tensor to other cuts does to its chunks.
struct CutChange {
  bool is_cut = false;           ///< some new chunk is a part of an old one
  bool is_put_together = false;  ///< some new chunk is made of several pieces
};
/// `from` and `to` per dimension. O(parts of both).
CutChange change_of_cuts(const Shape& bound, const std::vector<DimensionCut>& from,
                         const std::vector<DimensionCut>& to);

}  // namespace einrel
