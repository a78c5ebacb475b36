#include "ia/infer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/error.h"
#include "tra/infer.h"
#include "tra/interpret.h"
#include "tra/repartition.h"

namespace einrel {
namespace {

double floats_of(const Chunk& chunk) { return static_cast<double>(element_count(chunk.bound)); }

/// The tuples that an operation makes, in any order; all on sites, or none because every site makes all.
class NewTuples {
 public:
  void add(Key origin, Key key, const Shape& bound, const std::vector<Site>& sites) {
    if (chunks_.size() >= most_chunks || sites_.size() + sites.size() > most_store_tuples)
      throw UserError("it makes too many tuples");
    origins_.push_back(std::move(origin));
    chunks_.push_back({std::move(key), bound});
    sites_.insert(sites_.end(), sites.begin(), sites.end());
    ends_.push_back(sites_.size());
  }
  std::size_t rank() const { return chunks_.empty() ? 0 : chunks_.front().bound.size(); }

  /// The type of the relation that holds them, each key once.
  PhysicalType gather(std::size_t arity, std::size_t rank, DType dtype, const Placement& placement) && {
    PhysicalType type{{arity, rank, dtype, {}}, placement, {}, std::nullopt};
    type.relation.chunks.reserve(chunks_.size());
    type.tuples.reserve(sites_.size());
    for (const std::size_t i : order_by_key(chunks_, origins_)) {
      for (std::size_t s = i == 0 ? 0 : ends_[i - 1]; s < ends_[i]; ++s)
        type.tuples.push_back({type.relation.chunks.size(), sites_[s]});
      type.relation.chunks.push_back(std::move(chunks_[i]));
    }
    return type;
  }

 private:
  std::vector<Chunk> chunks_;
  std::vector<Key> origins_;  ///< the keys that they came from, for messages
  std::vector<Site> sites_;
  std::vector<std::size_t> ends_;  ///< per tuple, where its sites end
};

/// Throws unless the relation is complete.
void refuse_partial(const PhysicalType& type, const char* operation) {
  if (type.partial) {
    throw UserError(fmt::format("{} of partial aggregates, which {} has still to fold", operation, type.partial->name));
  }
}

/// "site 3", "sites 0, 2"
std::string sites_text(const std::vector<Site>& sites) {
  return fmt::format("site{} {}", sites.size() == 1 ? "" : "s", fmt::join(sites, ", "));
}

void check_grid(const KeyPositions& positions, const SiteGrid& grid, const RelationType& type, std::int64_t sites) {
  check_positions(positions, type.key_arity, "the list");
  if (grid.parts.size() != positions.size() || grid.grid.size() != positions.size())
    throw UserError(fmt::format("a site grid over {} has {} entries", to_string(positions), grid.grid.size()));
  const Key front = frontier(type);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool in_range = grid.grid[i] >= 1 && grid.grid[i] <= grid.parts[i] && front[positions[i]] <= grid.parts[i];
    if (!in_range) {
      throw UserError(fmt::format("a site grid {} does not fit position {}, whose values go below {}", to_string(grid),
                                  positions[i], front[positions[i]]));
    }
  }
  check_digits(grid, sites);
}

/// Every chunk on the sites of its key.
std::vector<PlacedChunk> placed(const RelationType& type, const KeyPositions& positions, const SiteGrid& grid) {
  const auto count = static_cast<std::int64_t>(type.chunks.size());
  if (checked_multiply(count, copies_of(grid)) > static_cast<std::int64_t>(most_store_tuples))
    throw UserError("it makes too many tuples");
  std::vector<PlacedChunk> tuples;
  for (std::size_t c = 0; c < type.chunks.size(); ++c) {
    for (const Site site : sites_of(grid, project(type.chunks[c].key, positions))) tuples.push_back({c, site});
  }
  return tuples;
}

/// Throws unless the pieces that a Repart delivers are few enough to be looked at one by one.
void check_pieces(const Repart& op, const Shape& bound) {
  std::int64_t count = copies_of(op.grid);
  for (std::size_t d = 0; d < bound.size(); ++d) {
    std::int64_t here = 0;
    for (const auto& pieces : pieces_of(bound[d], op.from[d], op.to[d])) here += std::ssize(pieces);
    count = checked_multiply(count, here);
  }
  if (count > static_cast<std::int64_t>(most_store_tuples))
    throw UserError(fmt::format("it moves {} pieces; at most {} are moved at a time", count, most_store_tuples));
}

/// Where pairs lie whose left and right tuples do, both by positions of the joined key.
Placement placement_of_pairs(const Placement& left, const Placement& right, const KeyMap& key_map) {
  const bool left_is_everywhere = std::holds_alternative<Everywhere>(left);
  const bool right_is_everywhere = std::holds_alternative<Everywhere>(right);
  if (left_is_everywhere && right_is_everywhere) return Everywhere{};
  const auto has_copies = [](const Partitioned& part) { return copies_of(part.grid) > 1; };
  const auto* of_left = std::get_if<Partitioned>(&left);
  const auto* of_right = std::get_if<Partitioned>(&right);
  // Each says where the pairs are: a side whose tuples have one site, a side whose partners are everywhere, both sides.
  std::vector<Placement> candidates;
  if (of_left != nullptr && (right_is_everywhere || !has_copies(*of_left))) candidates.emplace_back(*of_left);
  if (of_right != nullptr && (left_is_everywhere || !has_copies(*of_right))) candidates.emplace_back(*of_right);
  if (of_left != nullptr && of_right != nullptr) candidates.push_back(meeting(*of_left, *of_right));
  for (const Placement& candidate : candidates) {
    Placement result = mapped(candidate, key_map);
    if (!std::holds_alternative<Scattered>(result)) return result;
  }
  return Scattered{};
}

class Inference {
 public:
  Inference(IaNode& node, const std::vector<const IaNode*>& inputs, std::int64_t sites)
      : node_(node), inputs_(inputs), sites_(sites) {}

