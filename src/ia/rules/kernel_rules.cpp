// Rules that merge filters, maps and the kernels of joins and aggregates, or move them past each other (Table 2, R1).

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "ia/infer.h"
#include "ia/rules/conditions.h"
#include "ia/rules/tables.h"
#include "tra/infer.h"

namespace einrel::rules {
namespace {

// Filter p (Filter q X) = Filter (p and q) X

std::vector<IaId> merge_filters(IaStore& store, const Match& match) {
  const KeyExpr both =
      key_call(KeyFunction::logical_and, match.op<LocalFilter>(0).predicate, match.op<LocalFilter>(1).predicate);
  return one(store.add(LocalFilter{both}, match.relations));
}

// Map f (Map g X) = Map (f . g) X

std::vector<IaId> merge_maps(IaStore& store, const Match& match) {
  const LocalMap& outer = match.op<LocalMap>(0);
  const LocalMap& inner = match.op<LocalMap>(1);
  return one(store.add(LocalMap{compose(outer.key_map, inner.key_map),
                                compose(std::get<Kernel>(outer.arrays), std::get<Kernel>(inner.arrays))},
                       match.relations));
}

// Map f (Filter p X) = Filter p (Map f X)

/// "" when the kernel of the map can take every array of these relations of the pattern. Tuples that the operation
/// below keeps from the map, by a filter or for want of a partner, may have others.
std::string does_not_fit(const Match& match, const std::vector<std::size_t>& relations) {
  const Kernel* kernel = single_kernel(match.op<LocalMap>(0));
  try {
    for (const std::size_t relation : relations) {
      if (kernel != nullptr) infer_transform(*kernel, match.relation(relation).relation);
    }
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string does_not_fit_filtered(const Match& match) { return does_not_fit(match, {0}); }
std::string does_not_fit_sides(const Match& match) { return does_not_fit(match, {0, 1}); }

std::vector<IaId> map_below_filter(IaStore& store, const Match& match) {
  const IaId mapped_relation = store.add(match.op<LocalMap>(0), match.relations);
  return one(store.add(match.op<LocalFilter>(1), {mapped_relation}));
}

std::vector<IaId> filter_below_map(IaStore& store, const Match& match) {
  const IaId filtered = store.add(match.op<LocalFilter>(0), match.relations);
  return one(store.add(match.op<LocalMap>(1), {filtered}));
}

// Map a (Agg X) = Agg with finaliser a, or Agg (Map a X)

std::vector<IaId> map_to_finaliser(IaStore& store, const Match& match) {
  const auto& kernel = std::get<Kernel>(match.op<LocalMap>(0).arrays);
  LocalAggregate aggregate = match.op<LocalAggregate>(1);
  if (!is_identity(kernel)) aggregate.finaliser = aggregate.finaliser ? compose(kernel, *aggregate.finaliser) : kernel;
  return one(store.add(std::move(aggregate), match.relations));
}

std::string has_finaliser(const Match& match) {
  const LocalAggregate& aggregate = match.op<LocalAggregate>(1);
  return aggregate.finaliser ? "it runs " + aggregate.finaliser->name : "";
}

std::string does_not_distribute_over_fold(const Match& match) {
  const Kernel* map = single_kernel(match.op<LocalMap>(0));
  const auto* fold = std::get_if<Kernel>(&match.op<LocalAggregate>(1).fold);
  if (map != nullptr && fold != nullptr && distributes_over(*map, *fold)) return "";
  return (map != nullptr ? map->name : "the map") + " is not known to distribute over " +
         (fold != nullptr ? fold->name : "a concatenation");
}

std::vector<IaId> map_below_aggregate(IaStore& store, const Match& match) {
  const auto& kernel = std::get<Kernel>(match.op<LocalMap>(0).arrays);
  LocalAggregate aggregate = match.op<LocalAggregate>(1);
  const std::size_t arity = match.relation(0).relation.key_arity;
  const IaId mapped_relation = store.add(LocalMap{identity_map(arity), kernel}, match.relations);
  aggregate.fold = after(std::get<Kernel>(aggregate.fold), kernel);
  return one(store.add(std::move(aggregate), {mapped_relation}));
}

// Filter p (Agg g X) = Agg g (Filter p' X), where p' reads what p reads as positions of X

std::vector<IaId> filter_below_aggregate(IaStore& store, const Match& match) {
  const LocalAggregate& aggregate = match.op<LocalAggregate>(1);
  const KeyExpr below = substitute(match.op<LocalFilter>(0).predicate, projection_map(aggregate.group_by));
  return one(store.add(aggregate, {store.add(LocalFilter{below}, match.relations)}));
}

// Filter p (Join L R) = Join (Filter p L) (Filter p R)

std::string reads_other_than_joined(const Match& match) {
  const LocalJoin& join = match.op<LocalJoin>(1);
  const KeyPositions read = positions_read(match.op<LocalFilter>(0).predicate);
  if (is_subset(read, join.keys_left)) return "";
  return "it reads " + to_string(read) + " of the joined key, of which " + to_string(join.keys_left) + " are joined";
}

/// For each position of the left key, the right position that it is joined with.
KeyMap right_of_left(const LocalJoin& join, std::size_t left_arity) {
  KeyMap map = identity_map(left_arity);
  for (KeyExpr& output : map.outputs) output = key_position(no_position);
  for (std::size_t i = 0; i < join.keys_left.size(); ++i)
    map.outputs[join.keys_left[i]] = key_position(join.keys_right[i]);
  return map;
}

std::vector<IaId> filter_below_join(IaStore& store, const Match& match) {
  const LocalJoin& join = match.op<LocalJoin>(1);
  const KeyExpr& predicate = match.op<LocalFilter>(0).predicate;
  const KeyExpr on_right = substitute(predicate, right_of_left(join, match.relation(0).relation.key_arity));
  const IaId left = store.add(LocalFilter{predicate}, {match.relations[0]});
  const IaId right = store.add(LocalFilter{on_right}, {match.relations[1]});
  return one(store.add(join, {left, right}));
}

// Map f (Join L R) = Join with kernel a . projOp and mapped key

std::vector<IaId> map_into_join(IaStore& store, const Match& match) {
  const LocalMap& map = match.op<LocalMap>(0);
  LocalJoin join = match.op<LocalJoin>(1);
  join.key_map = compose(map.key_map, join.key_map);
  join.kernel = compose(std::get<Kernel>(map.arrays), join.kernel);
  return one(store.add(std::move(join), match.relations));
}

// Map f (Join L R) = Join (Map fL L) (Map fR R)

/// How the key map of a map above a join splits into one for each side.
struct SplitKeyMap {
  KeyMap left;
  KeyMap right;
  KeyPositions keys_left;   ///< positions of the new left key that are joined
  KeyPositions keys_right;  ///< their partners in the new right key
  KeyMap order;             ///< from the new joined key to the map's outputs
  KeyMap joined;            ///< the outputs that depend on joined positions only, over the joined key
};

/// nullopt when an output depends on both sides, or there are several per input.
std::optional<SplitKeyMap> split(const Match& match) {
  const LocalMap& map = match.op<LocalMap>(0);
  const LocalJoin& join = match.op<LocalJoin>(1);
  const std::size_t left_arity = match.relation(0).relation.key_arity;
  const std::size_t right_arity = match.relation(1).relation.key_arity;
  if (single_kernel(map) == nullptr) return std::nullopt;  // its keys are numbered
  const KeyMap keys = compose(map.key_map, join.key_map);
  KeyMap to_right = right_of_left(join, left_arity);
  for (const std::size_t free : complement(join.keys_right, right_arity))
    to_right.outputs.push_back(key_position(free));
  SplitKeyMap result;
  std::vector<std::pair<bool, std::size_t>> places;  // per output: whether on the left, and its position there
  KeyMap right_only;
  for (const KeyExpr& output : keys.outputs) {
    const KeyPositions read = positions_read(output);
    const bool only_joined = is_subset(read, join.keys_left);
    const bool on_left = std::all_of(read.begin(), read.end(), [&](std::size_t p) { return p < left_arity; });
    const bool on_right = std::all_of(read.begin(), read.end(),
                                      [&](std::size_t p) { return p >= left_arity || is_subset({p}, join.keys_left); });
    if (!on_left && !on_right) return std::nullopt;
    if (only_joined) {
      result.keys_left.push_back(result.left.outputs.size());
      result.keys_right.push_back(result.right.outputs.size());
      result.right.outputs.push_back(substitute(output, to_right));
      result.joined.outputs.push_back(output);
    }
    if (on_left) {
      places.emplace_back(true, result.left.outputs.size());
      result.left.outputs.push_back(output);
    } else {
      places.emplace_back(false, right_only.outputs.size());
      right_only.outputs.push_back(substitute(output, to_right));
    }
  }
  result.right.outputs.insert(result.right.outputs.end(), right_only.outputs.begin(), right_only.outputs.end());
  for (const auto& [on_left, position] : places)
    result.order.outputs.push_back(key_position(on_left ? position : result.left.outputs.size() + position));
  return result;
}

std::string does_not_split(const Match& match) {
  return split(match) ? "" : "a position of the new key depends on both sides";
}

/// Whether two keys of a side, or two joined keys, are mapped to one.
std::string is_not_injective(const Match& match) {
  const std::optional<SplitKeyMap> parts = split(match);
  if (!parts) return "";  // another condition
  const LocalJoin& join = match.op<LocalJoin>(1);
  std::map<Key, Key> joined;  // new joined key to old joined key
  std::string broken;
  const auto check_side = [&](const RelationType& relation, const KeyMap& map, const KeyPositions& keys) {
    std::map<Key, Key> sources;
    for (const Chunk& chunk : relation.chunks) {
      Key on_left(match.relation(0).relation.key_arity, 0);  // the joined values where the left key has them
      for (std::size_t i = 0; i < keys.size(); ++i) on_left[join.keys_left[i]] = chunk.key[keys[i]];
      const Key old = project(chunk.key, keys);
      const auto [source, is_new] = sources.emplace(evaluate(map, chunk.key), chunk.key);
      const auto [same, is_new_joined] = joined.emplace(evaluate(parts->joined, on_left), old);
      if (!is_new) broken = to_string(source->second) + " and " + to_string(chunk.key) + " get one key";
      if (!is_new_joined && same->second != old)
        broken = "the joined values " + to_string(same->second) + " and " + to_string(old) + " get one key";
    }
  };
  try {
    check_side(match.relation(0).relation, parts->left, join.keys_left);
    check_side(match.relation(1).relation, parts->right, join.keys_right);
  } catch (const UserError& error) {  // it cannot be evaluated for some tuple without a partner
    return error.what();
  }
  return broken;
}

std::string does_not_distribute_over_join(const Match& match) {
  const Kernel* map = single_kernel(match.op<LocalMap>(0));
  const Kernel& join = match.op<LocalJoin>(1).kernel;
  if (map != nullptr && distributes_over(*map, join)) return "";
  return (map != nullptr ? map->name : "the map") + " is not known to distribute over " + join.name;
}

std::vector<IaId> map_below_join(IaStore& store, const Match& match) {
  const auto& kernel = std::get<Kernel>(match.op<LocalMap>(0).arrays);
  const SplitKeyMap parts = split(match).value();
  const IaId left = store.add(LocalMap{parts.left, kernel}, {match.relations[0]});
  const IaId right = store.add(LocalMap{parts.right, kernel}, {match.relations[1]});
  const Kernel join = after(match.op<LocalJoin>(1).kernel, kernel);
  return one(store.add(LocalJoin{parts.keys_left, parts.keys_right, join, parts.order}, {left, right}));
}

constexpr Condition identity_key_map{"the key map is the identity", not_identity_map<0>};

std::vector<Rule> filters_and_maps() {
  return {
      {.name = "R1-1",
       .reference = table_2,
       .pattern = "filter(filter(X))",
       .result = "filter(X)",
       .build = merge_filters,
       .search = SearchUse::never,
       .example = "input X[4,4] cut <2,2> on <0>\n"
                  "F = local_filter(k0 == 0)(local_filter(k1 == 0)(X))\n"},
      {.name = "R1-2",
       .reference = table_2,
       .pattern = "map(map(X))",
       .result = "map(X)",
       .conditions = {{"both maps make one output per input",
                       [](const Match& match) {
                         const std::string outer = not_single<0>(match);
                         return outer.empty() ? not_single<1>(match) : outer;
                       }}},
       .build = merge_maps,
       .search = SearchUse::never,
       .example = "input X[4,4] cut <2,2> on <0>\n"
                  "M = local_map(<k0,k1> -> <k1,k0>, transpose)(local_map(<k0,k1> -> <k0,k1>, relu)(X))\n"},
      {.name = "R1-3",
       .reference = table_2,
       .pattern = "map(filter(X))",
       .result = "filter(map(X))",
       .conditions = {identity_key_map,
                      {"the kernel takes the arrays that the filter drops, too", does_not_fit_filtered}},
       .build = map_below_filter,
       .search = SearchUse::never,
       .example = "input X[4,4] cut <2,2> on <0>\n"
                  "M = local_map(<k0,k1> -> <k0,k1>, relu)(local_filter(k0 == 0)(X))\n"},
      {.name = "R1-3b",
       .reference = table_2,
       .pattern = "filter(map(X))",
       .result = "map(filter(X))",
       .conditions = {{"the key map is the identity", not_identity_map<1>}},
       .build = filter_below_map,
       .example = "input X[4,4] cut <2,2> on <0>\n"
                  "F = local_filter(k0 == 0)(local_map(<k0,k1> -> <k0,k1>, relu)(X))\n"},
  };
}

std::vector<Rule> kernels_of_aggregates() {
  return {
      {.name = "R1-4a",
       .reference = table_2,
       .pattern = "map(agg(X))",
       .result = "agg(X) with a finaliser",
       .conditions = {identity_key_map},
       .build = map_to_finaliser,
       .search = SearchUse::never,
       .example = "input X[4,4] cut <2,2> on <0>\n"
                  "M = local_map(<k0> -> <k0>, relu)(local_aggregate(<0>, matAdd)(X))\n"},
      {.name = "R1-4b",
       .reference = table_2,
       .pattern = "map(agg(X))",
       .result = "agg(map(X))",
       .conditions = {identity_key_map,
                      {"the aggregate has no finaliser", has_finaliser},
                      {"the kernel of the map distributes over the fold", does_not_distribute_over_fold}},
       .build = map_below_aggregate,
       .example = "input X[4,4] cut <2,2> on <0>\n"
                  "M = local_map(<k0> -> <k0>, diag)(local_aggregate(<0>, matAdd)(X))\n"},
      {.name = "R1-5",
       .reference = table_2,
       .pattern = "filter(agg(X))",
       .result = "agg(filter(X))",
       .build = filter_below_aggregate,
       .example = "input X[4,4] cut <2,2> on <1>\n"
                  "F = local_filter(k0 == 0)(local_aggregate(<1>, matAdd)(X))\n"},
  };
}

std::vector<Rule> kernels_of_joins() {
  return {
      {.name = "R1-6",
       .reference = table_2,
       .pattern = "filter(join(X,Y))",
       .result = "join(filter(X),filter(Y))",
       .conditions = {{"the predicate reads joined positions only", reads_other_than_joined},
                      {"the join leaves its key as it is", not_plain_join<1>}},
       .build = filter_below_join,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\n"
                  "F = local_filter(k0 == k1)(local_join(<0,1>, <0,1>, matAdd)(X, Y))\n"},
      {.name = "R1-7a",
       .reference = table_2,
       .pattern = "map(join(X,Y))",
       .result = "join(X,Y) with the map in its kernel and key",
       .conditions = {{"the map makes one output per input", not_single<0>}},
       .build = map_into_join,
       .search = SearchUse::never,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\n"
                  "M = local_map(<k0,k1> -> <k1,k0>, transpose)(local_join(<0,1>, <0,1>, matAdd)(X, Y))\n"},
      {.name = "R1-7b",
       .reference = table_2,
       .pattern = "map(join(X,Y))",
       .result = "join(map(X),map(Y))",
       .conditions = {{"the kernel of the map distributes over that of the join", does_not_distribute_over_join},
                      {"the kernel of the map takes every array of both sides", does_not_fit_sides},
                      {"each position of the new key depends on one side", does_not_split},
                      {"the key map is injective on each side and on the joined keys", is_not_injective}},
       .build = map_below_join,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\n"
                  "M = local_map(<k0,k1> -> <k1,k0>, diag)(local_join(<0,1>, <0,1>, matAdd)(X, Y))\n"},
  };
}

}  // namespace

std::vector<Rule> kernel_rules() {
  std::vector<Rule> rules;
  for (auto* table : {filters_and_maps, kernels_of_aggregates, kernels_of_joins}) {
    for (Rule& rule : table()) rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace einrel::rules
