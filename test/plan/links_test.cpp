#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "machine/machines.h"
#include "plan/layout.h"
#include "plan/planners/planner.h"
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

/// Digits of a site's number that are no powers of two, in any order: a matrix cut along both dimensions, with copies.
Layout layout_of_digits(Random& random, std::int64_t sites) {
  std::vector<std::int64_t> counts(3, 1);  // rows, columns, copies
  std::int64_t left = sites;
  for (std::int64_t& count : counts) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t divisor = 1; divisor <= left; ++divisor) {
      if (left % divisor == 0) divisors.push_back(divisor);
    }
    count = divisors[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(divisors.size()) - 1))];
    left /= count;
  }
  std::vector<std::int64_t> strides(3, 0);
  std::vector<std::size_t> order{0, 1, 2};
  for (std::size_t i = 2; i > 0; --i)
    std::swap(order[i], order[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(i)))]);
  std::int64_t stride = 1;
  for (const std::size_t digit : order) {
    if (counts[digit] == 1) continue;
    strides[digit] = stride;
    stride *= counts[digit];
  }
  Layout layout;
  for (std::size_t d = 0; d < 2; ++d) layout.axes.push_back({{counts[d], 1}, counts[d], strides[d]});
  if (counts[2] > 1) layout.copies.push_back({counts[2], strides[2]});
  return layout;
}

std::set<std::pair<std::int64_t, std::int64_t>> elements_of_matrix(const Layout& layout, const Shape& bound,
                                                                   std::int64_t site) {
  std::int64_t number = 0;
  std::vector<std::int64_t> at;
  for (const LayoutAxis& axis : layout.axes) {
    at.push_back(axis.grid == 1 ? 0 : site / axis.stride % axis.grid);
    number += at.back() * axis.stride;
  }
  for (const SiteCopies& copies : layout.copies) number += site / copies.stride % copies.count * copies.stride;
  std::set<std::pair<std::int64_t, std::int64_t>> elements;
  if (number != site) return elements;
  const auto begin = [&](std::size_t d, std::int64_t part) { return chunk_begin(bound[d], layout.axes[d].cut, part); };
  for (std::int64_t i = begin(0, at[0]); i < begin(0, at[0] + 1); ++i) {
    for (std::int64_t j = begin(1, at[1]); j < begin(1, at[1] + 1); ++j) elements.emplace(i, j);
  }
  return elements;
}

TEST(Links, GroupsOfAnySizeReceiveWhatNoneOfTheirSitesHas) {
  const Shape bound{Extent(13), Extent(17)};
  Random random(10);
  for (int round = 0; round < rounds(400); ++round) {
    const std::int64_t sites =
        std::vector<std::int64_t>{5, 6, 8, 10, 12}[static_cast<std::size_t>(random.between(0, 4))];
    const Layout have = layout_of_digits(random, sites);
    const Layout need = layout_of_digits(random, sites);
    for (const std::int64_t size : {2, 3, 4, 5, 8}) {
      std::vector<std::int64_t> wanted;
      for (std::int64_t first = 0; first < sites; first += size) {
        std::set<std::pair<std::int64_t, std::int64_t>> has;
        std::set<std::pair<std::int64_t, std::int64_t>> needs;
        for (std::int64_t site = first; site < std::min(first + size, sites); ++site) {
          has.merge(elements_of_matrix(have, bound, site));
          needs.merge(elements_of_matrix(need, bound, site));
        }
        wanted.push_back(std::count_if(needs.begin(), needs.end(), [&](const auto& e) { return has.count(e) == 0; }));
      }
      EXPECT_EQ(elements_crossing(have, need, bound, sites, size), wanted) << round << ", " << sites << " in " << size;
    }
  }
}

TEST(Links, PartialResultsCrossToTheirOwnersFromAllOtherGroups) {
  // A product of which 6 sites have a part each, shared out by rows: 4 of them in the first group, 2 in the second.
  const EinGraph graph = einrel::graph_of(
      std::string("dims i=60 k=60 j=10\ninput A[i,k], B[k,j]\nC[i,j] = sum[k] A[i,k] * B[k,j]\noutput C\n"));
  Plan plan{"", 6, {one_part_per_site({1, 1}), one_part_per_site({1, 1}), one_part_per_site({1, 1, 1})}};
  const Vertex& product = graph.vertices[2];
  const std::vector<std::string> labels = label_names(product);
  const auto place = [&](const char* label) {
    return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
  };
  VertexPlan& vertex = plan.vertices[2];
  vertex.grid[place("k")] = 6;
  vertex.parts[place("k")] = 6;
  vertex.parts[place("i")] = 6;
  vertex.scatter = place("i");
  number_sites(graph, plan);
  // Each site owns 10 rows of 10, and receives as many from each of the others.
  EXPECT_EQ(parts_crossing(product, plan.vertices[2], 6, 4), (std::vector<std::int64_t>{4 * 2 * 100, 2 * 4 * 100}));
  EXPECT_EQ(parts_crossing(product, plan.vertices[2], 6, 3), (std::vector<std::int64_t>{3 * 3 * 100, 3 * 3 * 100}));
}

TEST(Links, AnAllReduceTakesAsLongAsGatheringSumsAndCopyingThem) {
  const EinGraph graph = einrel::graph_of(
      std::string("dims i=64 k=64 j=8\ninput A[i,k], B[k,j]\nC[i,j] = sum[k] A[i,k] * B[k,j]\nD[i,j] = relu(C[i,j])\n"
                  "output D\n"));
  Machine machine = machine_of("p2-server", 8);
  machine.links.front().bandwidth /= 1e6;  // all else takes less than what crosses
  Plan plan{"", 8, {one_part_per_site({8, 1}), one_part_per_site({8, 1})}};
  for (const std::size_t v : {2U, 3U}) {
    plan.vertices.push_back(one_part_per_site(PartitionVector(label_names(graph.vertices[v]).size(), 1)));
    plan.vertices[v].copies = {{8, 1}};
  }
  const std::vector<std::string> labels = label_names(graph.vertices[2]);
  const auto place = [&](const char* label) {
    return static_cast<std::size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
  };
  VertexPlan& product = plan.vertices[2];
  product.copies.clear();
  product.grid[place("k")] = product.parts[place("k")] = 8;
  product.strides[place("k")] = 1;
  product.all_reduced = true;
  const PlanCosts at_once = costs_of(graph, plan, machine);
  product.all_reduced = false;
  const PlanCosts in_two = costs_of(graph, plan, machine);
  const double wanted = in_two.vertices[2].moving + in_two.vertices[3].moving;
  EXPECT_GT(in_two.vertices[3].moving, 0.1 * wanted);
  EXPECT_NEAR(at_once.vertices[2].moving, wanted, 1e-9 * wanted);
  EXPECT_EQ(at_once.vertices[3].moving, 0);
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
  for (const std::int64_t sites : {5, 6, 8}) {
    slow.sites = sites;
    flat.sites = sites;
    for (const char* const planner : {"kcut", "model", "data", "sqrt"}) {
      const PlanCosts with = costs_of(graph, planned(planner, graph, slow), slow);
      const PlanCosts without = costs_of(graph, planned(planner, graph, flat), slow);
      EXPECT_LE(with.seconds, without.seconds * (1 + 1e-9)) << planner << " on " << sites;
    }
  }
  EXPECT_LE(costs_of(graph, planned("eindecomp", graph, slow), slow).seconds,
            1.01 * costs_of(graph, planned("kcut", graph, slow), slow).seconds);
}

}  // namespace
}  // namespace einrel::test
