#pragma once

#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/source.h"
#include "einsum/graph/ein_graph.h"
#include "tra/kernel.h"
#include "tra/key.h"
#include "tra/relation.h"

namespace einrel {

/// A tensor from outside, cut into chunks.
struct StoredRelation {
  std::string name;
  DType dtype = DType::f32;
  Shape bound;
  TensorCut cut;
  bool operator==(const StoredRelation&) const = default;
};
/// The numbers 0..extent-1 as i64 vectors, keyed by chunk: what a label that no tensor has runs over. Nobody stores or
/// moves them.
struct LabelPositions {
  Extent extent;
  DimensionCut cut;
  bool operator==(const LabelPositions&) const = default;
};
/// Sigma(groupByKeys, aggOp): groups by the listed key positions and folds each group with the kernel, by ascending
/// key.
struct Aggregate {
  KeyPositions group_by;
  Kernel kernel;
  bool operator==(const Aggregate&) const = default;
};
/// Join(joinKeysL, joinKeysR, projOp): pairs whose keys agree at these positions. Output key: the left key, then the
/// right key without keys_right; of more relations each joins that of those before, and keys_right counts through all.
/// `numbers` of it are what the kernel takes after the arrays, as i64 of rank 0: where its chunk begins, for example.
struct Join {
  KeyPositions keys_left;
  KeyPositions keys_right;
  Kernel kernel;
  KeyMap numbers = {};
  bool operator==(const Join&) const = default;
};
struct ReKey {
  KeyMap map;
  bool operator==(const ReKey&) const = default;
};
/// Keeps the tuples for which the predicate is not 0.
struct Filter {
  KeyExpr predicate;
  bool operator==(const Filter&) const = default;
};
/// `numbers` as those of a Join.
struct Transform {
  Kernel kernel;
  KeyMap numbers = {};
  bool operator==(const Transform&) const = default;
};
/// Tile(tileDim, tileSize): cuts each array along `dim` into arrays of `size` (the last one may be smaller); a new last
/// key position counts the tile.
struct Tile {
  std::size_t dim = 0;
  std::int64_t size = 1;
  bool operator==(const Tile&) const = default;
};
/// Into how many arrays it cuts a dimension of that extent; one where there is nothing.
std::int64_t tile_count(Extent extent, const Tile& op);
/// Concat(keyDim, arrayDim): joins the arrays of each group of tuples that differ in `key_position` only, in its order.
struct Concat {
  std::size_t key_position = 0;
  std::size_t array_dim = 0;
  bool operator==(const Concat&) const = default;
};
/// Re-cuts a stored tensor (one key position per dimension); EinDecomp, section 4.2. Means what `expand_repartition`
/// says.
struct Repartition {
  std::vector<DimensionCut> from;
  std::vector<DimensionCut> to;
  bool operator==(const Repartition&) const = default;
};

using TraOp =
    std::variant<StoredRelation, LabelPositions, Aggregate, Join, ReKey, Filter, Transform, Tile, Concat, Repartition>;
using TraId = StrongId<struct TraTag>;

struct TraNode {
  TraOp op;
  std::vector<TraId> inputs;
  std::string name;  ///< of the statement that it is the value of, or ""
  Span where;        ///< in the program text
};

struct TraOutput {
  std::string name;
  TraId id;
};

/// A program in the tensor relational algebra (TRA paper, section 3): append-only, inputs before users.
/// Writing one:
///   TraExpr p;
///   const TraId a = p.add(StoredRelation{"A", DType::f32, make_shape({4, 4}), cut_of_all({{2}, {2}})});
///   const TraId products = p.add(Join{{1}, {0}, named_kernel("matMul", f32x2)}, {a, a});
///   p.output("C", p.add(Aggregate{{0, 2}, named_kernel("matAdd", f32x2)}, {products}));
struct TraExpr {
  std::vector<TraNode> nodes;
  std::vector<TraOutput> outputs;
  std::vector<ScalarDeclaration> scalars;

  TraId add(TraOp op, std::vector<TraId> inputs = {}, std::string name = "", Span where = {});
  void output(std::string name, TraId id) { outputs.push_back({std::move(name), id}); }
  const TraNode& operator[](TraId id) const { return nodes[id.index]; }
};

/// What a node is called in messages: its statement's name, or its operation: "the join of A and B".
std::string describe(const TraExpr& program, TraId id);

}  // namespace einrel
