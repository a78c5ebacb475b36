#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "einsum/vertex_facts.h"
#include "machine/machines.h"
#include "plan/layout.h"
#include "plan/planner.h"
#include "plan/refine/numbering.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/rounds.h"

namespace einrel::test {
namespace {

/// The elements of a vector of that length that a site has.
std::set<std::int64_t> elements_of_site(const Layout& layout, std::int64_t extent, std::int64_t site) {
  const LayoutAxis& axis = layout.axes.front();
  std::int64_t number = axis.grid == 1 ? 0 : site / axis.stride % axis.grid * axis.stride;
  for (const SiteCopies& copies : layout.copies) number += site / copies.stride % copies.count * copies.stride;
  std::set<std::int64_t> elements;
  if (number != site) return elements;  // no coordinates give it
  for (std::int64_t part = 0; part < axis.cut.parts; ++part) {
    const std::int64_t at = axis.grid == 1 ? 0 : site / axis.stride % axis.grid;
    if (part * axis.grid / axis.cut.parts != at) continue;
    for (std::int64_t e = chunk_begin(Extent(extent), axis.cut, part);
         e < chunk_begin(Extent(extent), axis.cut, part + 1); ++e)
      elements.insert(e);
  }
  return elements;
}

/// A vector over 16 sites: cut over some, with copies on others.
Layout random_layout(Random& random) {
  const std::int64_t grid = std::int64_t{1} << random.between(0, 4);
  const std::int64_t copies = std::int64_t{1} << random.between(0, 4);
  Layout layout;
  const bool is_outer = random.chance(0.5);
  const std::int64_t used = std::min<std::int64_t>(copies, 16 / grid);
  layout.axes.push_back({{grid * random.between(1, 2), 1}, grid, grid == 1 ? 0 : is_outer ? used : 1});
  if (used > 1) layout.copies.push_back({used, is_outer ? 1 : grid});
  return layout;
}

TEST(Links, GroupsReceiveWhatNoneOfTheirSitesHas) {
  constexpr std::int64_t extent = 37;
  constexpr std::int64_t sites = 16;
  Random random(9);
  for (int round = 0; round < rounds(600); ++round) {
    const Layout have = random_layout(random);
    const Layout need = random_layout(random);
    for (const std::int64_t size : {2, 4, 8}) {
      std::vector<std::int64_t> wanted;
      for (std::int64_t group = 0; group < sites / size; ++group) {
        std::set<std::int64_t> has;
        std::set<std::int64_t> needs;
        for (std::int64_t site = group * size; site < (group + 1) * size; ++site) {
          has.merge(elements_of_site(have, extent, site));
          needs.merge(elements_of_site(need, extent, site));
        }
        wanted.push_back(std::count_if(needs.begin(), needs.end(), [&](std::int64_t e) { return has.count(e) == 0; }));
      }
      Transfers transfers(sites, {});
      EXPECT_EQ(transfers.crossing({"", size, 1, 0}, have, need, {Extent(extent)}), wanted) << round << " " << size;
    }
  }
}

Plan planned(const std::string& planner, const EinGraph& graph, const Machine& machine) {
  return std::get<Plan>(planner_named(planner).plan(graph, {machine.sites, machine, CostKind::seconds, {}}));
}

/// Two products, the second one of which reduces what the first one has cut.
EinGraph two_products() {
  return einrel::graph_of(
      std::string("dims b=512 f=1024 h=2048 l=1024\ninput X[b,f], W1[f,h], W2[h,l]\n"
                  "H[b,h] = relu(sum[f] X[b,f] * W1[f,h])\nZ[b,l] = sum[h] H[b,h] * W2[h,l]\noutput Z\n"));
}

TEST(Links, WhatCrossesIsWorkedOutByHand) {
  // Each site has an eighth of the rows, and needs both weights. Each of the two groups has half of them.
  const Machine machine = machine_of("p2-server", 8);
  const EinGraph graph = two_products();
  const PlanCosts costs = costs_of(graph, planned("data", graph, machine), machine);
  ASSERT_EQ(costs.crossing.size(), 1U);
  EXPECT_EQ(costs.crossing.front(), 2 * 4 * (1024 * 2048 + 2048 * 1024) / 2);
}

TEST(Links, SitesAreNumberedSoThatLittleCrossesSlowOnes) {
  Machine slow = machine_of("p2-server", 8);
  slow.links.front().bandwidth /= 100;
  Machine flat = slow;
  flat.links.clear();
  const EinGraph graph = two_products();
  for (const char* const planner : {"kcut", "model", "data", "sqrt"}) {
    const PlanCosts with = costs_of(graph, planned(planner, graph, slow), slow);
    const PlanCosts without = costs_of(graph, planned(planner, graph, flat), slow);
    EXPECT_LE(with.seconds, without.seconds * (1 + 1e-9)) << planner;
  }
  EXPECT_LE(costs_of(graph, planned("eindecomp", graph, slow), slow).seconds,
            1.01 * costs_of(graph, planned("kcut", graph, slow), slow).seconds);
}

}  // namespace
}  // namespace einrel::test
