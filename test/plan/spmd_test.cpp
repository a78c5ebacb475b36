#include "plan/spmd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "plan/planners/planner.h"
#include "plan/planners/runner_up.h"
#include "random_product.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/random_plan.h"

namespace einrel::test {
namespace {

/// What part of a dimension of `extent` elements each site has, by the definition of a plan: begin and end.
using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// The coordinates, as digits of a mesh, that the site has along a label: of mixed radix, the major first.
std::vector<std::int64_t> digits_of_site(std::int64_t site, std::int64_t sites) {
  std::vector<std::int64_t> digits;
  for (std::int64_t prime = 2; sites > 1; ++prime) {
    while (sites % prime == 0) {
      sites /= prime;
      digits.push_back(site / sites);
      site %= sites;
    }
  }
  return digits;
}

/// Whether the coordinate is a number of neighbouring digits, the same ones on all sites.
bool is_made_of_digits(const std::vector<std::int64_t>& coordinates) {
  const auto sites = static_cast<std::int64_t>(coordinates.size());
  const std::size_t axes = digits_of_site(0, sites).size();
  for (std::size_t begin = 0; begin <= axes; ++begin) {
    for (std::size_t end = begin; end <= axes; ++end) {
      std::vector<std::vector<std::int64_t>> all;
      for (std::int64_t site = 0; site < sites; ++site) {
        const std::vector<std::int64_t> digits = digits_of_site(site, sites);
        all.emplace_back(digits.begin() + static_cast<std::ptrdiff_t>(begin),
                         digits.begin() + static_cast<std::ptrdiff_t>(end));
      }
      std::set<std::vector<std::int64_t>> different(all.begin(), all.end());
      const std::vector<std::vector<std::int64_t>> ordered(different.begin(), different.end());
      bool agrees = true;
      for (std::size_t site = 0; site < all.size(); ++site) {
        const auto at = std::find(ordered.begin(), ordered.end(), all[site]) - ordered.begin();
        agrees = agrees && at == coordinates[site];
      }
      if (agrees) return true;
    }
  }
  return false;
}

/// What is wrong with a vertex's plan for a single program, found site by site; "" if nothing is.
std::string found_fault(const Vertex& vertex, const VertexPlan& plan, std::int64_t sites) {
  const std::vector<std::size_t> reduced = reduced_labels(vertex);
  std::int64_t partial = 1;
  for (const std::size_t label : reduced) partial *= plan.grid[label];
  std::set<std::vector<std::int64_t>> boxes;
  std::int64_t computing = 1;
  for (std::size_t l = 0; l < plan.grid.size(); ++l) {
    std::vector<std::int64_t> coordinates;
    for (std::int64_t site = 0; site < sites; ++site)
      coordinates.push_back(plan.grid[l] == 1 ? 0 : site / plan.strides[l] % plan.grid[l]);
    if (!is_made_of_digits(coordinates)) return "no axes";
    const std::int64_t shares = plan.scatter == l ? partial : 1;
    if (plan.parts[l] != plan.grid[l] * shares) return "not one part each";
    if (label_extents(vertex)[l].value() % plan.parts[l] != 0) return "uneven";
    computing *= plan.grid[l];
  }
  for (const SiteCopies& copies : plan.copies) computing *= copies.count;
  if (computing != sites) return "idle";
  for (std::int64_t site = 0; site < sites; ++site) {
    std::vector<std::int64_t> box;
    for (std::size_t l = 0; l < plan.grid.size(); ++l)
      box.push_back(plan.grid[l] == 1 ? 0 : site / plan.strides[l] % plan.grid[l]);
    boxes.insert(box);
  }
  if (static_cast<std::int64_t>(boxes.size()) != sites_used(plan)) return "digits overlap";
  if (partial > 1 && !plan.scatter && !plan.all_reduced) return "one owner";
  return "";
}

TEST(Spmd, EveryPlannerKeepsToOneProgram) {
  int plans = 0;
  int refused = 0;
  std::vector<std::string> texts = plannable_programs();
  texts.emplace_back("dims y=8 d=3 k=64\ninput G[k,y], K[k,d]\nP[y] = sum[k,d] pad(G[k,y-d], 0) * K[k,d]\n");
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    std::string text = "dims";
    for (const char label : std::string("ijklm"))
      text += std::string(" ") + label + "=" + std::to_string(1LL << random.between(0, 4));
    text += "\ninput A[i,j], B[j,k], C[k,l], D[l,m]\n";
    Named last{"A", "ij"};
    for (const Named& next : std::vector<Named>{{"B", "jk"}, {"C", "kl"}, {"D", "lm"}}) {
      const auto [statement, made] = random_product(random, "P" + next.first, last, next, 0.7);
      text += statement;
      last = made;
    }
    texts.push_back(text);
  }
  for (const std::string& text : texts) {
    const EinGraph graph = einrel::graph_of(text);
    for (const std::int64_t sites : {1, 2, 4, 6, 8}) {
      for (const Planner& planner : all_planners()) {
        PlanRequest request{sites, {}, CostKind::seconds, std::nullopt};
        request.spmd = true;
        const Planned planned = planner.plan(graph, request);
        const auto* const plan = std::get_if<Plan>(&planned);
        (plan == nullptr ? refused : plans) += 1;
        if (planner.name == "eindecomp") {
          ASSERT_NE(plan, nullptr) << text << std::get<std::string>(planned);
        }
        if (plan == nullptr) continue;
        for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
          EXPECT_EQ(found_fault(graph.vertices[v], plan->vertices[v], sites), "")
              << planner.name << " on " << sites << ": " << graph.vertices[v].name << "\n"
              << text;
          if (is_input(graph.vertices[v])) continue;
          const PartitionVector most = most_parts(graph.vertices[v], graph);
          for (std::size_t l = 0; l < most.size(); ++l) EXPECT_LE(plan->vertices[v].parts[l], most[l]) << text;
        }
      }
    }
  }
  EXPECT_GT(plans, 400);
  EXPECT_GT(refused, 20);  // uneven parts
}

