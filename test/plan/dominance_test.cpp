#include "plan/search/dominance.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "plan/planners/eindecomp.h"
#include "plan/planners/planner.h"
#include "support/program.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

/// Counts what passes through.
Candidates counted(Candidates candidates, std::size_t& count) {
  return [candidates = std::move(candidates), &count](const Vertex& vertex, std::size_t v) {
    std::vector<VertexPlan> found = candidates(vertex, v);
    count += found.size();
    return found;
  };
}

/// A chain of products of random extents.
std::string random_chain(Random& random) {
  std::string dims = "dims";
  std::string text =
      "\ninput A[a,b], B[b,c], C[c,d], D[d,e]\nAB[a,c] = sum[b] A[a,b] * B[b,c]\n"
      "CD[c,e] = sum[d] C[c,d] * D[d,e]\nZ[a,e] = sum[c] AB[a,c] * CD[c,e]\n";
  for (const char label : {'a', 'b', 'c', 'd', 'e'}) {
    dims += std::string(" ") + label + "=" + std::to_string(random.between(100, 9000));
  }
  return dims + text;
}

TEST(Dominance, LosesNoOptimumOfTreesAndDropsManyOfTheirCandidates) {
  std::size_t all = 0;
  std::size_t left = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const std::string text = random_chain(random);
    SCOPED_TRACE(text);
    const EinGraph graph = einrel::graph_of(text);
    const std::int64_t sites = random.between(2, 200);
    for (const CostKind kind : {CostKind::floats, CostKind::bytes, CostKind::seconds}) {
      const auto model = cost_model(kind, {});
      const Candidates every = site_candidates(graph, sites, {}, kind);
      const SearchSpace full(graph, *model, counted(every, all));
      const SearchSpace small(graph, *model, counted(undominated(graph, *model, sites, every, {}), left));
      const double best = full.cost(full.by_paths(true));  // optimal: nothing is read twice
      EXPECT_NEAR(small.cost(small.by_paths(true)), best, 1e-9 * best);
    }
  }
  EXPECT_LT(left, all * 2 / 3) << "of " << all;
}

TEST(Dominance, KeepsWhatPlansToStartFromHave) {
  const EinGraph graph =
      einrel::graph_of("dims i=6400 j=3200 k=9600\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n");
  const auto model = cost_model(CostKind::seconds, {});
  const Plan single = std::get<Plan>(planner_named("single").plan(graph, {8, {}, CostKind::seconds, std::nullopt}));
  const Candidates all = site_candidates(graph, 8, {}, CostKind::seconds);
  const SearchSpace space(graph, *model, undominated(graph, *model, 8, all, {single}));
  EXPECT_TRUE(space.choice_of(single).has_value());
  EXPECT_FALSE(SearchSpace(graph, *model, undominated(graph, *model, 8, all, {})).choice_of(single).has_value());
}

TEST(SearchSpace, TakesNothingThatIsLeftOut) {
  Random random(0);
  const EinGraph graph = einrel::graph_of(random_chain(random));
  const auto model = cost_model(CostKind::seconds, {});
  SearchSpace space(graph, *model, site_candidates(graph, 12, {}, CostKind::seconds));
  const auto is_cut_first = [](const VertexPlan& plan) { return plan.grid.front() > 1; };
  const auto cut_first = [&](const SearchSpace::Choice& choice) {
    int count = 0;
    for (std::size_t v = 0; v < choice.size(); ++v) count += is_cut_first(space.candidates(v)[choice[v]]) ? 1 : 0;
    return count;
  };
  EXPECT_GT(cut_first(space.by_beam(1000)), 0);
  EXPECT_TRUE(space.leave_out(is_cut_first));
  SearchSpace::Choice choice = space.by_beam(1000);
  space.improve(choice);
  EXPECT_EQ(cut_first(choice), 0);
  EXPECT_EQ(cut_first(space.by_paths(true)), 0);
  EXPECT_FALSE(space.leave_out([](const VertexPlan&) { return false; }));
}

}  // namespace
}  // namespace einrel::test
