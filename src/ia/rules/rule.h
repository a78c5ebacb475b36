#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ia/ia_program.h"

namespace einrel {

/// A place where a pattern fits: the operations and the relations of the pattern, each from left to right as written.
struct Match {
  const IaStore& store;
  std::vector<IaId> nodes;
  std::vector<IaId> relations;

  template <class Op>
  const Op& op(std::size_t i) const {
    return std::get<Op>(store[nodes[i]].op);
  }
  const PhysicalType& relation(std::size_t i) const { return store[relations[i]].type; }
};

/// One thing that must hold for a rule to apply.
struct Condition {
  std::string_view text;  ///< "the key map is the identity"
  /// "" when it holds, else what is not so at this place.
  std::string (*broken)(const Match&);
};

/// What the search for the cheapest plan does with a rule.
enum class SearchUse : std::uint8_t {
  tried,   ///< at every place of every plan
  always,  ///< it only takes needless movement away, so a plan is worth looking at only after it
  never    ///< it merges kernels and moves nothing less
};

/// An equivalence rule (TRA paper, section 5.2): a plan that has `pattern` at some place gives the same (key, array)
/// pairs with what `build` makes in its place, if all conditions hold and no shuffle of the pattern gives a tuple
/// several sites.
struct Rule {
  std::string_view name;       ///< "R1-2"
  std::string_view reference;  ///< where it comes from
  /// Operations bcast, shuf, join, agg, filter, map over relations X, Y: "map(filter(X))".
  std::string_view pattern;
  std::string_view result;  ///< for people: "filter(map(X))"
  std::vector<Condition> conditions{};
  /// When the rule is of use; without it the plans are equal all the same.
  std::optional<Condition> worthwhile{};
  /// The alternatives; most rules have one.
  std::vector<IaId> (*build)(IaStore&, const Match&) = nullptr;
  /// Whether the result lies as the broadcast or shuffle at the root of the pattern said: everywhere, or so that tuples
  /// that agree on the shuffled positions share a site.
  bool keeps_placement = false;
  SearchUse search = SearchUse::tried;
  /// A program in the textual form of the IA that the rule applies to at its last operation.
  std::string_view example;
};

/// Every rule, in the order of the papers.
const std::vector<Rule>& all_rules();
/// Throws UserError for an unknown name.
const Rule& rule_named(std::string_view name);

/// Where the pattern fits, nullopt when it does not.
std::optional<Match> match(const IaStore& store, const Rule& rule, IaId at);
/// The first condition that is broken, with what is not so; "" when all hold.
std::string broken_condition(const Rule& rule, const Match& match);

}  // namespace einrel