/// All digits of a site's number, each given to a label or to copies: every plan there is of one part each.
void add_all_plans(std::size_t label, const std::vector<std::int64_t>& numbers, VertexPlan& plan,
                   std::vector<VertexPlan>& found) {
  if (label < plan.grid.size()) {
    for (const std::int64_t grid : numbers) {
      for (const std::int64_t stride : numbers) {
        if (grid == 1 && stride != 1) continue;
        plan.grid[label] = plan.parts[label] = grid;
        plan.strides[label] = grid == 1 ? 0 : stride;
        add_all_plans(label + 1, numbers, plan, found);
      }
    }
    return;
  }
  found.push_back(plan);
  for (const std::int64_t count : numbers) {
    for (const std::int64_t stride : numbers) {
      if (count == 1) continue;
      found.push_back(plan);
      found.back().copies = {{count, stride}};
    }
  }
}

/// Every plan of a vertex that is right for a single program, by trying all numbers.
std::vector<VertexPlan> all_spmd_plans(const EinGraph& graph, std::size_t v, std::int64_t sites) {
  const Vertex& vertex = graph.vertices[v];
  VertexPlan start = one_part_per_site(PartitionVector(label_extents(vertex).size(), 1));
  std::vector<VertexPlan> tried;
  add_all_plans(0, divisors_of(sites), start, tried);
  std::vector<VertexPlan> right;
  const auto keep = [&](const VertexPlan& plan) {
    if (found_fault(vertex, plan, sites).empty() && copies_fault(vertex, plan).empty()) right.push_back(plan);
  };
  for (const VertexPlan& plan : tried) {
    const std::int64_t partial = partial_sites(vertex, plan);
    if (partial == 1) keep(plan);
    if (partial == 1) continue;
    VertexPlan on_all = plan;
    on_all.all_reduced = true;
    keep(on_all);
    for (const std::size_t label : std::get<EinSum>(vertex.op).output) {
      VertexPlan shared = plan;
      shared.scatter = label;
      shared.parts[label] *= partial;
      if (numbers_scatter(vertex, shared)) keep(shared);
    }
  }
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (const VertexPlan& plan : right) fewest = std::min(fewest, copies_of(plan));
  if (is_input(vertex)) std::erase_if(right, [&](const VertexPlan& plan) { return copies_of(plan) > fewest; });
  return right;
}

