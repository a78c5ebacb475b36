// Rules that know algorithms (TRA paper, section 5.2.2).

#include <algorithm>

#include "ia/rules/conditions.h"
#include "ia/rules/tables.h"
#include "tra/infer.h"

namespace einrel::rules {
namespace {

/// Duplicates `relation` over the positions of `keys` (the joined key) that it lacks: `own[i]` is the position of the
/// joined key that position i of the relation is. The key map reads the old key and the number of the copy.
LocalMap replicate(const KeyPositions& own, const Key& joined_front) {
  LocalMap map{identity_map(joined_front.size()), Duplicate{1}};
  auto& copies = std::get<Duplicate>(map.arrays);
  const KeyExpr copy = key_position(own.size());
  for (std::size_t i = 0; i < own.size(); ++i) map.key_map.outputs[own[i]] = key_position(i);
  const KeyPositions missing = complement(own, joined_front.size());
  for (std::size_t i = missing.size(); i-- > 0;) {
    const KeyExpr digits = key_call(KeyFunction::divide, copy, key_constant(copies.count));
    const bool first = i == 0;  // the first digit needs no modulo: nothing is above it
    map.key_map.outputs[missing[i]] =
        first ? digits : key_call(KeyFunction::modulo, digits, key_constant(joined_front[missing[i]]));
    copies.count = checked_multiply(copies.count, std::max<std::int64_t>(1, joined_front[missing[i]]));
  }
  return map;
}

/// Agg g (Shuf (Join (Bcast X) Y)) = Agg g (Join X* Y*): each relation is copied along the key positions that only the
/// other one has, so that both have the whole joined key; then both are shuffled on g. With g = <0,2> the 3D
/// multiplication.
std::vector<IaId> replicate_both(IaStore& store, const Match& match) {
  const LocalAggregate& aggregate = match.op<LocalAggregate>(0);
  const LocalJoin& join = match.op<LocalJoin>(2);
  const std::size_t left_arity = match.relation(0).relation.key_arity;
  const std::size_t right_arity = match.relation(1).relation.key_arity;
  const KeyPositions right = joined_relations(join.keys_left, join.keys_right, {left_arity, right_arity})[1].places;
  Key front = frontier(match.relation(0).relation);  // of the joined key, with room for tuples without a partner
  front.resize(left_arity + right_arity - join.keys_left.size(), 0);
  const Key right_front = frontier(match.relation(1).relation);
  for (std::size_t i = 0; i < right_arity; ++i) front[right[i]] = std::max(front[right[i]], right_front[i]);
  const Shuf shuffle{aggregate.group_by, spread(project(front, aggregate.group_by), store.sites())};
  const IaId left_copies = store.add(replicate(all_positions(left_arity), front), {match.relations[0]});
  const IaId right_copies = store.add(replicate(right, front), {match.relations[1]});
  const KeyPositions every = all_positions(front.size());
  const IaId joined = store.add(LocalJoin{every, every, join.kernel, identity_map(front.size())},
                                {store.add(shuffle, {left_copies}), store.add(shuffle, {right_copies})});
  return one(store.add(aggregate, {joined}));
}

}  // namespace

std::vector<Rule> contraction_rules() {
  return {
      {.name = "RMM",
       .reference = "TRA paper, section 5.2.2, for any contraction",
       .pattern = "agg(shuf(join(bcast(X),Y)))",
       .result = "agg(join(shuf(map(X)),shuf(map(Y))))",
       .conditions = {{"the join leaves its key as it is", not_plain_join<2>}},
       .build = replicate_both,
       .example = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\n"
                  "A = local_aggregate(<0,2>, matAdd)(shuf(<0,2>)(local_join(<1>, <0>, matMul)(bcast(X), Y)))\n"},
  };
}

}  // namespace einrel::rules

namespace einrel {

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all = rules::kernel_rules();
    for (Rule& rule : rules::movement_rules()) all.push_back(std::move(rule));
    for (Rule& rule : rules::contraction_rules()) all.push_back(std::move(rule));
    return all;
  }();
  return rules;
}

}  // namespace einrel