  void operator()(const PlacedRelation& op) {
    node_.type.relation = relation_type(op.stored.dtype, op.stored.bound, op.stored.cut);
    node_.type.placement = op.placement;
    if (std::holds_alternative<Scattered>(op.placement)) throw UserError("an input lies everywhere, or spread by keys");
    if (const auto* part = std::get_if<Partitioned>(&op.placement)) {
      check_grid(part->positions, part->grid, node_.type.relation, sites_);
      node_.type.tuples = placed(node_.type.relation, part->positions, part->grid);
    }
  }

  void operator()(const LabelPositions& op) {
    node_.type.relation = infer_positions(op);
    node_.type.placement = Everywhere{};
  }

  void operator()(const Bcast&) {
    refuse_partial(in(), "a broadcast");
    node_.type = {in().relation, Everywhere{}, {}, std::nullopt};
    node_.cost.moved_each_key_once = static_cast<double>(float_count(in().relation)) * static_cast<double>(sites_);
    node_.cost.moved = node_.cost.moved_each_key_once;
  }

  void operator()(const Shuf& op) {
    const RelationType& relation = in().relation;
    check_grid(op.positions, op.grid, relation, sites_);
    const std::int64_t copies = copies_of(op.grid);
    if (copies > 1) refuse_partial(in(), "a shuffle to several sites");
    node_.type = {relation, Partitioned{op.positions, op.grid}, placed(relation, op.positions, op.grid), in().partial};
    node_.cost.moved_each_key_once = static_cast<double>(float_count(relation)) * static_cast<double>(copies);
    if (is_everywhere(in())) node_.cost.moved_each_key_once = 0;  // it is there already
    node_.cost.moved = node_.cost.moved_each_key_once;
    if (!in().partial) return;
    node_.cost.moved = 0;
    for (PlacedChunk& tuple : node_.type.tuples = in().tuples) {
      const Chunk& chunk = relation.chunks[tuple.chunk];
      tuple.site = site_of(op.grid, project(chunk.key, op.positions));
      node_.cost.moved += floats_of(chunk);
    }
  }

