#include "ia/infer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "tra/infer.h"
#include "tra/interpret.h"

namespace einrel {
namespace {

double floats_of(const Chunk& chunk) { return static_cast<double>(element_count(chunk.bound)); }

/// The tuples that an operation makes, in any order; all on sites, or none because every site makes all.
struct NewTuples {
  std::vector<Chunk> chunks;
  std::vector<Key> origins;  ///< the keys that they came from, for messages
  std::vector<Site> sites;

  void add(Key origin, Key key, const Shape& bound, std::optional<Site> site) {
    if (chunks.size() >= most_chunks) throw UserError("it makes too many tuples");
    origins.push_back(std::move(origin));
    chunks.push_back({std::move(key), bound});
    if (site) sites.push_back(*site);
  }
};

/// The type of the relation that holds these tuples, each key once.
PhysicalType gather(NewTuples made, std::size_t arity, std::size_t rank, DType dtype, const Placement& placement) {
  PhysicalType type{{arity, rank, dtype, {}}, placement, {}, std::nullopt};
  type.relation.chunks.reserve(made.chunks.size());
  for (const std::size_t i : order_by_key(made.chunks, made.origins)) {
    if (!made.sites.empty()) type.tuples.push_back({type.relation.chunks.size(), made.sites[i]});
    type.relation.chunks.push_back(std::move(made.chunks[i]));
  }
  return type;
}

bool is_everywhere(const PhysicalType& type) { return std::holds_alternative<Everywhere>(type.placement); }

/// Throws unless the relation is complete.
void refuse_partial(const PhysicalType& type, const char* operation) {
  if (type.partial) {
    throw UserError(fmt::format("{} of partial aggregates, which {} has still to fold", operation, type.partial->name));
  }
}

/// The sites of each chunk: one, unless the relation is everywhere (none) or partial (several).
std::vector<std::vector<Site>> sites_of_chunks(const PhysicalType& type) {
  std::vector<std::vector<Site>> sites(type.relation.chunks.size());
  for (const PlacedChunk& tuple : type.tuples) sites[tuple.chunk].push_back(tuple.site);
  return sites;
}

void check_grid(const KeyPositions& positions, const SiteGrid& grid, const RelationType& type, std::int64_t sites) {
  check_positions(positions, type.key_arity, "the list");
  if (grid.parts.size() != positions.size() || grid.grid.size() != positions.size())
    throw UserError(fmt::format("a site grid over {} has {} entries", to_string(positions), grid.grid.size()));
  std::int64_t used = 1;
  const Key front = frontier(type);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const bool in_range = grid.grid[i] >= 1 && grid.grid[i] <= grid.parts[i] && front[positions[i]] <= grid.parts[i];
    if (!in_range) {
      throw UserError(fmt::format("a site grid {} does not fit position {}, whose values go below {}", to_string(grid),
                                  positions[i], front[positions[i]]));
    }
    used = checked_multiply(used, grid.grid[i]);
  }
  if (used > sites) throw UserError(fmt::format("a site grid {} on {} sites", to_string(grid), sites));
}

/// One copy of every chunk, on the site of its key.
std::vector<PlacedChunk> placed(const RelationType& type, const KeyPositions& positions, const SiteGrid& grid) {
  std::vector<PlacedChunk> tuples;
  for (std::size_t c = 0; c < type.chunks.size(); ++c)
    tuples.push_back({c, site_of(grid, project(type.chunks[c].key, positions))});
  return tuples;
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
    node_.type = {relation, Partitioned{op.positions, op.grid}, placed(relation, op.positions, op.grid), in().partial};
    node_.cost.moved_each_key_once = static_cast<double>(float_count(relation));
    node_.cost.moved = node_.cost.moved_each_key_once;
    if (!in().partial) return;
    node_.cost.moved = 0;
    for (PlacedChunk& tuple : node_.type.tuples = in().tuples) {
      const Chunk& chunk = relation.chunks[tuple.chunk];
      tuple.site = site_of(op.grid, project(chunk.key, op.positions));
      node_.cost.moved += floats_of(chunk);
    }
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
  Placement joined_placement(const LocalJoin& op) const;
  std::optional<Site> common_site(std::size_t l, std::size_t r, const std::vector<std::vector<Site>>& left,
                                  const std::vector<std::vector<Site>>& right) const;
  void concatenate_groups(const ConcatArrays& concat, const KeyPositions& group_by);
  void fold_groups(const Kernel& kernel, const LocalAggregate& op);
  void finalise(const Kernel& finaliser);
  /// Counts one call of the kernel per tuple.
  void work_on_each(const Kernel& kernel, const PhysicalType& type);

  IaNode& node_;
  const std::vector<const IaNode*>& inputs_;
  std::int64_t sites_;
  double work_ = 0;  ///< of all kernel calls, those that every site makes counted once
  double calls_ = 0;
};

Placement Inference::joined_placement(const LocalJoin& op) const {
  const PhysicalType& left = in(0);
  const PhysicalType& right = in(1);
  if (is_everywhere(left) && is_everywhere(right)) return Everywhere{};
  Placement result = Scattered{};
  if (!is_everywhere(left)) result = mapped(left.placement, op.key_map);
  const auto* part = std::get_if<Partitioned>(&right.placement);
  if (std::holds_alternative<Scattered>(result) && part != nullptr) {
    const KeyPositions positions = joined_positions_of_right(part->positions, left.relation.key_arity,
                                                             right.relation.key_arity, op.keys_left, op.keys_right);
    result = mapped(Partitioned{positions, part->grid}, op.key_map);
  }
  return result;
}

std::optional<Site> Inference::common_site(std::size_t l, std::size_t r, const std::vector<std::vector<Site>>& left,
                                           const std::vector<std::vector<Site>>& right) const {
  if (left[l].empty()) return right[r].empty() ? std::nullopt : std::optional(right[r].front());
  if (!right[r].empty() && right[r] != left[l]) {
    throw UserError(fmt::format("the tuple {} of the left relation lies on site {}, its partner {} on site {}",
                                to_string(in(0).relation.chunks[l].key), left[l].front(),
                                to_string(in(1).relation.chunks[r].key), right[r].front()));
  }
  return left[l].front();
}

void Inference::operator()(const LocalJoin& op) {
  const RelationType& left = in(0).relation;
  const RelationType& right = in(1).relation;
  refuse_partial(in(0), "a join");
  refuse_partial(in(1), "a join");
  check_join_positions(op.keys_left, op.keys_right, left, right);
  check_argument_types(op.kernel, {left.dtype, right.dtype});
  const auto left_sites = sites_of_chunks(in(0));
  const auto right_sites = sites_of_chunks(in(1));
  const std::size_t joined_arity = left.key_arity + right.key_arity - op.keys_left.size();
  const bool keeps_key = is_identity(op.key_map, joined_arity);
  KernelCalls calls(op.kernel);
  NewTuples made;
  for_each_match(left, op.keys_left, right, op.keys_right, [&](std::size_t l, std::size_t r) {
    const std::optional<Site> site = common_site(l, r, left_sites, right_sites);
    const KernelCalls::Call& call = calls({left.chunks[l].bound, right.chunks[r].bound});
    work_at(site, call.flops);
    Key key = joined_key(left.chunks[l].key, right.chunks[r].key, op.keys_right);
    Key mapped_key = keeps_key ? key : evaluate(op.key_map, key);
    made.add(std::move(key), std::move(mapped_key), call.bound, site);
  });
  const std::size_t rank = made.chunks.empty() ? 0 : made.chunks.front().bound.size();
  node_.type = gather(std::move(made), op.key_map.outputs.size(), rank, result_dtype(op.kernel), joined_placement(op));
}

/// What the arrays of a map become, under the old keys, numbered where there are several outputs per input.
struct MapOutputs {
  RelationType relation;             ///< its chunks in the order of their inputs
  std::vector<std::size_t> sources;  ///< the input chunk of each
};

MapOutputs outputs_of(const LocalMap& op, const RelationType& in) {
  if (const auto* kernel = std::get_if<Kernel>(&op.arrays)) {
    MapOutputs outputs{infer_transform(*kernel, in), {}};
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
  const auto sites = sites_of_chunks(type);
  NewTuples made;
  std::map<Key, std::size_t> source_of_key;
  for (std::size_t i = 0; i < outputs.sources.size(); ++i) {
    const Chunk& chunk = outputs.relation.chunks[i];
    const std::vector<Site>& at = sites[outputs.sources[i]];
    Key key = evaluate(op.key_map, chunk.key);
    if (type.partial) source_of_key[key] = outputs.sources[i];
    made.add(chunk.key, std::move(key), chunk.bound, at.empty() ? std::nullopt : std::optional(at.front()));
  }
  node_.type = gather(std::move(made), op.key_map.outputs.size(), outputs.relation.rank, outputs.relation.dtype,
                      mapped(type.placement, op.key_map));
  node_.type.partial = type.partial;
  if (type.partial) {
    node_.type.tuples.clear();
    std::size_t chunk = 0;
    for (const auto& [key, source] : source_of_key) {
      for (const Site site : sites[source]) node_.type.tuples.push_back({chunk, site});
      ++chunk;
    }
  }
  if (kernel != nullptr) work_on_each(*kernel, type);
}

void Inference::concatenate_groups(const ConcatArrays& concat, const KeyPositions& group_by) {
  refuse_partial(in(), "a concat");
  const RelationType& relation = in().relation;
  invariant(group_by == complement({concat.key_position}, relation.key_arity),
            "a concat groups by the other positions");
  node_.type.relation = infer_concat({concat.key_position, concat.array_dim}, relation);
  std::map<Key, Site> site_of_group;
  for (const PlacedChunk& tuple : in().tuples) {
    const Key& key = relation.chunks[tuple.chunk].key;
    const auto [group, is_new] = site_of_group.emplace(project(key, group_by), tuple.site);
    if (!is_new && group->second != tuple.site) {
      throw UserError(fmt::format("the tuples to concatenate to {} lie on sites {} and {}", to_string(group->first),
                                  group->second, tuple.site));
    }
  }
  std::size_t chunk = 0;
  for (const auto& [key, site] : site_of_group) node_.type.tuples.push_back({chunk++, site});
}

void Inference::fold_groups(const Kernel& kernel, const LocalAggregate& op) {
  const PhysicalType& type = in();
  if (type.partial && *type.partial != kernel) refuse_partial(type, "another fold");
  const RelationType& relation = type.relation;
  node_.type.relation = infer_aggregate(op.group_by, kernel, relation);
  KernelCalls calls(kernel);
  std::map<Key, std::vector<Site>> sites_of_group;  // ascending, each site once
  const auto fold = [&](const Chunk& chunk, std::optional<Site> site) {
    std::vector<Site>& sites = sites_of_group[project(chunk.key, op.group_by)];
    const Site at = site.value_or(0);
    const auto place = std::lower_bound(sites.begin(), sites.end(), at);
    if (place != sites.end() && *place == at) {
      work_at(site, calls({chunk.bound, chunk.bound}).flops);
    } else {
      sites.insert(place, at);
    }
  };
  if (is_everywhere(type)) {
    for (const Chunk& chunk : relation.chunks) fold(chunk, std::nullopt);
    return;
  }
  for (const PlacedChunk& tuple : type.tuples) fold(relation.chunks[tuple.chunk], tuple.site);
  std::size_t chunk = 0;
  for (const auto& [key, sites] : sites_of_group) {
    for (const Site site : sites) node_.type.tuples.push_back({chunk, site});
    ++chunk;
  }
  if (node_.type.tuples.size() > node_.type.relation.chunks.size()) node_.type.partial = kernel;
}

void Inference::work_on_each(const Kernel& kernel, const PhysicalType& type) {
  KernelCalls calls(kernel);
  if (is_everywhere(type)) {
    for (const Chunk& chunk : type.relation.chunks) work_at(std::nullopt, calls({chunk.bound}).flops);
  }
  for (const PlacedChunk& tuple : type.tuples)
    work_at(tuple.site, calls({type.relation.chunks[tuple.chunk].bound}).flops);
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

KeyPositions joined_positions_of_right(const KeyPositions& positions, std::size_t left_arity, std::size_t right_arity,
                                       const KeyPositions& keys_left, const KeyPositions& keys_right) {
  const KeyPositions free = complement(keys_right, right_arity);
  KeyPositions result;
  for (const std::size_t position : positions) {
    const auto joined = std::find(keys_right.begin(), keys_right.end(), position);
    if (joined != keys_right.end()) {
      result.push_back(keys_left[static_cast<std::size_t>(joined - keys_right.begin())]);
    } else {
      const auto at = std::find(free.begin(), free.end(), position);
      result.push_back(left_arity + static_cast<std::size_t>(at - free.begin()));
    }
  }
  return result;
}

Placement mapped(const Placement& placement, const KeyMap& map) {
  const auto* part = std::get_if<Partitioned>(&placement);
  if (part == nullptr) return placement;
  Partitioned result{{}, part->grid};
  for (const std::size_t position : part->positions) {
    const auto copy = std::find_if(map.outputs.begin(), map.outputs.end(),
                                   [&](const KeyExpr& output) { return copied_position(output) == position; });
    if (copy == map.outputs.end()) return Scattered{};
    result.positions.push_back(static_cast<std::size_t>(copy - map.outputs.begin()));
  }
  return result;
}

void infer_node(IaNode& node, const std::vector<const IaNode*>& inputs, std::int64_t sites) {
  std::visit(Inference(node, inputs, sites), node.op);
  if (sites == 1) node.cost.moved = node.cost.moved_each_key_once = 0;  // there is nowhere to move to
}

}  // namespace einrel
