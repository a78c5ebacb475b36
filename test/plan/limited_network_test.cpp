#include "plan/search/limited_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <vector>

#include "plan/search/usage_over_time.h"

namespace einrel::test {
namespace {

constexpr double impossible = std::numeric_limits<double>::infinity();

/// Few variables that are alive for random times, some pairs of which cost something together or do not go together.
LimitedNetwork random_limited(std::mt19937& random, double limit) {
  const auto below = [&](std::size_t count) { return random() % count; };
  LimitedNetwork network;
  network.limit = limit;
  const std::size_t variables = 2 + below(6);
  for (std::size_t v = 0; v < variables; ++v) {
    const std::size_t values = 1 + below(4);
    network.alone.emplace_back();
    network.usages.emplace_back();
    for (std::size_t value = 0; value < values; ++value) {
      network.alone.back().push_back(static_cast<double>(below(40)));
      network.usages.back().push_back(static_cast<double>(below(10)));
    }
    const std::size_t from = below(8);
    network.lives.push_back({from, from + below(6)});
  }
  for (std::size_t p = 0; p < 2 * variables; ++p) {
    const std::size_t a = below(variables);
    const std::size_t b = below(variables);
    if (a == b) continue;
    LimitedNetwork::Pair pair{a, b, {}};
    for (std::size_t i = 0; i < network.alone[a].size() * network.alone[b].size(); ++i)
      pair.costs.push_back(below(8) == 0 ? impossible : static_cast<double>(below(30)));
    network.pairs.push_back(std::move(pair));
  }
  return network;
}

/// What is used at each time, added up one by one.
double most_used_by_hand(const LimitedNetwork& network, const std::vector<std::size_t>& values) {
  double most = 0;
  for (std::size_t time = 0; time < 20; ++time) {
    double used = 0;
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (network.lives[v].from <= time && time < network.lives[v].until) used += network.usages[v][values[v]];
    }
    most = std::max(most, used);
  }
  return most;
}

double cost_by_hand(const LimitedNetwork& network, const std::vector<std::size_t>& values) {
  double cost = 0;
  for (std::size_t v = 0; v < values.size(); ++v) cost += network.alone[v].at(values[v]);
  for (const auto& [a, b, costs] : network.pairs) cost += costs.at(values[a] * network.alone[b].size() + values[b]);
  return cost;
}

/// The least cost of all assignments, one after the other; nothing where none is possible.
std::optional<double> least_by_hand(const LimitedNetwork& network) {
  std::vector<std::size_t> values(network.alone.size(), 0);
  double least = impossible;
  for (std::size_t v = 0; v < values.size();) {
    if (most_used_by_hand(network, values) <= network.limit) least = std::min(least, cost_by_hand(network, values));
    for (v = 0; v < values.size() && ++values[v] == network.alone[v].size(); ++v) values[v] = 0;
  }
  return least == impossible ? std::nullopt : std::optional(least);
}

LimitedFound found_in(const LimitedNetwork& network, int times) {
  return least_within_limit(network, [&] { return times-- > 0; });
}

TEST(LimitedNetwork, FindsTheLeastOfSmallNetworksAndNeverClaimsMore) {
  std::mt19937 random(7);
  std::size_t possible = 0;
  std::size_t tight = 0;
  for (int round = 0; round < 150; ++round) {
    const LimitedNetwork network = random_limited(random, round % 5 == 0 ? impossible : 8 + round % 7);
    const std::optional<double> least = least_by_hand(network);
    const LimitedFound found = found_in(network, 3000);
    ASSERT_EQ(found.best.has_value(), least.has_value()) << "network " << round;
    if (!least) continue;
    ++possible;
    LimitedNetwork unlimited = network;
    unlimited.limit = impossible;
    tight += least_by_hand(unlimited) < least ? 1U : 0U;
    EXPECT_EQ(found.best->cost, *least) << "network " << round;
    EXPECT_EQ(cost_by_hand(network, found.best->values), *least);
    EXPECT_LE(most_used_by_hand(network, found.best->values), network.limit);
    EXPECT_EQ(most_used(network, found.best->values), most_used_by_hand(network, found.best->values));
    EXPECT_LE(found.at_least, *least * (1 + 1e-9)) << "network " << round;
  }
  EXPECT_GT(possible, 60U);
  EXPECT_GT(tight, 15U) << "the limit hardly ever matters";
}

TEST(LimitedNetwork, TakesTheSameStepsEachTime) {
  std::mt19937 random(3);
  const LimitedNetwork network = random_limited(random, 12);
  const LimitedFound one = found_in(network, 200);
  const LimitedFound other = found_in(network, 200);
  ASSERT_TRUE(one.best.has_value() && other.best.has_value());
  EXPECT_EQ(one.best->values, other.best->values);
  EXPECT_EQ(one.at_least, other.at_least);
}

TEST(LimitedNetwork, ProvesTheLeastOfATree) {
  // A star without a limit: the bound of the cost network is exact on trees.
  LimitedNetwork network{{{0, 1, 5}, {3, 0}, {0, 2, 2}, {1, 1}}, {}, {}, {}, impossible};
  std::mt19937 random(1);
  for (std::size_t leaf = 1; leaf < 4; ++leaf) {
    LimitedNetwork::Pair pair{leaf, 0, {}};
    for (std::size_t i = 0; i < network.alone[leaf].size() * 3; ++i)
      pair.costs.push_back(static_cast<double>(random() % 9));
    network.pairs.push_back(std::move(pair));
  }
  network.lives.assign(4, {0, 1});
  for (const std::vector<double>& alone : network.alone) network.usages.emplace_back(alone.size(), 1);
  const LimitedFound found = found_in(network, 100);
  ASSERT_TRUE(found.best.has_value());
  EXPECT_EQ(found.best->cost, *least_by_hand(network));
  EXPECT_NEAR(found.at_least, found.best->cost, 1e-9);
}

TEST(UsageOverTime, KnowsTheMostOfRangesAndWhen) {
  std::mt19937 random(5);
  for (const std::size_t times : {1U, 2U, 3U, 7U, 8U, 13U}) {
    UsageOverTime usage(times);
    std::vector<double> by_hand(times, 0);
    for (int round = 0; round < 50; ++round) {
      std::size_t first = random() % times;
      std::size_t last = random() % times;
      if (first > last) std::swap(first, last);
      const auto more = static_cast<double>(random() % 20);
      usage.add({first, last}, more);
      for (std::size_t time = first; time <= last; ++time) by_hand[time] += more;
      const auto begin = by_hand.begin();
      const std::size_t from = random() % (last + 1);
      EXPECT_EQ(usage.most({from, last}),
                *std::max_element(begin + static_cast<long>(from), begin + static_cast<long>(last) + 1));
      EXPECT_EQ(usage.most(), *std::max_element(begin, by_hand.end()));
      EXPECT_EQ(by_hand[usage.when_most()], usage.most());
      EXPECT_EQ(usage.at(first), by_hand[first]);
    }
  }
}

}  // namespace
}  // namespace einrel::test