  void operator()(const Repart& op) {
    refuse_partial(in(), "a repartition");
    RelationType relation = infer_repartition({op.from, op.to}, in().relation);
    const KeyPositions positions = all_positions(relation.key_arity);
    check_grid(positions, op.grid, relation, sites_);
    const Shape bound = tensor_bound(in().relation);
    check_pieces(op, bound);
    const auto copies = static_cast<double>(copies_of(op.grid));
    node_.cost.moved_each_key_once = static_cast<double>(elements_in_chunks(bound, op.to)) * copies;
    node_.cost.moved = node_.cost.moved_each_key_once;
    std::vector<PlacedChunk> tuples = placed(relation, positions, op.grid);
    node_.type = {std::move(relation), Partitioned{positions, op.grid}, std::move(tuples), std::nullopt};
  }

  void operator()(const LocalFilter& op) {
    node_.type = {infer_filter(op.predicate, in().relation), in().placement, {}, in().partial};
    for (const PlacedChunk& tuple : in().tuples) {
      const Key& key = in().relation.chunks[tuple.chunk].key;
      if (const Chunk* kept = find_chunk(node_.type.relation, key))
        node_.type.tuples.push_back({static_cast<std::size_t>(kept - node_.type.relation.chunks.data()), tuple.site});
    }
  }

  void operator()(const LocalJoin& op);
  void operator()(const LocalAggregate& op);
  void operator()(const LocalMap& op);

 private:
  const PhysicalType& in(std::size_t i = 0) const { return inputs_[i]->type; }
  void work_at(std::optional<Site> site, double flops) {
    work_ += flops;
    ++calls_;
    node_.cost.even_share = work_ / std::min(static_cast<double>(sites_), calls_);
    if (!site) {
      node_.cost.work_everywhere += flops;
      return;
    }
    const auto at = static_cast<std::size_t>(*site);
    if (at >= node_.cost.work.size()) node_.cost.work.resize(at + 1, 0);
    node_.cost.work[at] += flops;
  }
  /// The same work on each of these sites; on every site if there are none.
  void work_on(const std::vector<Site>& sites, double flops) {
    if (sites.empty()) work_at(std::nullopt, flops);
    for (const Site site : sites) work_at(site, flops);
  }
  Placement joined_placement(const LocalJoin& op, const std::vector<JoinedRelation>& joined) const;
  /// The sites that all tuples which meet have in common.
  std::vector<Site> common_sites(const std::vector<std::size_t>& members, const std::vector<SiteLists>& lists) const;
  /// Whether some group of a complete relation lies on several sites, so that each folds a part. Throws when tuples
  /// with copies are among those of such groups, or beside them.
  bool folds_leave_parts(const KeyPositions& group_by, const SiteLists& sites) const;
  void place_groups(const std::map<Key, std::vector<Site>>& sites_of_group);
  void concatenate_groups(const ConcatArrays& concat, const KeyPositions& group_by);
  void fold_groups(const Kernel& kernel, const LocalAggregate& op);
  void finalise(const Kernel& finaliser);
  /// Counts one call of the kernel per tuple.
  void work_on_each(const Kernel& kernel, const PhysicalType& type, const KeyMap& numbers = {});