TEST(Spmd, FindsTheCheapestOfAllPlansOfOneProgram) {
  for (const std::string text : {"dims i=64 j=16 k=4\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n",
                                 "dims i=8 j=512 k=8\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n",
                                 "dims i=256 j=64\ninput X[i,j]\nS[] = sum[i,j] X[i,j] * X[i,j]\n"
                                 "Z[i,j] = X[i,j] / S[]\n",
                                 "dims i=64 j=64\ninput X[i,j]\nM[i] = max[j] X[i,j]\nZ[j,i] = X[i,j] - M[i]\n"}) {
    const EinGraph graph = einrel::graph_of(text);
    for (const std::int64_t sites : {2, 4}) {
      std::vector<std::vector<VertexPlan>> ways;
      for (std::size_t v = 0; v < graph.vertices.size(); ++v) ways.push_back(all_spmd_plans(graph, v, sites));
      Plan plan{"all", sites, std::vector<VertexPlan>(graph.vertices.size())};
      double least = std::numeric_limits<double>::infinity();
      const auto visit = [&](const auto& self, std::size_t v) -> void {
        if (v == ways.size()) {
          least = std::min(least, costs_of(graph, plan, {}).seconds);
          return;
        }
        for (const VertexPlan& way : ways[v]) {
          plan.vertices[v] = way;
          self(self, v + 1);
        }
      };
      visit(visit, 0);
      PlanRequest request{sites, {}, CostKind::seconds, std::nullopt};
      request.spmd = true;
      const Planned planned = planner_named("eindecomp").plan(graph, request);
      ASSERT_TRUE(std::holds_alternative<Plan>(planned)) << std::get<std::string>(planned);
      EXPECT_NEAR(costs_of(graph, std::get<Plan>(planned), {}).seconds, least, 1e-9 * least) << text << sites;
    }
  }
}

TEST(Spmd, WhatMovesHasCollectives) {
  const EinGraph graph =
      einrel::graph_of("dims i=8 j=8 k=8\ninput X[i,j,k]\nY[i,j,k] = exp(X[i,j,k])\nZ[i,j,k] = exp(Y[i,j,k])\n");
  const auto cut = [](PartitionVector grid, std::vector<Site> strides) {
    VertexPlan plan = one_part_per_site(std::move(grid));
    plan.strides = std::move(strides);
    return plan;
  };
  const VertexPlan apart = cut({2, 2, 2}, {4, 2, 1});
  const VertexPlan swapped = cut({2, 2, 2}, {2, 4, 1});
  const VertexPlan both = cut({4, 2, 1}, {1, 4, 0});  // i and j swap axes, and that of k goes to i
  EXPECT_EQ(spmd_fault(graph, {"given", 8, {apart, apart, swapped}}), "");
  EXPECT_EQ(spmd_fault(graph, {"given", 8, {apart, apart, both}}),
            "no single program for all sites computes Z: Y would have to be cut anew in a way that has no collectives: "
            "axes of the mesh change their dimensions while others change places");
}

TEST(Spmd, OtherCutsAreOfOneProgram) {
  int looked_at = 0;
  for (const std::string& text : plannable_programs()) {
    const EinGraph graph = einrel::graph_of(text);
    for (const std::int64_t sites : {4, 6}) {
      PlanRequest request{sites, {}, CostKind::seconds, std::nullopt};
      request.spmd = true;
      const Planned planned = planner_named("single").plan(graph, request);
      const auto* const plan = std::get_if<Plan>(&planned);
      if (plan == nullptr) continue;
      for (const OtherCuts& others : other_cuts(graph, *plan, {}, CostKind::seconds, 4)) {
        const Vertex& vertex = graph.vertices[others.vertices.front()];
        for (const RunnerUp& other : others.best) {
          ++looked_at;
          EXPECT_EQ(found_fault(vertex, other.plan, sites), "") << vertex.name << " on " << sites << "\n" << text;
        }
      }
    }
  }
  EXPECT_GT(looked_at, 50);
}

TEST(Spmd, TheMeshHasThePrimeFactorsOfTheSites) {
  EXPECT_EQ(mesh_of(12), (std::vector<MeshAxis>{{2, 6}, {2, 3}, {3, 1}}));
  EXPECT_TRUE(mesh_of(1).empty());
  EXPECT_EQ(axes_of(mesh_of(12), 6, 1), (std::vector<std::size_t>{1, 2}));
  EXPECT_FALSE(axes_of(mesh_of(12), 4, 1));
  EXPECT_EQ(axes_of(mesh_of(8), 4, 2), (std::vector<std::size_t>{0, 1}));
}

}  // namespace
}  // namespace einrel::test
