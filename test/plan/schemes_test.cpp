#include "plan/planners/schemes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/planners/planner.h"
#include "support/program.h"

namespace einrel::test {
namespace {

/// A step of training: X to A1 by W1, to A2 by W2, a loss, gradients G1 and G2, new weights V1 and V2.
EinGraph two_layer() {
  std::ifstream file(std::filesystem::path(EINREL_EXAMPLES) / "two_layer.ein");
  std::ostringstream text;
  text << file.rdbuf();
  return needed_for_outputs(einrel::graph_of(text.str()));
}
constexpr std::int64_t x_elements = 1000 * 800;
constexpr std::int64_t y_elements = 1000 * 10;
constexpr std::int64_t weight_elements = 800 * 1024 + 1024 * 10;
constexpr std::int64_t float_bytes = 4;

Plan plan_of_scheme(const std::string& planner, const EinGraph& graph, std::int64_t sites) {
  const Planned found = planner_named(planner).plan(graph, {sites, {}, CostKind::seconds, {}, {}});
  if (const auto* const reason = std::get_if<std::string>(&found)) throw std::runtime_error(*reason);
  return std::get<Plan>(found);
}

std::string refusal(const std::string& planner, const EinGraph& graph, std::int64_t sites) {
  const Planned found = planner_named(planner).plan(graph, {sites, {}, CostKind::seconds, {}, {}});
  return std::holds_alternative<std::string>(found) ? std::get<std::string>(found) : "a plan";
}

/// Sites along each label that is cut, and how many compute the same, by the names of vertices.
using Grid = std::map<std::string, std::int64_t>;
std::map<std::string, Grid> grids_of(const EinGraph& graph, const Plan& plan) {
  std::map<std::string, Grid> grids;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const std::vector<std::string> names = label_names(graph.vertices[v]);
    Grid& grid = grids[graph.vertices[v].name];
    for (std::size_t l = 0; l < names.size(); ++l) {
      if (plan.vertices[v].grid[l] > 1) grid[names[l]] = plan.vertices[v].grid[l];
    }
    if (copies_of(plan.vertices[v]) > 1) grid["alike"] = copies_of(plan.vertices[v]);
  }
  return grids;
}

TEST(Data, AllReducesGradientsAndKeepsWeightsOnAllSites) {
  const EinGraph graph = two_layer();
  const Plan plan = plan_of_scheme("data", graph, 4);
  const auto grids = grids_of(graph, plan);
  for (const std::string name : {"A1", "A2", "grad_A1", "grad_A2", "G1", "G2"})
    EXPECT_EQ(grids.at(name), (Grid{{"b", 4}})) << name;
  for (const std::string name : {"W1", "W2", "V1", "V2"}) EXPECT_EQ(grids.at(name), (Grid{{"alike", 4}})) << name;
  const PlanCosts costs = costs_of(graph, plan, {});
  // Of a ring of 4, each receives three quarters of the gradients to add them up, and three quarters of their sums; the
  // loss goes to one site and from it to the others.
  const std::int64_t loss = 3 * float_bytes + 3 * float_bytes;
  EXPECT_EQ(costs.bytes, 4 * 2 * weight_elements * 3 / 4 * float_bytes + loss);
  EXPECT_LE(costs.most_received(), 2 * weight_elements * 3 / 4 * float_bytes + 3 * float_bytes);
}

TEST(Fsdp, GathersWeightsAndReducesGradientsToWhereTheyLie) {
  const EinGraph graph = two_layer();
  const Plan plan = plan_of_scheme("fsdp", graph, 4);
  const auto grids = grids_of(graph, plan);
  for (const std::string name : {"A1", "A2", "grad_A1", "grad_A2", "G1", "G2"})
    EXPECT_EQ(grids.at(name), (Grid{{"b", 4}})) << name;
  for (const std::string name : {"V1", "V2"}) EXPECT_EQ(grids.at(name), (Grid{{"h", 4}})) << name;
  const std::int64_t loss = 3 * float_bytes + 3 * float_bytes;
  EXPECT_EQ(costs_of(graph, plan, {}).bytes, 2 * 3 * weight_elements * float_bytes + loss);
}

TEST(Tensor, CutsAColumnThenARowOfEveryTwoProductsWithWeights) {
  const EinGraph graph = two_layer();
  const Plan plan = plan_of_scheme("tensor", graph, 4);
  const auto grids = grids_of(graph, plan);
  for (const std::string name : {"A1", "grad_A1", "G1", "G2", "V1", "V2"})
    EXPECT_EQ(grids.at(name), (Grid{{"h", 4}})) << name;
  for (const std::string name : {"A2", "grad_A2", "loss"}) EXPECT_EQ(grids.at(name), (Grid{{"alike", 4}})) << name;
  // X to all, Y to all, and one all-reduce.
  EXPECT_EQ(costs_of(graph, plan, {}).bytes, 3 * (x_elements + y_elements + 2 * y_elements) * float_bytes);
}

TEST(Tensor, PairsTheProductsOfADeepNetwork) {
  const EinGraph graph = einrel::graph_of(
      "dims b=16 f=24 g=32 h=8 k=40 l=4\ninput X[b,f], W1[f,g], W2[g,h], W3[h,k], W4[k,l]\n"
      "A[b,g] = sum[f] X[b,f] * W1[f,g]\nB[b,h] = sum[g] A[b,g] * W2[g,h]\nC[b,k] = sum[h] B[b,h] * W3[h,k]\n"
      "D[b,l] = sum[k] C[b,k] * W4[k,l]\n");
  const Plan plan = plan_of_scheme("tensor", graph, 4);
  const auto grids = grids_of(graph, plan);
  for (const std::string name : {"A", "B"}) EXPECT_EQ(grids.at(name), (Grid{{"g", 4}})) << name;
  for (const std::string name : {"C", "D"}) EXPECT_EQ(grids.at(name), (Grid{{"k", 4}})) << name;
  // X to all, B added up and to all, D added up.
  EXPECT_EQ(costs_of(graph, plan, {}).bytes, 3 * (16 * 24 + 2 * 16 * 8 + 16 * 4) * float_bytes);
}

TEST(Tensor, GathersTheColumnsOfAProductWithoutAPartner) {
  const EinGraph graph = einrel::graph_of(
      "dims b=16 f=24 k=40\ninput X[b,f], W[f,k], Y[b,k]\nA[b,k] = sum[f] X[b,f] * W[f,k]\nD[b,k] = A[b,k] - Y[b,k]\n"
      "G[f,k] = sum[b] X[b,f] * D[b,k]\nV[f,k] = W[f,k] - G[f,k]\nloss[] = sum[b,k] D[b,k] * D[b,k]\noutput V, loss\n");
  const auto grids = grids_of(graph, plan_of_scheme("tensor", graph, 4));
  for (const std::string name : {"A", "G", "V"}) EXPECT_EQ(grids.at(name), (Grid{{"k", 4}})) << name;
  EXPECT_EQ(grids.at("D"), (Grid{{"alike", 4}}));
  EXPECT_EQ(refusal("tensor", einrel::graph_of("dims i=8 j=8\ninput X[i,j]\nZ[i] = sum[j] X[i,j]\n"), 4),
            "no product of data with weights takes a label from these that can be cut");
}

TEST(Products, CutByTheirFactorsEachOverItsDigit) {
  const EinGraph graph = two_layer();
  const Plan plan = plan_of_scheme("data:2 x tensor:4", graph, 8);
  const auto grids = grids_of(graph, plan);
  for (const std::string name : {"A1", "grad_A1", "G1", "G2"})
    EXPECT_EQ(grids.at(name), (Grid{{"b", 2}, {"h", 4}})) << name;
  for (const std::string name : {"V1", "V2"}) EXPECT_EQ(grids.at(name), (Grid{{"h", 4}, {"alike", 2}})) << name;
  EXPECT_EQ(grids.at("W1"), (Grid{{"1", 4}, {"alike", 2}}));  // of an input: dimensions
  EXPECT_EQ(grids.at("W2"), (Grid{{"0", 4}, {"alike", 2}}));
  for (const std::string name : {"A2", "grad_A2"}) EXPECT_EQ(grids.at(name), (Grid{{"b", 2}, {"alike", 4}})) << name;
  // Within each half of the batch as `tensor`; then gradients of a quarter of the weights between two sites each. Two
  // sites have parts of the loss, which goes to all.
  const std::int64_t loss = 1 * float_bytes + 7 * float_bytes;
  EXPECT_EQ(costs_of(graph, plan, {}).bytes,
            (3 * (x_elements + 3 * y_elements) + 2 * weight_elements) * float_bytes + loss);
}

TEST(Products, SayWhatIsWrongWithThem) {
  const auto fault = [](const std::string& name) -> std::string {
    try {
      planner_named(name);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(
      fault("data:8 x tenser:4"),
      "'tenser' in the planner 'data:8 x tenser:4' cannot be multiplied; did you mean 'tensor'? Products have data, "
      "fsdp, tensor, sequence, heads, model, each with its sites, as data:8 x tensor:4; hybrid:8x4 is data:8 x "
      "model:4");
  for (const std::string word : {"hybrid:4x", "hybrid:x4", "hybrid:2x2x2", "hybrid:4x2x", "hybrid:a x 2", "hybrid:-4x2",
                                 "hybrid", "hybrid 4x2", "hybrid4x2"})
    EXPECT_NE(fault(word).find("hybrid:4x2"), std::string::npos) << fault(word);
  EXPECT_NE(fault("hybird:4x2").find("did you mean 'hybrid'?"), std::string::npos) << fault("hybird:4x2");
  for (const std::string word : {"hybridx", "hybrids", "hybrid-parallel", "hybrid4"}) {
    EXPECT_NE(fault(word + ":4x2").find("'" + word + "' in the planner"), std::string::npos) << word;
    EXPECT_NE(fault("data:2 x " + word + ":4x2").find("cannot be multiplied"), std::string::npos) << word;
  }
  EXPECT_EQ(fault("hybrid:4x2"), "");
  EXPECT_EQ(fault("data:4 model:2"),
            "'data:4 model:2' in the planner 'data:4 model:2' has no x between two schemes: write data:4 x model:2");
  EXPECT_NE(fault("Hybrid:4x2").find("hybrid:8x4 is data:8 x model:4"), std::string::npos) << fault("Hybrid:4x2");
  EXPECT_EQ(
      fault("data:8 x tensor"),
      "'tensor' in the planner 'data:8 x tensor' does not say over how many sites: write tensor:N, as in tensor:4");
  for (const std::string word : {"data:", "data:2.5", "data:2 2", "data:x", "data x tensor"}) {
    EXPECT_NE(fault(word).find("does not say over how many sites"), std::string::npos) << word;
  }
  for (const std::string number : {"0", "-2"}) {
    EXPECT_EQ(fault("data:" + number), "'data:" + number + "' in the planner 'data:" + number + "' is for " + number +
                                           " sites: write 1 or more, as in data:4");
  }
  EXPECT_EQ(fault("data:99999999999999999999"),
            "'data:99999999999999999999' in the planner 'data:99999999999999999999' is for more sites than can be "
            "counted");
  EXPECT_EQ(fault("data:2xtensor:3"),
            "'data:2xtensor:3' in the planner 'data:2xtensor:3' has no spaces around the x: write data:2 x tensor:3");
  for (const std::string word : {"single:4", "data:2 x ", " x data:2", "data:2 x x data:2", "data:2 * tensor:2"}) {
    EXPECT_NE(fault(word), "") << word;
  }
  EXPECT_EQ(fault(" data:2  x  tensor:4 "), "");
  const EinGraph graph = two_layer();
  EXPECT_EQ(refusal("data:2 x tensor:2", graph, 8), "2 x 2 is 4 sites, and there are 8: give --sites 4");
  EXPECT_EQ(refusal("data:2 x tensor:2", graph, 1), "2 x 2 is 4 sites, and there is 1: give --sites 4");
  EXPECT_EQ(refusal("data:9223372036854775807 x data:9223372036854775807", graph, 4),
            "9223372036854775807 x 9223372036854775807 is more sites than can be counted, and there are 4");
  EXPECT_EQ(refusal("data:2 x heads:2", graph, 4),
            "heads: there is no attention in it: no sum of values is weighted by a softmax of products of queries and "
            "keys");
}

}  // namespace
}  // namespace einrel::test
