#pragma once

#include "tra/tra_expr.h"

namespace einrel {

/// Adds what a Repartition means, in EinDecomp's order, for every dimension whose cut changes:
///   Tile into the largest pieces that make up the chunks of both cuts, ReKey each piece to (its new chunk, its place
///   in it), Concat the pieces of a chunk.
/// `bound` is that of the whole tensor. Returns `in` when nothing changes.
TraId expand_repartition(TraExpr& program, TraId in, const Repartition& op, const Shape& bound);

}  // namespace einrel