  IaNode& node_;
  const std::vector<const IaNode*>& inputs_;
  std::int64_t sites_;
  double work_ = 0;  ///< of all kernel calls, those that every site makes counted once
  double calls_ = 0;
};

Placement Inference::joined_placement(const LocalJoin& op, const std::vector<JoinedRelation>& joined) const {
  Placement left = in().placement;
  std::size_t arity = in().relation.key_arity;
  for (std::size_t i = 1; i < inputs_.size(); ++i) {
    const PhysicalType& right = in(i);
    arity += right.relation.key_arity - joined[i].right.size();
    Placement of_right = right.placement;
    if (auto* const part = std::get_if<Partitioned>(&of_right)) {
      for (std::size_t& position : part->positions) position = joined[i].places[position];
    }
    left = placement_of_pairs(left, of_right, i + 1 == inputs_.size() ? op.key_map : identity_map(arity));
  }
  return left;
}

std::vector<Site> Inference::common_sites(const std::vector<std::size_t>& members,
                                          const std::vector<SiteLists>& lists) const {
  std::vector<Site> common = lists.front()[members.front()];  // none: all sites
  for (std::size_t i = 1; i < members.size(); ++i) {
    const std::vector<Site>& own = lists[i][members[i]];
    if (own.empty()) continue;
    std::vector<Site> both;
    std::set_intersection(common.begin(), common.end(), own.begin(), own.end(), std::back_inserter(both));
    if (!common.empty() && both.empty()) {
      throw UserError(fmt::format("the tuple {} of the left relation lies on {}, its partner {} on {}",
                                  to_string(in().relation.chunks[members.front()].key), sites_text(common),
                                  to_string(in(i).relation.chunks[members[i]].key), sites_text(own)));
    }
    common = common.empty() ? own : both;
  }
  return common;
}

void Inference::operator()(const LocalJoin& op) {
  std::vector<const RelationType*> relations;
  std::vector<SiteLists> lists;
  for (const IaNode* const input : inputs_) {
    refuse_partial(input->type, "a join");
    relations.push_back(&input->type.relation);
    lists.push_back(sites_of_chunks(input->type));
  }
  const JoinInputs inputs = join_inputs(op.keys_left, op.keys_right, relations);
  check_argument_types(op.kernel, inputs.dtypes, op.numbers);
  const bool keeps_key = is_identity(op.key_map, inputs.arity);
  KernelCalls calls(op.kernel);
  NewTuples made;
  for_each_match(inputs.keys, inputs.joined, [&](const std::vector<std::size_t>& members, const Key& key) {
    const std::vector<Site> sites = common_sites(members, lists);
    std::vector<Shape> bounds;
    for (std::size_t i = 0; i < members.size(); ++i) bounds.push_back(relations[i]->chunks[members[i]].bound);
    const KernelCalls::Call& call = calls(with_numbers(std::move(bounds), op.numbers));
    work_on(sites, call.flops);
    numbers_of(key, op.numbers);
    made.add(key, keeps_key ? key : evaluate(op.key_map, key), call.bound, sites);
  });
  const std::size_t rank = made.rank();
  node_.type = std::move(made).gather(op.key_map.outputs.size(), rank, result_dtype(op.kernel),
                                      joined_placement(op, inputs.joined));
}

/// What the arrays of a map become, under the old keys, numbered where there are several outputs per input.
struct MapOutputs {
  RelationType relation;             ///< its chunks in the order of their inputs
  std::vector<std::size_t> sources;  ///< the input chunk of each
};

MapOutputs outputs_of(const LocalMap& op, const RelationType& in) {
  if (const auto* kernel = std::get_if<Kernel>(&op.arrays)) {
    MapOutputs outputs{infer_transform(*kernel, in, op.numbers), {}};
    outputs.sources = all_positions(in.chunks.size());
    return outputs;
  }
  const auto* tile = std::get_if<Tile>(&op.arrays);
  MapOutputs outputs;
  if (tile != nullptr) {
    outputs.relation = infer_tile(*tile, in);
  } else {
    outputs.relation = {in.key_arity + 1, in.rank, in.dtype, {}};
  }
  for (std::size_t c = 0; c < in.chunks.size(); ++c) {
    const Chunk& chunk = in.chunks[c];
    const std::int64_t count =
        tile != nullptr ? tile_count(chunk.bound[tile->dim], *tile) : std::get<Duplicate>(op.arrays).count;
    if (count < 1 || count > static_cast<std::int64_t>(most_chunks - outputs.sources.size()))
      throw UserError(fmt::format("a map makes at least one tuple of each and at most {} in all", most_chunks));
    outputs.sources.insert(outputs.sources.end(), static_cast<std::size_t>(count), c);
    for (std::int64_t number = 0; number < count && tile == nullptr; ++number) {
      outputs.relation.chunks.push_back(chunk);
      outputs.relation.chunks.back().key.push_back(number);
    }
  }
  return outputs;
}

void Inference::operator()(const LocalMap& op) {
  const PhysicalType& type = in();
  const auto* kernel = std::get_if<Kernel>(&op.arrays);
  if (kernel == nullptr || !is_identity(*kernel)) refuse_partial(type, "a map");
  const MapOutputs outputs = outputs_of(op, type.relation);
  const SiteLists sites = sites_of_chunks(type);
  NewTuples made;
  for (std::size_t i = 0; i < outputs.sources.size(); ++i) {
    const Chunk& chunk = outputs.relation.chunks[i];
    made.add(chunk.key, evaluate(op.key_map, chunk.key), chunk.bound, sites[outputs.sources[i]]);
  }
  node_.type = std::move(made).gather(op.key_map.outputs.size(), outputs.relation.rank, outputs.relation.dtype,
                                      mapped(type.placement, op.key_map));
  node_.type.partial = type.partial;
  if (kernel != nullptr) work_on_each(*kernel, type, op.numbers);
}

void Inference::concatenate_groups(const ConcatArrays& concat, const KeyPositions& group_by) {
  refuse_partial(in(), "a concat");
  const RelationType& relation = in().relation;
  invariant(group_by == complement({concat.key_position}, relation.key_arity),
            "a concat groups by the other positions");
  node_.type.relation = infer_concat({concat.key_position, concat.array_dim}, relation);
  if (is_everywhere(in())) return;
  const SiteLists sites = sites_of_chunks(in());
  std::map<Key, std::vector<Site>> sites_of_group;
  for (std::size_t c = 0; c < sites.size(); ++c) {
    const auto [group, is_new] = sites_of_group.emplace(project(relation.chunks[c].key, group_by), sites[c]);
    if (!is_new && group->second != sites[c]) {
      throw UserError(fmt::format("the tuples to concatenate to {} lie on {} and on {}", to_string(group->first),
                                  sites_text(group->second), sites_text(sites[c])));
    }
  }
  place_groups(sites_of_group);
}

void Inference::place_groups(const std::map<Key, std::vector<Site>>& sites_of_group) {
  std::size_t chunk = 0;
  for (const auto& [key, sites] : sites_of_group) {
    for (const Site site : sites) node_.type.tuples.push_back({chunk, site});
    ++chunk;
  }
}

bool Inference::folds_leave_parts(const KeyPositions& group_by, const SiteLists& sites) const {
  struct Group {
    std::size_t first = 0;  ///< the first tuple
    bool is_apart = false;  ///< others lie on other sites
  };
  const std::vector<Chunk>& chunks = in().relation.chunks;
  std::map<Key, Group> groups;
  for (std::size_t c = 0; c < sites.size(); ++c) {
    const auto [at, is_new] = groups.emplace(project(chunks[c].key, group_by), Group{c, false});
    Group& group = at->second;
    if (sites[c] == sites[group.first]) continue;
    group.is_apart = true;
    if (sites[c].size() > 1 || sites[group.first].size() > 1) {
      throw UserError(fmt::format("folds of the group {} would count tuples twice: {} lies on {}, {} on {}",
                                  to_string(at->first), to_string(chunks[group.first].key),
                                  sites_text(sites[group.first]), to_string(chunks[c].key), sites_text(sites[c])));
    }
  }
  const auto apart =
      std::find_if(groups.begin(), groups.end(), [](const auto& group) { return group.second.is_apart; });
  const auto copied = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return sites[group.second.first].size() > 1; });
  if (apart != groups.end() && copied != groups.end()) {
    throw UserError(
        fmt::format("later folds would count tuples twice: the group {} is whole on {}, of {} each has a part",
                    to_string(copied->first), sites_text(sites[copied->second.first]), to_string(apart->first)));
  }
  return apart != groups.end();
}

