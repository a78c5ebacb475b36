#pragma once

#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "ia/placement.h"
#include "tra/tra_expr.h"

namespace einrel {

/// A stored relation and where its tuples lie before the program runs.
struct PlacedRelation {
  StoredRelation stored;
  Placement placement;  ///< Everywhere or Partitioned
  bool operator==(const PlacedRelation&) const = default;
};
/// Delivers every tuple to every site.
struct Bcast {
  bool operator==(const Bcast&) const = default;
};
/// Delivers every tuple to the sites that the grid gives for its key's values at `positions` (paper: partDims).
struct Shuf {
  KeyPositions positions;
  SiteGrid grid;
  bool operator==(const Shuf&) const = default;
};
/// Cuts a tensor anew (one key position per dimension; TRA: Repartition) and places each new chunk by its key, all of
/// it: sites get what their chunks have in common with the old ones and put it together, each element once, also where
/// several of their chunks have it. The one operation that moves parts of arrays.
struct Repart {
  std::vector<DimensionCut> from;
  std::vector<DimensionCut> to;
  SiteGrid grid;
  bool operator==(const Repart&) const = default;
};
/// A join of the tuples on each site. `key_map` is applied to the joined key; the identity unless a map was merged in.
/// `numbers` of the joined key are the kernel's arguments after the arrays (TRA: Join).
struct LocalJoin {
  KeyPositions keys_left;
  KeyPositions keys_right;
  Kernel kernel;
  KeyMap key_map;
  KeyMap numbers = {};
  bool operator==(const LocalJoin&) const = default;
};
/// Joins the arrays of each group along `array_dim`, by ascending value of `key_position` (TRA: Concat).
struct ConcatArrays {
  std::size_t key_position = 0;
  std::size_t array_dim = 0;
  bool operator==(const ConcatArrays&) const = default;
};
/// Groups the tuples on each site and folds each group; then, once per group, the finaliser (the identity unless a map
/// was merged in).
struct LocalAggregate {
  KeyPositions group_by;
  std::variant<Kernel, ConcatArrays> fold;
  std::optional<Kernel> finaliser;
  bool operator==(const LocalAggregate&) const = default;
};
struct LocalFilter {
  KeyExpr predicate;
  bool operator==(const LocalFilter&) const = default;
};
/// `count` copies of each array.
struct Duplicate {
  std::int64_t count = 1;
  bool operator==(const Duplicate&) const = default;
};
/// The maps of m >= 1 outputs per input. A Kernel gives one array and the key map reads the old key; Duplicate and Tile
/// give several, and the key map reads the old key followed by the number of the output. `numbers` of the old key are
/// a Kernel's arguments after the array.
struct LocalMap {
  KeyMap key_map;
  std::variant<Kernel, Duplicate, Tile> arrays;
  KeyMap numbers = {};
  bool operator==(const LocalMap&) const = default;
};

using IaOp =
    std::variant<PlacedRelation, LabelPositions, Bcast, Shuf, Repart, LocalJoin, LocalAggregate, LocalFilter, LocalMap>;
using IaId = StrongId<struct IaTag>;

/// One tuple of a physical relation: an index into the chunks of its type, and a site.
struct PlacedChunk {
  std::size_t chunk = 0;
  Site site = 0;
  bool operator==(const PlacedChunk&) const = default;
  auto operator<=>(const PlacedChunk&) const = default;
};

/// What inference knows of a physical relation.
struct PhysicalType {
  RelationType relation;
  Placement placement;
  std::vector<PlacedChunk> tuples;  ///< unless Everywhere; ascending, one per tuple and site that it lies on
  /// The keys are not unique: several tuples of a key, on one site each, still have to be folded with this kernel.
  std::optional<Kernel> partial;
};

inline bool is_everywhere(const PhysicalType& type) { return std::holds_alternative<Everywhere>(type.placement); }

/// What running a node takes.
struct NodeCost {
  /// Floats delivered: Bcast of f floats f * sites, Shuf and Repart f * copies (TRA paper, section 5.3); 0 on one site,
  /// and for a Shuf of what is everywhere.
  double moved = 0;
  /// The paper's count: a key of a partial aggregate counts once, whatever number of sites has a tuple of it.
  double moved_each_key_once = 0;
  std::vector<double> work;    ///< scalar operations on each site, up to the last one that has some of its own
  double work_everywhere = 0;  ///< those that every site does besides
  /// What the busiest site would have, were the kernel calls spread evenly over as many sites as there are calls.
  double even_share = 0;
};

struct IaNode {
  IaOp op;
  std::vector<IaId> inputs;
  PhysicalType type;
  NodeCost cost;
  std::string fault;  ///< why the node cannot run: "" when it can. Then type and cost mean nothing.
};

struct IaOutput {
  std::string name;
  IaId id;
  bool is_kept = false;  ///< where it lies, for another run: where sites have a memory each, every copy goes out
  bool operator==(const IaOutput&) const = default;
};

/// A plan: what it computes, as nodes of the store that made it.
using IaPlan = std::vector<IaOutput>;

/// More tuples than this, each counted on every site that it lies on, are refused in all relations of a store and in
/// one: a fault of the nodes that would exceed it.
constexpr std::size_t most_store_tuples = 8 * most_chunks;

/// All plans over one set of inputs: nodes, each stored once, so that plans share what they have in common, equal plans
/// have equal ids, and every node is inferred once. Append-only, inputs before users.
class IaStore {
 public:
  explicit IaStore(std::int64_t sites) : sites_(sites) {}
  std::int64_t sites() const { return sites_; }
  /// The node, inferred; a node whose input is faulty or that cannot run is kept with its fault.
  IaId add(IaOp op, std::vector<IaId> inputs = {});
  const IaNode& operator[](IaId id) const { return nodes_[id.index]; }
  std::size_t size() const { return nodes_.size(); }
  /// Tuples of all relations inferred so far: what inference has cost.
  std::size_t tuples() const { return tuples_; }

 private:
  std::int64_t sites_;
  std::deque<IaNode> nodes_;  // so that references to nodes stay good
  std::unordered_multimap<std::size_t, std::size_t> by_hash_;
  std::size_t tuples_ = 0;
};

/// A program in the implementation algebra (TRA paper, section 4).
struct IaProgram {
  IaStore store;
  IaPlan plan;
  std::vector<ScalarDeclaration> scalars;
};

/// The kernels that an operation runs.
std::vector<const Kernel*> kernels_of(const IaOp& op);

/// The nodes that a plan needs, inputs before users.
std::vector<IaId> nodes_of(const IaStore& store, const IaPlan& plan);
/// Why the plan cannot run, "" when it can: the fault of a node, an output that is partial.
std::string fault_of(const IaStore& store, const IaPlan& plan);

struct PlanCost {
  double moved = 0;
  double moved_each_key_once = 0;
  double even_share = 0;  ///< what the busiest site would have, were each operation spread evenly
  double work_once = 0;   ///< the work of all sites, what every site does counted once
  double busiest = 0;     ///< the work of the site that has most of it
  double work = 0;        ///< of all sites together
};
/// Summed over the nodes, each counted once however many use it.
PlanCost cost_of(const IaStore& store, const IaPlan& plan);

}  // namespace einrel
