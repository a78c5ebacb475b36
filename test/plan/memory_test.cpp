#include "plan/cost/memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "plan/cost/cost.h"
#include "plan/cost/least_memory.h"
#include "plan/planners/planner.h"
#include "plan/planners/within_memory.h"
#include "plan/refine/finer_parts.h"
#include "plan/refine/numbering.h"
#include "support/program.h"

namespace einrel::test {
namespace {

using testing::HasSubstr;

/// One part per site of every vertex by name; inputs lie as their readers need them.
Plan plan_of(const EinGraph& graph, std::int64_t sites, const std::map<std::string, PartitionVector>& grids) {
  Plan plan{"", sites, {}};
  for (const Vertex& vertex : graph.vertices) {
    const auto grid = grids.find(vertex.name);
    const std::size_t labels = label_extents(vertex).size();
    plan.vertices.push_back(one_part_per_site(grid != grids.end() ? grid->second : PartitionVector(labels, 1)));
  }
  number_sites(graph, plan);
  return plan;
}

std::string described(const EinGraph& graph, const SitePeak& peak) {
  std::string text =
      std::to_string(peak.bytes) + " on " + std::to_string(peak.site) + " at " + graph.vertices[peak.vertex].name + ":";
  for (const HeldTensor& held : peak.tensors) {
    text +=
        " " + std::string(name_of(held.as)) + " " + graph.vertices[held.vertex].name + " " + std::to_string(held.bytes);
  }
  return text;
}

EinGraph product(std::int64_t extent) {
  const std::string n = std::to_string(extent);
  return einrel::graph_of("dims i=" + n + " j=" + n + " k=" + n +
                          "\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\n");
}

TEST(Peak, OfOneSiteIsWhatIsAlive) {
  const EinGraph graph = einrel::graph_of("dims i=10\ninput X[i]\nY[i] = exp(X[i])\nZ[i] = Y[i] + 1\noutput Z\n");
  EXPECT_EQ(described(graph, peak_of(graph, plan_of(graph, 1, {}))), "80 on 0 at Y: stored X 40 stored Y 40");
  const EinGraph kept = einrel::graph_of("dims i=10\ninput X[i]\nY[i] = exp(X[i])\nZ[i] = Y[i] + 1\noutput Y, Z, X\n");
  EXPECT_EQ(described(kept, peak_of(kept, plan_of(kept, 1, {}))), "120 on 0 at Z: stored X 40 stored Y 40 stored Z 40");
}

TEST(Peak, OfEverySiteIsTheMostThatItHoldsAtAnyTime) {
  const EinGraph graph = einrel::graph_of("dims i=10\ninput X[i]\nY[i] = exp(X[i])\nZ[] = sum[i] Y[i]\noutput Z\n");
  Plan plan = plan_of(graph, 3, {{"Y", {2}}, {"Z", {1}}});
  const SitePeak peak = peak_of(graph, plan);
  // Of X and Y each of two has half, 20; then site 0 has its half of Y, all of Y as Z needs it, and Z: 20 + 40 + 4.
  EXPECT_EQ(peak.by_site, (std::vector<std::int64_t>{64, 40, 0})) << described(graph, peak);
}

TEST(Peak, CountsWhatIsMadeBetweenTheJoinsOfAVertex) {
  const EinGraph graph =
      einrel::graph_of("dims i=4 j=6 k=8\ninput A[i,j], B[j,k], C[i,k]\nZ[i] = max[j,k] (A[i,j] + B[j,k]) * C[i,k]\n");
  EXPECT_EQ(described(graph, peak_of(graph, plan_of(graph, 1, {}))),
            "1200 on 0 at Z: between Z 768 stored B 192 stored C 128 stored A 96 stored Z 16");
}

TEST(FinerParts, AreCutAlongWhatOperandsAreCutAlong) {
  const EinGraph graph =
      einrel::graph_of("dims i=64 j=64\ninput X[i,j]\nY[j,i] = exp(X[i,j])\nZ[j] = sum[i] Y[j,i] * X[i,j]\n");
  Plan plan = plan_of(graph, 1, {{"Y", {1, 1}}});
  plan.vertices[1].parts = {1, 4};
  make_parts_finer(graph, plan, {16384, 12288, 8448}, InputParts::of_chunks);
  EXPECT_EQ(plan.vertices[1].parts, (PartitionVector{1, 4}));
  const VertexPlan& z = plan.vertices[2];
  EXPECT_EQ(result_parts(graph.vertices[2], z.parts), PartitionVector{1});
  EXPECT_EQ(z.parts[reduced_labels(graph.vertices[2]).front()], 4);
  EXPECT_EQ(plan.vertices[0].parts, (PartitionVector{4, 1}));
}

TEST(FinerParts, OfOperandsAreNoLargerThanTheirReaderWants) {
  const EinGraph graph = einrel::graph_of("dims i=64 j=6\ninput X[i,j]\nY[i,j] = exp(X[i,j])\nZ[j,i] = Y[i,j] + 1\n");
  Plan plan = plan_of(graph, 1, {});
  plan.vertices[1].parts = {2, 1};
  plan.vertices[2].parts = {4, 32};
  EXPECT_TRUE(cut_operands(graph, plan, 2, InputParts::of_chunks));
  EXPECT_EQ(plan.vertices[1].parts, (PartitionVector{32, 4}));
  EXPECT_FALSE(cut_operands(graph, plan, 2, InputParts::of_chunks));
  EXPECT_EQ(calls_of(graph, plan), 2.0 * 32 * 4);
}

TEST(FinerParts, AreCutWhereReadersHaveAConstant) {
  const EinGraph graph = einrel::graph_of(
      "dims t=64 b=100\ninput X[t,b]\nA[t,b] = exp(X[t,b])\nY[b] = A[3,b] * A[60,b]\nZ[b] = Y[b] + A[5,b]\noutput Z\n");
  Plan plan = plan_of(graph, 1, {});
  make_parts_finer(graph, plan, {25600, 3 * 6400, 25600, 25600},
                   InputParts::of_chunks);  // a part and its result, twice, take 3 * 6400
  EXPECT_EQ(plan.vertices[1].parts, (PartitionVector{4, 1}));
  EXPECT_EQ(copies_of(graph, plan, InputParts::of_chunks), 3) << "one part of A for each time that it is read";
}

TEST(Peak, CountsTheValuesThatAreComparedWithTheExtremeWhereItsLabelsAreCut) {
  const std::string dims = "dims i=4 j=6 k=8\ninput A[i,j], B[j,k]\n";
  for (const auto& [statement, between] : std::map<std::string, std::int64_t>{
           {"M[i,k] = argmax[j] A[i,j] * B[j,k]", 4 * 6 * 8 * 4}, {"M[i] = argmax[j] A[i,j]", 0}}) {
    const EinGraph graph = einrel::graph_of(dims + statement + "\n");
    Plan plan = plan_of(graph, 1, {});
    const std::size_t j = reduced_labels(graph.vertices[2]).front();
    const std::int64_t whole = peak_of(graph, plan).bytes;
    plan.vertices[2].parts[j] = 2;
    const SitePeak peak = peak_of(graph, plan);
    const auto held = std::find_if(peak.tensors.begin(), peak.tensors.end(),
                                   [](const HeldTensor& each) { return each.as == HeldAs::between; });
    EXPECT_EQ(held == peak.tensors.end() ? 0 : held->bytes, between) << statement;
    EXPECT_GT(peak.bytes, whole);
    plan.vertices[2].parts[j] = 1;
    EXPECT_EQ(peak_of(graph, plan).bytes, whole);
  }
}

TEST(Peak, CountsAPartialResultOfEveryPartThatIsNotReducedOntoOne) {
  for (const auto& [reducer, partial] :
       std::map<std::string, std::int64_t>{{"sum", 0}, {"max", 0}, {"logsumexp", 3 * 4 * 8 * 4}}) {
    const EinGraph graph =
        einrel::graph_of("dims i=4 j=6 k=8\ninput A[i,j], B[j,k]\nZ[i,k] = " + reducer + "[j] (A[i,j] + B[j,k])\n");
    Plan plan = plan_of(graph, 1, {});
    plan.vertices[0].parts = {1, 3};
    plan.vertices[1].parts = {3, 1};
    const std::int64_t whole = peak_of(graph, plan_of(graph, 1, {})).bytes;
    plan.vertices[2].parts[reduced_labels(graph.vertices[2]).front()] = 3;
    EXPECT_EQ(peak_of(graph, plan).bytes - whole, partial) << reducer;
  }
}

TEST(Peak, CountsCopiesWhereTheTensorDoesNotLie) {
  const EinGraph graph = product(8);
  // Half of A is needed on two sites, of which each has half of that, cut along j: so they make a chunk of all of it.
  const Plan plan = plan_of(graph, 4, {{"C", {2, 2, 1}}});
  EXPECT_EQ(described(graph, peak_of(graph, plan)),
            "448 on 0 at C: copy A 128 copy B 128 stored A 64 stored B 64 stored C 64");
  // A in two chunks on sites 0 and 2, B on 0 and 1: the others receive these very chunks.
  Plan first = plan;
  first.vertices[0] = {{2, 1}, {2, 1}, {2, 0}};
  first.vertices[1] = {{1, 2}, {1, 2}, {0, 1}};
  EXPECT_EQ(described(graph, peak_of(graph, first)), "320 on 0 at C: stored A 128 stored B 128 stored C 64");
}

TEST(Peak, CountsThePartialResultsOfAGroupAtTheOwner) {
  const EinGraph graph = product(8);
  const auto& einsum = std::get<EinSum>(graph.vertices.back().op);
  PartitionVector grid(3, 1);
  grid[einsum.reduced.front()] = 4;
  const SitePeak peak = peak_of(graph, plan_of(graph, 4, {{"C", grid}}));
  EXPECT_EQ(described(graph, peak), "1408 on 0 at C: partial C 1024 stored C 256 stored A 64 stored B 64");
}

TEST(Peak, CountsThePartialResultsOfAPieceAtEveryOwnerOfOne) {
  const EinGraph graph = product(8);
  const auto& einsum = std::get<EinSum>(graph.vertices.back().op);
  PartitionVector grid(3, 1);
  grid[einsum.reduced.front()] = 4;
  Plan plan = plan_of(graph, 4, {{"C", grid}});
  plan.vertices.back().parts[einsum.output.front()] = 4;
  plan.vertices.back().scatter = einsum.output.front();
  const SitePeak peak = peak_of(graph, plan);
  // Its own part of all of C, and those of three others of its two rows; A's chunk has become four.
  EXPECT_EQ(described(graph, peak), "704 on 0 at C: partial C 448 stored A 64 copy A 64 stored B 64 stored C 64");
  EXPECT_EQ(least_memory_of(graph, graph.vertices.back(), plan.vertices.back()), 704 - 64);
}

TEST(Peak, KeepsACopyUntilItsLastReader) {
  const EinGraph graph = einrel::graph_of(R"(
    dims i=9 j=8 m=12
    input x[j], w[i,j], B[i,j,m]
    P[i] = sum[j] x[j] * w[i,j]
    Q[i] = exp(P[i])
    R[i,m] = sum[j] B[i,j,m] * x[j]
    output Q, R
  )");
  Plan plan = plan_of(graph, 2, {{"P", {2, 1}}, {"Q", {2}}, {"R", {2, 1, 1}}});
  plan.vertices.front() = one_part_per_site({2});  // x, so that both sites receive the other half for P
  EXPECT_EQ(described(graph, peak_of(graph, plan)),
            "2228 on 0 at R: stored B 1920 stored R 240 copy x 32 stored Q 20 stored x 16");
}

TEST(Peak, CountsAllChunksThatAreCutAnew) {
  const EinGraph graph = einrel::graph_of(
      "dims i=8 j=8\ninput X[i,j]\nY[i,j] = exp(X[i,j])\nZ[i,j] = Y[i,j] + 1\n"
      "output Z\n");
  // A site has 4 rows of Y, and needs 4 columns for Z, of which it makes chunks of their own.
  EXPECT_EQ(described(graph, peak_of(graph, plan_of(graph, 2, {{"Y", {2, 1}}, {"Z", {1, 2}}}))),
            "384 on 0 at Z: stored Y 128 copy Y 128 stored Z 128");
}

TEST(Peak, IsAtLeastWhatEachVertexNeeds) {
  const EinGraph graph = product(24);
  for (const std::int64_t sites : {1, 2, 3, 4, 6, 8, 12}) {
    for (const PartitionVector& grid : site_grids(most_parts(graph.vertices.back(), graph), sites)) {
      const Plan plan = plan_of(graph, sites, {{"C", grid}});
      EXPECT_GE(peak_of(graph, plan).bytes, least_memory_of(graph, graph.vertices.back(), plan.vertices.back()));
      EXPECT_GE(peak_of(graph, plan).bytes, least_peak_of(graph, plan.sites).bytes);
    }
  }
}

PlanRequest request(std::int64_t sites, CostKind cost, std::int64_t memory) { return {sites, {}, cost, {}, memory}; }

TEST(Limit, IsMetByADearerPlan) {
  const EinGraph graph = product(512);
  Machine machine;
  machine.network_latency = 1e-6;  // with a laptop's, the fastest plan is the one that needs least memory
  const auto plan_within = [&](CostKind cost, std::optional<std::int64_t> memory) {
    return std::get<Plan>(planner_named("eindecomp").plan(graph, {16, machine, cost, {}, memory}));
  };
  for (const CostKind cost : {CostKind::bytes, CostKind::seconds}) {
    const Plan free = plan_within(cost, {});
    const std::int64_t most = peak_of(graph, free).bytes;
    EXPECT_EQ(plan_within(cost, most).vertices, free.vertices);
    const Plan smaller = plan_within(cost, most - 1);
    EXPECT_LT(peak_of(graph, smaller).bytes, most) << name_of(cost);
    EXPECT_GE(costs_of(graph, smaller, machine).of(cost), costs_of(graph, free, machine).of(cost)) << name_of(cost);
  }
}

TEST(Limit, ThatNothingMeetsIsSaidWithTheSmallestPeak) {
  const EinGraph graph = product(512);
  const auto reason_within = [&](std::int64_t memory) {
    return std::get<std::string>(planner_named("eindecomp").plan(graph, request(64, CostKind::bytes, memory)));
  };
  // On 4 x 4 x 4 sites: 128 x 128 of A, of B and of partial results; of C, and of its parts from 3 sites, 32 x 128.
  EXPECT_THAT(reason_within(100'000), HasSubstr("C needs 262 kB on site 0, and the limit is 100 kB a site"));
  // No two of 64 sites hold the same of A, B and C: 512 x 512 / 64 each.
  EXPECT_THAT(reason_within(49'151), HasSubstr("while C is computed, what is needed takes 49152 B"));
  EXPECT_THAT(reason_within(49'152), HasSubstr("C needs 262 kB on site 0"));
}

TEST(LeastPeak, IsThatOfAPlanWhichSharesAllOutEvenly) {
  const std::string text =
      "dims i=8 j=10\ninput X[i,j], Y[i,j], U[i]\nA[i,j] = X[i,j] * Y[i,j]\nB[i,j] = A[i,j] + U[i]\n"
      "C[i,j] = B[i,j] * Y[i,j]\noutput C\n";
  const EinGraph graph = einrel::graph_of(text);
  // While A is computed: X, Y and A of 320 bytes each, and U of 32. While B is: Y, A, B and U.
  EXPECT_EQ(least_peak_of(graph, 1).bytes, 992);
  EXPECT_EQ(least_peak_of(graph, 1).bytes, peak_of(graph, plan_of(graph, 1, {})).bytes);
  EXPECT_EQ(least_peak_of(graph, 4).bytes, 248);
  EXPECT_EQ(least_peak_of(graph, 3).bytes, 331);  // a site has a byte more
  EXPECT_EQ(least_input_bytes(graph, 4), 168);
}

TEST(Limit, IsMetByTakingPiecesOneAfterTheOther) {
  const EinGraph graph = einrel::graph_of(
      "dims i=900 j=1200 k=600\ninput A[i,j], B[j,k]\nC[i,k] = max[j] abs(A[i,j] - B[j,k])\noutput C\n");
  // On 2 x 2 sites: of A and B, the own quarter, the one that comes, and C; no operand is put together.
  constexpr std::int64_t most = (2 * 450 * 600 + 2 * 600 * 300 + 450 * 300) * std::int64_t{4};
  const Plan plan = std::get<Plan>(planner_named("eindecomp").plan(graph, request(4, CostKind::seconds, most)));
  EXPECT_LE(peak_of(graph, plan).bytes, most);
}

TEST(Limit, OfADeepProgramIsMet) {
  std::string text = "dims b=64 h=256 g=256\ninput X0[b,h]\n";
  for (int layer = 1; layer <= 8; ++layer) {
    const std::string l = std::to_string(layer);
    text += "input W" + l + "[h,g]\nX" + l + "[b,g] = relu(sum[h] X" + std::to_string(layer - 1) + "[b,h] * W" + l +
            "[h,g])\n";
  }
  const EinGraph graph = einrel::graph_of(text + "output X8\n");
  const Planner& planner = planner_named("eindecomp");
  const std::int64_t alone =
      peak_of(graph, std::get<Plan>(planner_named("single").plan(graph, {8, {}, {}, {}, {}}))).bytes;
  const Plan plan = std::get<Plan>(planner.plan(graph, request(8, CostKind::seconds, alone / 4)));
  EXPECT_LE(peak_of(graph, plan).bytes, alone / 4);
}

}  // namespace
}  // namespace einrel::test
