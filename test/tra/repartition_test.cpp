#include "tra/repartition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/compare.h"
#include "support/random_einsum.h"
#include "tra/infer.h"
#include "tra/interpret.h"

namespace einrel::test {
namespace {

/// A random cut of the extent, sometimes in units of several elements.
DimensionCut random_cut(Random& random, std::int64_t extent) {
  std::vector<std::int64_t> units;
  for (std::int64_t unit = 1; unit <= extent; ++unit) {
    if (extent % unit == 0) units.push_back(unit);
  }
  const std::int64_t unit =
      units[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(units.size()) - 1))];
  return {random.between(1, extent / unit), unit};
}

TEST(Repartition, IsTileReKeyAndConcat) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    Shape bound;
    Repartition op;
    for (std::int64_t d = random.between(1, 3); d > 0; --d) {
      const std::int64_t extent = random.between(1, 12);
      bound.emplace_back(extent);
      op.from.push_back(random_cut(random, extent));
      op.to.push_back(random_cut(random, extent));
    }
    const Tensor x = random_tensor(random, DType::f64, bound, false);
    TraExpr program;
    const TraId in = program.add(StoredRelation{"X", DType::f64, bound, cut_of_all(op.from)});
    program.output("at_once", program.add(op, {in}));
    program.output("step_by_step", expand_repartition(program, in, op, bound));
    const auto relations = interpret(program, {{"X", x}}, {});
    const Relation& at_once = relations.at("at_once");
    const Relation& step_by_step = relations.at("step_by_step");
    ASSERT_EQ(at_once.size(), step_by_step.size()) << "seed " << seed;
    for (const auto& [key, chunk] : at_once) {
      ASSERT_EQ(step_by_step.count(key), 1U) << "seed " << seed;
      ASSERT_TRUE(agree(step_by_step.at(key), chunk, std::vector<double>(static_cast<std::size_t>(chunk.count()), 0)))
          << "seed " << seed << " key " << to_string(key);
    }
  }
}

TEST(Repartition, CutsChunksIntoPieces) {
  std::vector<std::vector<std::int64_t>> found;  // part, begin, extent
  for (const auto& part : pieces_of(Extent(10), {3, 1}, {4, 1})) {
    found.emplace_back();
    for (const Piece& piece : part) found.back().insert(found.back().end(), {piece.part, piece.begin, piece.extent});
  }
  using List = std::vector<std::int64_t>;
  EXPECT_EQ(found, (std::vector<List>{{0, 0, 3}, {0, 3, 1, 1, 4, 2}, {1, 6, 1, 2, 7, 1}, {2, 8, 2}}));
  EXPECT_EQ(pieces_of(Extent(12), {3, 4}, {1, 1}).front().size(), 3U);
  EXPECT_TRUE(pieces_of(Extent(0), {1, 1}, {1, 1}).front().empty());
}

}  // namespace

TEST(Repartition, CountsPiecesAsItListsThem) {
  for (const std::int64_t extent : {0, 1, 7, 12, 60}) {
    for (std::int64_t from = 1; from <= std::max<std::int64_t>(extent, 1); ++from) {
      for (std::int64_t to = 1; to <= std::max<std::int64_t>(extent, 1); ++to) {
        PieceCount wanted{extent == 0 ? 1 : 0, 0};
        for (const auto& part : pieces_of(Extent(extent), {from, 1}, {to, 1})) {
          wanted.pieces += std::ssize(part);
          for (const Piece& piece : part) wanted.extents += chunk_extent(Extent(extent), {from, 1}, piece.part).value();
        }
        const PieceCount found = count_of_pieces(Extent(extent), {from, 1}, {to, 1});
        EXPECT_EQ(found.pieces, wanted.pieces) << extent << " from " << from << " to " << to;
        EXPECT_EQ(found.extents, wanted.extents) << extent << " from " << from << " to " << to;
      }
    }
  }
}

}  // namespace einrel::test