void Inference::fold_groups(const Kernel& kernel, const LocalAggregate& op) {
  const PhysicalType& type = in();
  if (type.partial && *type.partial != kernel) refuse_partial(type, "another fold");
  const RelationType& relation = type.relation;
  node_.type.relation = infer_aggregate(op.group_by, kernel, relation);
  const SiteLists sites = sites_of_chunks(type);
  const bool leaves_parts = !type.partial && !is_everywhere(type) && folds_leave_parts(op.group_by, sites);
  KernelCalls calls(kernel);
  std::map<Key, std::vector<Site>> sites_of_group;  // ascending, each site once
  const auto fold = [&](const Chunk& chunk, std::optional<Site> site) {
    std::vector<Site>& seen = sites_of_group[project(chunk.key, op.group_by)];
    const Site at = site.value_or(0);
    const auto place = std::lower_bound(seen.begin(), seen.end(), at);
    if (place != seen.end() && *place == at) {
      work_at(site, calls({chunk.bound, chunk.bound}).flops);
    } else {
      seen.insert(place, at);
    }
  };
  if (is_everywhere(type)) {
    for (const Chunk& chunk : relation.chunks) fold(chunk, std::nullopt);
    return;
  }
  for (const PlacedChunk& tuple : type.tuples) fold(relation.chunks[tuple.chunk], tuple.site);
  place_groups(sites_of_group);
  const bool still_partial = type.partial && node_.type.tuples.size() > node_.type.relation.chunks.size();
  if (leaves_parts || still_partial) node_.type.partial = kernel;
}

