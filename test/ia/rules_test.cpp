#include <gmock/gmock.h>

#include <set>

#include "ia/check_run.h"
#include "ia/random_plan.h"
#include "ia/rules/rewrite.h"
#include "support/compare.h"
#include "support/rounds.h"

namespace einrel::test {
namespace {

bool equal(const Relation& a, const Relation& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first &&
                  agree(x.second, y.second, std::vector<double>(static_cast<std::size_t>(y.second.count()), 0));
         });
}

/// Whether a relation lies as a broadcast or shuffle leaves it.
bool lies_as_moved(const IaOp& move, const PhysicalType& type) {
  if (std::holds_alternative<Bcast>(move)) return std::holds_alternative<Everywhere>(type.placement);
  const KeyPositions& positions = std::get<Shuf>(move).positions;
  std::map<Key, Site> sites;
  for (const PlacedChunk& tuple : type.tuples) {
    const Key key = project(type.relation.chunks[tuple.chunk].key, positions);
    if (sites.emplace(key, tuple.site).first->second != tuple.site) return false;
  }
  return true;
}

/// What is wrong with the alternatives that the rule makes of this instance.
std::string wrong_rewrite(const Rule& rule, PlanGenerator& generator, const Match& match) {
  IaStore& store = generator.store();
  const IaPlan from{{"Z", match.nodes.front()}};
  const IaRun before = interpret(store, from, generator.inputs(), {});
  if (std::string wrong = wrong_inference(store, from, before); !wrong.empty()) return "from: " + wrong;
  for (const IaId id : rule.build(store, match)) {
    const IaPlan to{{"Z", id}};
    if (std::string fault = fault_of(store, to); !fault.empty()) return "cannot run: " + fault;
    const IaRun after = interpret(store, to, generator.inputs(), {});
    if (std::string wrong = wrong_inference(store, to, after); !wrong.empty()) return "to: " + wrong;
    if (!equal(before.outputs.at("Z"), after.outputs.at("Z"))) return "the values differ";
    if (rule.keeps_placement && !lies_as_moved(store[match.nodes.front()].op, store[id].type))
      return "it lies elsewhere";
  }
  return "";
}

class EveryRule : public testing::TestWithParam<std::size_t> {
 protected:
  const Rule& rule() const { return all_rules()[GetParam()]; }
};

const int wanted_instances = rounds(1000);
constexpr std::uint64_t most_seeds = 400'000;

TEST_P(EveryRule, KeepsValuesAndCostsAreAsInferred) {
  int instances = 0;
  for (std::uint64_t seed = 0; seed < most_seeds && instances < wanted_instances; ++seed) {
    PlanGenerator generator(seed);
    const std::optional<IaId> root = generator.instance(rule().pattern);
    if (!root) continue;
    const std::optional<Match> found = match(generator.store(), rule(), *root);
    ASSERT_TRUE(found) << "seed " << seed;
    if (!broken_condition(rule(), *found).empty()) continue;
    const std::vector<IaId> made = rule().build(generator.store(), *found);
    if (std::all_of(made.begin(), made.end(), [&](IaId id) { return id == *root; })) continue;  // it changes nothing
    ++instances;
    ASSERT_EQ(wrong_rewrite(rule(), generator, *found), "") << rule().name << ", seed " << seed;
  }
  EXPECT_EQ(instances, wanted_instances) << rule().name << " hardly ever applies";
}

/// Each condition is needed: without it, some instance goes wrong.
TEST_P(EveryRule, NeedsEachOfItsConditions) {
  for (std::size_t dropped = 0; dropped < rule().conditions.size(); ++dropped) {
    Rule weakened = rule();
    weakened.conditions.erase(weakened.conditions.begin() + static_cast<std::ptrdiff_t>(dropped));
    bool caught = false;
    for (std::uint64_t seed = 0; seed < most_seeds && !caught; ++seed) {
      PlanGenerator generator(seed);
      const std::optional<IaId> root = generator.instance(rule().pattern);
      if (!root) continue;
      const Match found = match(generator.store(), rule(), *root).value();
      const bool only_this_is_broken =
          broken_condition(weakened, found).empty() && !rule().conditions[dropped].broken(found).empty();
      if (!only_this_is_broken) continue;
      try {
        caught = !wrong_rewrite(weakened, generator, found).empty();
      } catch (const std::exception&) {
        caught = true;  // it could not even be built or run
      }
    }
    EXPECT_TRUE(caught) << rule().name << " without: " << rule().conditions[dropped].text;
  }
}

std::string rule_test_name(const testing::TestParamInfo<std::size_t>& info) {
  std::string name(all_rules()[info.param].name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, EveryRule, testing::Range(std::size_t{0}, all_rules().size()), rule_test_name);

}  // namespace
}  // namespace einrel::test
