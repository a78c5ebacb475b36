#include "tra/repartition.h"

#include <algorithm>
#include <numeric>

namespace einrel {
namespace {

KeyExpr times(const KeyExpr& a, std::int64_t b) { return key_call(KeyFunction::multiply, a, key_constant(b)); }
KeyExpr over(const KeyExpr& a, std::int64_t b) { return key_call(KeyFunction::divide, a, key_constant(b)); }

/// How many units of a dimension each chunk has: `larger` chunks have one more than `units`.
struct Balance {
  std::int64_t units;
  std::int64_t larger;
};
Balance balance_of(Extent extent, const DimensionCut& cut) {
  const std::int64_t units = extent.value() / cut.unit;
  return {units / cut.parts, units % cut.parts};
}

/// The largest piece that every chunk of both cuts is made of.
std::int64_t common_piece(Extent extent, const DimensionCut& from, const DimensionCut& to) {
  std::int64_t piece = extent.value();
  for (const DimensionCut& cut : {from, to}) {
    for (std::int64_t part = 1; part < cut.parts; ++part) piece = std::gcd(piece, chunk_begin(extent, cut, part));
  }
  return piece;
}

/// chunk_begin(part) / piece as an expression.
KeyExpr begin_in_pieces(const KeyExpr& part, Extent extent, const DimensionCut& cut, std::int64_t piece) {
  const auto [units, larger] = balance_of(extent, cut);
  if (larger == 0) return times(part, units * cut.unit / piece);
  const KeyExpr chunks_before = key_call(KeyFunction::minimum, part, key_constant(larger));
  return over(times(key_call(KeyFunction::add, times(part, units), chunks_before), cut.unit), piece);
}

/// The chunk that piece number `number` lies in.
KeyExpr chunk_of_piece(const KeyExpr& number, Extent extent, const DimensionCut& cut, std::int64_t piece) {
  const auto [units, larger] = balance_of(extent, cut);
  if (cut.parts == 1) return key_constant(0);
  if (larger == 0) return over(number, units * cut.unit / piece);
  // Among the larger chunks the first form is right and the second one not above it; after them the other way round.
  const KeyExpr unit = over(times(number, piece), cut.unit);
  const KeyExpr among_smaller = over(key_call(KeyFunction::subtract, unit, key_constant(larger)), units);
  return key_call(KeyFunction::maximum, over(unit, units + 1), among_smaller);
}

}  // namespace

KeyExpr chunk_begin(Extent extent, const DimensionCut& cut, const KeyExpr& part) {
  return begin_in_pieces(part, extent, cut, 1);
}

bool same_chunks(Extent extent, const DimensionCut& a, const DimensionCut& b) {
  if (a == b) return true;
  if (a.parts != b.parts) return false;
  for (std::int64_t part = 0; part < a.parts; ++part) {
    if (chunk_range(extent, a, part) != chunk_range(extent, b, part)) return false;
  }
  return true;
}

TraId expand_repartition(TraExpr& program, TraId in, const Repartition& op, const Shape& bound) {
  const std::size_t rank = bound.size();
  for (std::size_t d = 0; d < rank; ++d) {
    const DimensionCut& from = op.from[d];
    const DimensionCut& to = op.to[d];
    if (from == to || bound[d] == Extent(0) || (from.parts == 1 && to.parts == 1)) continue;
    const std::int64_t piece = common_piece(bound[d], from, to);
    const TraId tiled = program.add(Tile{d, piece}, {in});
    const KeyExpr number =
        key_call(KeyFunction::add, begin_in_pieces(key_position(d), bound[d], from, piece), key_position(rank));
    const KeyExpr chunk = chunk_of_piece(number, bound[d], to, piece);
    KeyMap map = identity_map(rank + 1);
    map.outputs[d] = chunk;
    map.outputs[rank] = key_call(KeyFunction::subtract, number, begin_in_pieces(chunk, bound[d], to, piece));
    in = program.add(Concat{rank, d}, {program.add(ReKey{map}, {tiled})});
  }
  return in;
}

namespace {

/// Where pieces of chunks of `to` may begin or end, ascending.
std::vector<std::int64_t> borders_of(Extent extent, const DimensionCut& from, const DimensionCut& to) {
  std::vector<std::int64_t> borders;
  for (std::int64_t part = 0; part <= from.parts; ++part) borders.push_back(chunk_begin(extent, from, part));
  for (std::int64_t part = 0; part < to.parts; ++part) {
    const ElementRange elements = elements_in_chunk(extent, to, part);
    borders.push_back(elements.begin);
    borders.push_back(elements.end);
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

}  // namespace

std::vector<std::vector<Piece>> pieces_of(Extent extent, const DimensionCut& from, const DimensionCut& to) {
  std::vector<std::vector<Piece>> pieces(static_cast<std::size_t>(to.parts));
  const std::vector<std::int64_t> borders = borders_of(extent, from, to);
  std::vector<std::int64_t> old_parts;  // of `from`, by the border that a piece begins at
  std::int64_t old_part = 0;
  for (const std::int64_t border : borders) {
    while (old_part + 1 < from.parts && chunk_begin(extent, from, old_part + 1) <= border) ++old_part;
    old_parts.push_back(old_part);
  }
  for (std::size_t part = 0; part < pieces.size(); ++part) {
    const ElementRange elements = elements_in_chunk(extent, to, static_cast<std::int64_t>(part));
    const auto first = std::lower_bound(borders.begin(), borders.end(), elements.begin);
    for (auto at = static_cast<std::size_t>(first - borders.begin()); elements.begin < elements.end; ++at) {
      if (borders[at] == elements.end) break;
      pieces[part].push_back({old_parts[at], borders[at], borders[at + 1] - borders[at]});
    }
  }
  return pieces;
}

PieceCount count_of_pieces(Extent extent, const DimensionCut& from, const DimensionCut& to) {
  if (extent == Extent(0)) return {1, 0};
  PieceCount count;
  std::int64_t part = 0;  // the first of `to` that begins where an old one does, or behind
  for (std::int64_t old_part = 0; old_part < from.parts; ++old_part) {
    const std::int64_t begin = chunk_begin(extent, from, old_part);
    const std::int64_t end = chunk_begin(extent, from, old_part + 1);
    std::int64_t pieces = part < to.parts && chunk_begin(extent, to, part) == begin ? 0 : 1;
    for (; part < to.parts && chunk_begin(extent, to, part) < end; ++part) ++pieces;
    count.pieces += pieces;
    count.extents += pieces * (end - begin);
  }
  return count;
}

CutChange change_of_cuts(const Shape& bound, const std::vector<DimensionCut>& from,
                         const std::vector<DimensionCut>& to) {
  CutChange change;
  for (std::size_t d = 0; d < bound.size(); ++d) {
    if (from[d] == to[d] || bound[d] == Extent(0)) continue;
    const std::int64_t pieces = count_of_pieces(bound[d], from[d], to[d]).pieces;
    change.is_cut = change.is_cut || pieces != from[d].parts;
    change.is_put_together = change.is_put_together || pieces != to[d].parts;
  }
  return change;
}

}  // namespace einrel