void Inference::work_on_each(const Kernel& kernel, const PhysicalType& type, const KeyMap& numbers) {
  KernelCalls calls(kernel);
  const auto flops_on = [&](const Chunk& chunk) { return calls(with_numbers({chunk.bound}, numbers)).flops; };
  if (is_everywhere(type)) {
    for (const Chunk& chunk : type.relation.chunks) work_at(std::nullopt, flops_on(chunk));
  }
  for (const PlacedChunk& tuple : type.tuples) work_at(tuple.site, flops_on(type.relation.chunks[tuple.chunk]));
}

void Inference::finalise(const Kernel& finaliser) {
  refuse_partial(node_.type, "the finaliser");
  work_on_each(finaliser, node_.type);
  node_.type.relation = infer_transform(finaliser, node_.type.relation);
}

void Inference::operator()(const LocalAggregate& op) {
  check_positions(op.group_by, in().relation.key_arity, "the list");
  if (const auto* concat = std::get_if<ConcatArrays>(&op.fold)) {
    concatenate_groups(*concat, op.group_by);
  } else {
    fold_groups(std::get<Kernel>(op.fold), op);
  }
  node_.type.placement = mapped(in().placement, projection_map(op.group_by));
  if (op.finaliser) finalise(*op.finaliser);
}

}  // namespace

SiteLists sites_of_chunks(const PhysicalType& type) {
  SiteLists sites(type.relation.chunks.size());
  for (const PlacedChunk& tuple : type.tuples) sites[tuple.chunk].push_back(tuple.site);
  return sites;
}

Placement mapped(const Placement& placement, const KeyMap& map) {
  const auto* part = std::get_if<Partitioned>(&placement);
  if (part == nullptr) return placement;
  Partitioned result{{}, {{}, {}, {}, part->grid.copies}};
  for (std::size_t i = 0; i < part->positions.size(); ++i) {
    const auto copy = std::find_if(map.outputs.begin(), map.outputs.end(), [&](const KeyExpr& output) {
      return copied_position(output) == part->positions[i];
    });
    if (copy == map.outputs.end() && part->grid.grid[i] == 1) continue;  // it spreads nothing
    if (copy == map.outputs.end()) return Scattered{};
    result.positions.push_back(static_cast<std::size_t>(copy - map.outputs.begin()));
    result.grid.parts.push_back(part->grid.parts[i]);
    result.grid.grid.push_back(part->grid.grid[i]);
    result.grid.strides.push_back(part->grid.strides[i]);
  }
  return result;
}

void infer_node(IaNode& node, const std::vector<const IaNode*>& inputs, std::int64_t sites) {
  std::visit(Inference(node, inputs, sites), node.op);
  if (sites == 1) node.cost.moved = node.cost.moved_each_key_once = 0;  // there is nowhere to move to
}

}  // namespace einrel
