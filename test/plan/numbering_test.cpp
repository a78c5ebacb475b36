#include "plan/refine/numbering.h"

#include <gtest/gtest.h>

#include "plan/cost/cost.h"
#include "support/program.h"

namespace einrel::test {
namespace {

/// B goes to two sites each, which want two parts of it along k: each of them has one, whichever labels are whole.
TEST(Inputs, ThatSitesWantInPartsAndInCopiesAreSpreadByTheseParts) {
  const EinGraph graph =
      einrel::graph_of("dims i=8 j=8 k=8\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\noutput C\n");
  Plan plan{"by hand", 4, {one_part_per_site({2, 2}), one_part_per_site({2, 1}), one_part_per_site({2, 1, 2})}};
  plan.vertices[2].parts[1] = 2;
  plan.vertices[2].scatter = 1;
  number_sites(graph, plan);
  EXPECT_EQ(plan.vertices[1].parts, (PartitionVector{2, 2}));
  EXPECT_EQ(plan.vertices[1].grid, (PartitionVector{2, 2}));
  // A quarter of B, and of the half of C that a site finds partial results of the half that it owns.
  constexpr std::int64_t quarter = 8 * 8 * 4 / 4;
  EXPECT_EQ(costs_of(graph, plan, {}).received, std::vector<std::int64_t>(4, quarter + quarter));
}

}  // namespace
}  // namespace einrel::test
