// Rules about broadcasts and shuffles (Table 2, R2), and those that follow from what Part_D means (R2-8).

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ia/infer.h"
#include "ia/rules/conditions.h"
#include "ia/rules/tables.h"

namespace einrel::rules {
namespace {

constexpr std::string_view from_definition = "follows from the definition of All and Part_D, TRA paper, section 4";

/// Bcast/Shuf over Bcast/Shuf X = the outer one over X.
std::vector<IaId> outer_only(IaStore& store, const Match& match) {
  return one(store.add(IaOp(store[match.nodes[0]].op), match.relations));
}

/// The two operations of the pattern in the other order.
std::vector<IaId> swapped(IaStore& store, const Match& match) {
  const IaId inner = store.add(IaOp(store[match.nodes[0]].op), match.relations);
  return one(store.add(IaOp(store[match.nodes[1]].op), {inner}));
}

/// "" when the tuples of `type` that agree on `positions` share a site.
std::string not_together(const PhysicalType& type, const KeyPositions& positions) {
  if (type.partial) return "the relation holds partial aggregates";
  std::map<Key, PlacedChunk> first;
  for (const PlacedChunk& tuple : type.tuples) {
    const Key& key = type.relation.chunks[tuple.chunk].key;
    const auto [held, is_new] = first.emplace(project(key, positions), tuple);
    if (!is_new && held->second.site != tuple.site) {
      return "the tuples " + to_string(type.relation.chunks[held->second.chunk].key) + " and " + to_string(key) +
             " agree on " + to_string(positions) + ", but lie on sites " + std::to_string(held->second.site) + " and " +
             std::to_string(tuple.site);
    }
  }
  return "";
}

/// The grid with room for every value of the relation at its positions.
Shuf widened(Shuf shuffle, const RelationType& relation) {
  const Key front = frontier(relation);
  for (std::size_t i = 0; i < shuffle.positions.size(); ++i)
    shuffle.grid.parts[i] = std::max(shuffle.grid.parts[i], front[shuffle.positions[i]]);
  return shuffle;
}

/// Shuf over Filter in the other order; what is filtered later may have larger keys.
std::vector<IaId> shuffle_below_filter(IaStore& store, const Match& match) {
  const IaId shuffled = store.add(widened(match.op<Shuf>(0), match.relation(0).relation), match.relations);
  return one(store.add(match.op<LocalFilter>(1), {shuffled}));
}

// Agg g (Shuf D X) = Agg g X

std::string groups_are_not_together(const Match& match) {
  return not_together(match.relation(0), match.op<LocalAggregate>(0).group_by);
}

std::vector<IaId> aggregate_in_place(IaStore& store, const Match& match) {
  return one(store.add(match.op<LocalAggregate>(0), match.relations));
}

// Agg g (Shuf D X) = Agg g (Shuf D' X), D' one position of g

/// Shuffles on one group-by key with several values, other than the one that is there.
std::vector<Shuf> other_shuffles(const Match& match) {
  const Key front = frontier(match.relation(0).relation);
  std::vector<Shuf> shuffles;
  for (const std::size_t position : match.op<LocalAggregate>(0).group_by) {
    const Shuf shuffle{{position}, spread({front[position]}, match.store.sites())};
    if (front[position] > 1 && shuffle != match.op<Shuf>(1)) shuffles.push_back(shuffle);
  }
  return shuffles;
}

std::string nothing_else_to_shuffle_on(const Match& match) {
  return other_shuffles(match).empty() ? "there is none here" : "";
}

std::vector<IaId> shuffle_on_one_position(IaStore& store, const Match& match) {
  std::vector<IaId> alternatives;
  for (const Shuf& shuffle : other_shuffles(match))
    alternatives.push_back(store.add(match.op<LocalAggregate>(0), {store.add(shuffle, match.relations)}));
  return alternatives;
}

// Agg g (Shuf D X) = Agg (Shuf D (Agg g X))

std::string shuffles_other_positions(const Match& match) {
  const KeyPositions& positions = match.op<Shuf>(1).positions;
  const KeyPositions& group_by = match.op<LocalAggregate>(0).group_by;
  return is_subset(positions, group_by) ? "" : to_string(positions) + " is not part of " + to_string(group_by);
}

/// A group of which some sites have all and some a part could not be folded.
std::string has_copies(const Match& match) {
  const PhysicalType& type = match.relation(0);
  const bool copied = !type.partial && type.tuples.size() > type.relation.chunks.size();
  return copied ? "some have copies, it is " + to_string(type.placement) : "";
}

std::string groups_are_folded_on_sites(const Match& match) {
  if (match.relation(0).partial) return "the relation holds partial aggregates already";
  return groups_are_not_together(match).empty() ? "each group is on one site" : "";
}

std::vector<IaId> aggregate_before_shuffle(IaStore& store, const Match& match) {
  const LocalAggregate& aggregate = match.op<LocalAggregate>(0);
  const Shuf& shuffle = match.op<Shuf>(1);
  KeyPositions moved;
  for (const std::size_t position : shuffle.positions) {
    const auto at = std::find(aggregate.group_by.begin(), aggregate.group_by.end(), position);
    moved.push_back(static_cast<std::size_t>(at - aggregate.group_by.begin()));
  }
  const IaId before = store.add(LocalAggregate{aggregate.group_by, aggregate.fold, std::nullopt}, match.relations);
  const IaId sent = store.add(Shuf{moved, shuffle.grid}, {before});
  return one(
      store.add(LocalAggregate{all_positions(aggregate.group_by.size()), aggregate.fold, aggregate.finaliser}, {sent}));
}

// Join (Bcast X) Y = Join X (Bcast Y) = Join (Shuf X) (Shuf Y)

std::vector<IaId> broadcast_right(IaStore& store, const Match& match) {
  const IaId right = store.add(Bcast{}, {match.relations[1]});
  return one(store.add(match.op<LocalJoin>(0), {match.relations[0], right}));
}

std::vector<IaId> broadcast_left(IaStore& store, const Match& match) {
  const IaId left = store.add(Bcast{}, {match.relations[0]});
  return one(store.add(match.op<LocalJoin>(0), {left, match.relations[1]}));
}

/// Both sides on one site function, whose parts hold the values of either.
std::vector<IaId> shuffle_both(IaStore& store, const Match& match) {
  const LocalJoin& join = match.op<LocalJoin>(0);
  Key parts = project(frontier(match.relation(0).relation), join.keys_left);
  const Key right_parts = project(frontier(match.relation(1).relation), join.keys_right);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] = std::max({parts[i], right_parts[i], std::int64_t{1}});
  const SiteGrid grid = spread(parts, store.sites());
  const IaId left = store.add(Shuf{join.keys_left, grid}, {match.relations[0]});
  const IaId right = store.add(Shuf{join.keys_right, grid}, {match.relations[1]});
  return one(store.add(join, {left, right}));
}

// Shuf D (Join (Shuf X) (Shuf Y)) = the join alone

std::string join_is_not_together(const Match& match) {
  return not_together(match.store[match.nodes[1]].type, match.op<Shuf>(0).positions);
}

std::vector<IaId> join_alone(IaStore&, const Match& match) { return one(match.nodes[1]); }

// R2-8: what is where it is wanted need not move

std::string not_partitioned_so(const Match& match) {
  const PhysicalType& type = match.relation(0);
  const Shuf& shuffle = match.op<Shuf>(0);
  return std::holds_alternative<Everywhere>(type.placement) ? "" : not_together(type, shuffle.positions);
}

std::string not_everywhere(const Match& match) {
  const Placement& placement = match.relation(0).placement;
  return std::holds_alternative<Everywhere>(placement) ? "" : "it is " + to_string(placement);
}

std::vector<IaId> relation_alone(IaStore&, const Match& match) { return one(match.relations[0]); }

/// "" when the join of the pattern can run without the Bcast.
std::string partners_are_not_together(const Match& match) {
  IaNode node{match.store[match.nodes[0]].op, {}, {}, {}, ""};
  try {
    infer_node(node, {&match.store[match.relations[0]], &match.store[match.relations[1]]}, match.store.sites());
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::vector<IaId> join_in_place(IaStore& store, const Match& match) {
  return one(store.add(match.op<LocalJoin>(0), match.relations));
}

/// The positions of one side of a join that are partners of positions of the other; nullopt when one has none.
std::optional<KeyPositions> partners(const KeyPositions& positions, const KeyPositions& keys,
                                     const KeyPositions& partner_keys) {
  KeyPositions result;
  for (const std::size_t position : positions) {
    const auto at = std::find(keys.begin(), keys.end(), position);
    if (at == keys.end()) return std::nullopt;
    result.push_back(partner_keys[static_cast<std::size_t>(at - keys.begin())]);
  }
  return result;
}

/// The side that stays (relation `stays` of the pattern) is partitioned by joined positions.
template <std::size_t stays>
std::string not_by_joined(const Match& match) {
  const LocalJoin& join = match.op<LocalJoin>(0);
  const Placement& placement = match.relation(stays).placement;
  const auto* part = std::get_if<Partitioned>(&placement);
  const bool by_joined = part != nullptr && is_subset(part->positions, stays == 1 ? join.keys_right : join.keys_left);
  return by_joined ? "" : "it is " + to_string(placement);
}

/// "" when the grid of the side that stays has room for every value of the other; true for what is not by joined keys.
template <std::size_t stays>
std::string grid_is_too_small(const Match& match) {
  if (!not_by_joined<stays>(match).empty()) return "";
  const LocalJoin& join = match.op<LocalJoin>(0);
  const auto& part = std::get<Partitioned>(match.relation(stays).placement);
  const KeyPositions& keys = stays == 1 ? join.keys_right : join.keys_left;
  const KeyPositions& other = stays == 1 ? join.keys_left : join.keys_right;
  const Key front =
      project(frontier(match.relation(1 - stays).relation), partners(part.positions, keys, other).value());
  for (std::size_t i = 0; i < front.size(); ++i) {
    if (front[i] > part.grid.parts[i])
      return "the other relation's keys go below " + std::to_string(front[i]) + ", the grid is " + to_string(part.grid);
  }
  return "";
}

std::vector<IaId> shuffle_left_to_right(IaStore& store, const Match& match) {
  const LocalJoin& join = match.op<LocalJoin>(0);
  const auto& part = std::get<Partitioned>(match.relation(1).placement);
  const KeyPositions to = partners(part.positions, join.keys_right, join.keys_left).value();
  return one(store.add(join, {store.add(Shuf{to, part.grid}, {match.relations[0]}), match.relations[1]}));
}

std::vector<IaId> shuffle_right_to_left(IaStore& store, const Match& match) {
  const LocalJoin& join = match.op<LocalJoin>(0);
  const auto& part = std::get<Partitioned>(match.relation(0).placement);
  const KeyPositions to = partners(part.positions, join.keys_left, join.keys_right).value();
  return one(store.add(join, {match.relations[0], store.add(Shuf{to, part.grid}, {match.relations[1]})}));
}

constexpr Condition identity_of_inner{"the key map is the identity", not_identity_map<1>};
constexpr Condition identity_of_outer{"the key map is the identity", not_identity_map<0>};

std::vector<Rule> repeated_moves() {
  return {
      {.name = "R2-1a",
       .reference = table_2,
       .pattern = "bcast(bcast(X))",
       .result = "bcast(X)",
       .build = outer_only,
       .keeps_placement = true,
       .search = SearchUse::always,
       .example = "input X[4,4] cut <2,2> on <0>\nB = bcast(bcast(X))\n"},
      {.name = "R2-1b",
       .reference = table_2,
       .pattern = "shuf(shuf(X))",
       .result = "shuf(X)",
       .build = outer_only,
       .keeps_placement = true,
       .search = SearchUse::always,
       .example = "input X[4,4] cut <2,2> on <0>\nS = shuf(<0>)(shuf(<1>)(X))\n"},
      {.name = "R2-1c",
       .reference = table_2,
       .pattern = "bcast(shuf(X))",
       .result = "bcast(X)",
       .build = outer_only,
       .keeps_placement = true,
       .search = SearchUse::always,
       .example = "input X[4,4] cut <2,2> on <0>\nB = bcast(shuf(<1>)(X))\n"},
      {.name = "R2-1d",
       .reference = table_2,
       .pattern = "shuf(bcast(X))",
       .result = "shuf(X)",
       .build = outer_only,
       .keeps_placement = true,
       .search = SearchUse::always,
       .example = "input X[4,4] cut <2,2> on <0>\nS = shuf(<1>)(bcast(X))\n"},
  };
}

std::vector<Rule> moves_past_filters() {
  return {
      {.name = "R2-2a",
       .reference = table_2,
       .pattern = "bcast(filter(X))",
       .result = "filter(bcast(X))",
       .build = swapped,
       .example = "input X[4,4] cut <2,2> on <0>\nB = bcast(local_filter(k0 == 0)(X))\n"},
      {.name = "R2-2b",
       .reference = table_2,
       .pattern = "filter(bcast(X))",
       .result = "bcast(filter(X))",
       .build = swapped,
       .example = "input X[4,4] cut <2,2> on <0>\nF = local_filter(k0 == 0)(bcast(X))\n"},
      {.name = "R2-2c",
       .reference = table_2,
       .pattern = "shuf(filter(X))",
       .result = "filter(shuf(X))",
       .build = shuffle_below_filter,
       .example = "input X[4,4] cut <2,2> on <0>\nS = shuf(<1>)(local_filter(k0 == 0)(X))\n"},
      {.name = "R2-2d",
       .reference = table_2,
       .pattern = "filter(shuf(X))",
       .result = "shuf(filter(X))",
       .build = swapped,
       .example = "input X[4,4] cut <2,2> on <0>\nF = local_filter(k0 == 0)(shuf(<1>)(X))\n"},
  };
}

std::vector<Rule> moves_past_maps() {
  return {
      {.name = "R2-3a",
       .reference = table_2,
       .pattern = "bcast(map(X))",
       .result = "map(bcast(X))",
       .build = swapped,
       .example = "input X[4,4] cut <2,2> on <0>\nB = bcast(local_map(<k0,k1> -> <k1,k0>, diag)(X))\n"},
      {.name = "R2-3b",
       .reference = table_2,
       .pattern = "map(bcast(X))",
       .result = "bcast(map(X))",
       .build = swapped,
       .example = "input X[4,4] cut <2,2> on <0>\nM = local_map(<k0,k1> -> <k1,k0>, diag)(bcast(X))\n"},
      {.name = "R2-3c",
       .reference = table_2,
       .pattern = "shuf(map(X))",
       .result = "map(shuf(X))",
       .conditions = {identity_of_inner},
       .build = swapped,
       .keeps_placement = true,
       .example = "input X[4,4] cut <2,2> on <0>\nS = shuf(<1>)(local_map(<k0,k1> -> <k0,k1>, relu)(X))\n"},
      {.name = "R2-3d",
       .reference = table_2,
       .pattern = "map(shuf(X))",
       .result = "shuf(map(X))",
       .conditions = {identity_of_outer},
       .build = swapped,
       .example = "input X[4,4] cut <2,2> on <0>\nM = local_map(<k0,k1> -> <k0,k1>, diag)(shuf(<1>)(X))\n"},
  };
}

std::vector<Rule> moves_past_aggregates() {
  return {
      {.name = "R2-4",
       .reference = table_2,
       .pattern = "agg(shuf(X))",
       .result = "agg(X)",
       .conditions = {{"the relation is partitioned by some of the group-by keys already", groups_are_not_together}},
       .build = aggregate_in_place,
       .search = SearchUse::always,
       .example = "input X[4,4] cut <2,2> on <0>\nA = local_aggregate(<0>, matAdd)(shuf(<0>)(X))\n"},
      {.name = "R2-4b",
       .reference = "R2-1 read backwards, then R2-4",
       .pattern = "agg(shuf(X))",
       .result = "agg(shuf(X)) on one group-by key",
       .worthwhile = Condition{"some group-by key has several values and is not the only one shuffled on",
                               nothing_else_to_shuffle_on},
       .build = shuffle_on_one_position,
       .example = "input X[4,4,4] cut <2,2,2> on <0>\nA = local_aggregate(<0,2>, matAdd)(shuf(<0,2>)(X))\n"},
      {.name = "R2-5",
       .reference = "TRA paper, Table 2, with the inclusion the other way round",
       .pattern = "agg(shuf(X))",
       .result = "agg(shuf(agg(X)))",
       .conditions = {{"the aggregate folds", not_fold<0>},
                      {"the shuffle is on group-by keys", shuffles_other_positions},
                      {"every site has all tuples, or each tuple is on one site", has_copies}},
       .worthwhile = Condition{"groups lie on several sites", groups_are_folded_on_sites},
       .build = aggregate_before_shuffle,
       .example = "input X[4,4] cut <2,2> on <0>\nA = local_aggregate(<1>, matAdd)(shuf(<1>)(X))\n"},
  };
}

std::vector<Rule> moves_past_joins() {
  return {
      {.name = "R2-6a",
       .reference = table_2,
       .pattern = "join(bcast(X),Y)",
       .result = "join(X,bcast(Y))",
       .build = broadcast_right,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\nJ = local_join(<1>, <0>, "
                  "matMul)(bcast(X), Y)\n"},
      {.name = "R2-6b",
       .reference = table_2,
       .pattern = "join(X,bcast(Y))",
       .result = "join(bcast(X),Y)",
       .build = broadcast_left,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\nJ = local_join(<1>, <0>, matMul)(X, "
                  "bcast(Y))\n"},
      {.name = "R2-6c",
       .reference = table_2,
       .pattern = "join(bcast(X),Y)",
       .result = "join(shuf(X),shuf(Y))",
       .build = shuffle_both,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\nJ = local_join(<1>, <0>, "
                  "matMul)(bcast(X), Y)\n"},
      {.name = "R2-6d",
       .reference = table_2,
       .pattern = "join(X,bcast(Y))",
       .result = "join(shuf(X),shuf(Y))",
       .build = shuffle_both,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\nJ = local_join(<1>, <0>, matMul)(X, "
                  "bcast(Y))\n"},
      {.name = "R2-7",
       .reference = "TRA paper, Table 2, for shuffles that the join implies",
       .pattern = "shuf(join(shuf(X),shuf(Y)))",
       .result = "join(shuf(X),shuf(Y))",
       .conditions = {{"tuples of the join that agree on the shuffled keys share a site", join_is_not_together}},
       .build = join_alone,
       .keeps_placement = true,
       .search = SearchUse::always,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\n"
                  "S = shuf(<1,2>)(local_join(<1>, <0>, matMul)(shuf(<1>)(X), shuf(<0>)(Y)))\n"},
  };
}

std::vector<Rule> needless_moves() {
  return {
      {.name = "R2-8a",
       .reference = from_definition,
       .pattern = "shuf(X)",
       .result = "X",
       .conditions = {{"tuples that agree on the shuffled keys share a site already", not_partitioned_so}},
       .build = relation_alone,
       .keeps_placement = true,
       .search = SearchUse::always,
       .example = "input X[4,4] cut <2,2> on <0>\nS = shuf(<0>)(X)\n"},
      {.name = "R2-8b",
       .reference = from_definition,
       .pattern = "bcast(X)",
       .result = "X",
       .conditions = {{"the relation is everywhere already", not_everywhere}},
       .build = relation_alone,
       .keeps_placement = true,
       .search = SearchUse::always,
       .example = "input X[4,4] cut <2,2> on all\nB = bcast(X)\n"},
      {.name = "R2-8c",
       .reference = from_definition,
       .pattern = "join(bcast(X),Y)",
       .result = "join(X,Y)",
       .conditions = {{"partners share a site already", partners_are_not_together}},
       .build = join_in_place,
       .search = SearchUse::always,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\nJ = local_join(<0>, <0>, "
                  "matMul)(bcast(X), Y)\n"},
      {.name = "R2-8d",
       .reference = from_definition,
       .pattern = "join(X,bcast(Y))",
       .result = "join(X,Y)",
       .conditions = {{"partners share a site already", partners_are_not_together}},
       .build = join_in_place,
       .search = SearchUse::always,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\nJ = local_join(<0>, <0>, matMul)(X, "
                  "bcast(Y))\n"},
      {.name = "R2-8e",
       .reference = from_definition,
       .pattern = "join(bcast(X),Y)",
       .result = "join(shuf(X),Y)",
       .conditions = {{"the right relation is partitioned by joined keys", not_by_joined<1>},
                      {"its site grid has room for the keys of the left one", grid_is_too_small<1>}},
       .build = shuffle_left_to_right,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\nJ = local_join(<1>, <0>, "
                  "matMul)(bcast(X), Y)\n"},
      {.name = "R2-8f",
       .reference = from_definition,
       .pattern = "join(X,bcast(Y))",
       .result = "join(X,shuf(Y))",
       .conditions = {{"the left relation is partitioned by joined keys", not_by_joined<0>},
                      {"its site grid has room for the keys of the right one", grid_is_too_small<0>}},
       .build = shuffle_right_to_left,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\nJ = local_join(<0>, <1>, matMul)(X, "
                  "bcast(Y))\n"},
  };
}

}  // namespace

std::vector<Rule> movement_rules() {
  std::vector<Rule> rules;
  for (auto* table :
       {repeated_moves, moves_past_filters, moves_past_maps, moves_past_aggregates, moves_past_joins, needless_moves}) {
    for (Rule& rule : table()) rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace einrel::rules
