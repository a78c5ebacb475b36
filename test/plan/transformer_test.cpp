#include "plan/planners/transformer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "einsum/graph/vertex_facts.h"
#include "plan/layout.h"
#include "plan/planners/attention.h"
#include "plan/planners/planner.h"
#include "support/program.h"
#include "support/random_einsum.h"

namespace einrel::test {
namespace {

/// Sites along each label that is cut.
using Grid = std::map<std::string, std::int64_t>;

PlanRequest request(std::int64_t sites) { return {sites, {}, CostKind::bytes, std::nullopt}; }

Planned planned_by(std::string_view planner, const EinGraph& graph, std::int64_t sites) {
  return planner_named(planner).plan(graph, request(sites));
}

EinGraph example(const std::string& name, const Environment& environment = {}) {
  std::ifstream file(std::filesystem::path(EINREL_EXAMPLES) / (name + ".ein"));
  std::ostringstream text;
  text << file.rdbuf();
  return needed_for_outputs(einrel::graph_of(text.str(), environment));
}

/// Of every computed vertex by its name.
std::map<std::string, Grid> grids_of(const EinGraph& graph, const Planned& planned) {
  if (const auto* const reason = std::get_if<std::string>(&planned)) throw std::runtime_error(*reason);
  const Plan& plan = std::get<Plan>(planned);
  std::map<std::string, Grid> grids;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const std::vector<Label>& labels = labels_of(graph.vertices[v]);
    if (labels.empty()) continue;
    Grid& grid = grids[graph.vertices[v].name];
    for (std::size_t l = 0; l < labels.size(); ++l) {
      if (plan.vertices[v].grid[l] > 1) grid[labels[l].name] = plan.vertices[v].grid[l];
    }
  }
  return grids;
}

std::map<std::string, Grid> expected(const std::vector<std::pair<std::vector<std::string>, Grid>>& groups) {
  std::map<std::string, Grid> all;
  for (const auto& [names, grid] : groups) {
    for (const std::string& name : names) all[name] = grid;
  }
  return all;
}

/// What a plan promises: of its grids, their products and the costs of it.
void check_plan(const EinGraph& graph, const Plan& plan) {
  ASSERT_EQ(plan.vertices.size(), graph.vertices.size());
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const PartitionVector most = most_parts(graph.vertices[v], graph);
    ASSERT_EQ(plan.vertices[v].grid.size(), most.size());
    for (std::size_t l = 0; l < most.size(); ++l) {
      ASSERT_GE(plan.vertices[v].grid[l], 1);
      ASSERT_LE(plan.vertices[v].grid[l], most[l]) << graph.vertices[v].name;
      if (is_input(graph.vertices[v])) continue;  // it lies in as many parts as its readers want
      ASSERT_EQ(with_scattered_result(graph.vertices[v], plan.vertices[v]).grid[l], plan.vertices[v].parts[l]);
    }
    ASSERT_LE(sites_used(plan.vertices[v]) * copies_of(plan.vertices[v]), plan.sites) << graph.vertices[v].name;
  }
  const PlanCosts costs = costs_of(graph, plan, {});
  EXPECT_GE(costs.bytes, 0);
  EXPECT_GE(costs.seconds, 0);
}

TEST(Tensor, CutsALlamaLayerByHeadsAndHiddenUnits) {
  const EinGraph graph = example("llama_layer");
  for (const std::int64_t sites : {2, 3, 8, 32}) {
    const Planned planned = planned_by("tensor", graph, sites);
    EXPECT_EQ(grids_of(graph, planned),
              expected({{{"Q", "K", "V", "QP", "KP", "QR", "KR", "L", "P_1", "P_2", "P", "O", "Y_1"}, {{"h", sites}}},
                        {{"F_1", "F_2", "F", "Z_1"}, {{"m", sites}}},
                        {{"Angle", "Cos", "Sin", "N1_1", "N1", "Y", "N2_1", "N2", "Z"}, {}}}));
    check_plan(graph, std::get<Plan>(planned));
  }
  // Only 32 heads, but 11008 hidden units.
  const auto grids = grids_of(graph, planned_by("tensor", graph, 48));
  EXPECT_EQ(grids.at("L"), (Grid{{"h", 32}}));
  EXPECT_EQ(grids.at("F"), (Grid{{"m", 48}}));
}

TEST(Sequence, CutsALlamaLayerByPositionsOfQueries) {
  const EinGraph graph = example("llama_layer");
  for (const std::int64_t sites : {2, 3, 8, 48}) {
    const Planned planned = planned_by("sequence", graph, sites);
    const auto grids = grids_of(graph, planned);
    EXPECT_EQ(grids.size(), 26U);
    for (const auto& [name, grid] : grids) EXPECT_EQ(grid, (Grid{{"s", sites}})) << name;
    check_plan(graph, std::get<Plan>(planned));
  }
}

TEST(Heads, CutsALlamaLayerByHeadsAndElseByPositions) {
  const EinGraph graph = example("llama_layer");
  const Planned planned = planned_by("heads", graph, 8);
  EXPECT_EQ(grids_of(graph, planned),
            expected({{{"Q", "K", "V", "QP", "KP", "QR", "KR", "L", "P_1", "P_2", "P", "O", "Y_1"}, {{"h", 8}}},
                      {{"Angle", "Cos", "Sin", "N1_1", "N1", "Y", "N2_1", "N2", "F_1", "F_2", "F", "Z_1", "Z"},
                       {{"s", 8}}}}));
  check_plan(graph, std::get<Plan>(planned));
}

TEST(Heads, MoveNoScoresBetweenSites) {
  // L, P_1, P_2, P and O are computed where their parts of Q, K and V are.
  const EinGraph graph = example("llama_layer");
  for (const std::string planner : {"heads", "tensor"}) {
    const Plan plan = std::get<Plan>(planned_by(planner, graph, 8));
    const PlanCosts costs = costs_of(graph, plan, {});
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      const std::string& name = graph.vertices[v].name;
      if (name == "L" || name == "P_1" || name == "P_2" || name == "P" || name == "O") {
        EXPECT_EQ(costs.vertices[v].bytes(), 0) << name;
      }
    }
  }
}

TEST(Sequence, SendsKeysValuesAndAllWeightsToAllSites) {
  const EinGraph graph = example("llama_layer");
  const PlanCosts costs = costs_of(graph, std::get<Plan>(planned_by("sequence", graph, 8)), {});
  // Each of 8 sites has an eighth of KR, of V and of every weight, and receives the rest.
  const std::int64_t keys_and_values = std::int64_t{2} * 4 * 4096 * 4096;
  const std::int64_t weights = std::int64_t{4} * 4096 * 4096 + std::int64_t{3} * 4096 * 11008 + 2 * 4096;
  EXPECT_EQ(costs.bytes, 7 * (keys_and_values + weights) * 4);
}

TEST(Tensor, AddsUpWhatLeavesABlockAndGivesItToAllSites) {
  const EinGraph graph = example("llama_layer");
  const PlanCosts costs = costs_of(graph, std::get<Plan>(planned_by("tensor", graph, 8)), {});
  // X, the parts of Y_1 and Y, the parts of Z_1 and Z_1 itself; besides weights of norms. Others lie where they are
  // needed, and what lies between blocks is computed alike by all.
  EXPECT_EQ(costs.bytes, 7 * (5 * std::int64_t{4} * 4096 * 4096 + 2 * 4096) * 4);
  EXPECT_LE(8 * costs.most_received(), costs.bytes + costs.bytes / 100);
}

TEST(Transformers, ArePlannedInEveryLayer) {
  const EinGraph graph = example("llama_7b");
  EXPECT_EQ(find_attention(graph, label_uses(graph)).found.size(), 32U);
  const Planned tensor = planned_by("tensor", graph, 8);
  const auto grids = grids_of(graph, tensor);
  for (int layer = 1; layer <= 32; ++layer) {
    const std::string end = "_" + std::to_string(layer);
    for (const std::string name : {"Q", "K", "V", "L", "P", "O"}) EXPECT_EQ(grids.at(name + end), (Grid{{"h", 8}}));
    EXPECT_EQ(grids.at("F" + end), (Grid{{"m", 8}}));
    EXPECT_EQ(grids.at("N1" + end), Grid{});
  }
  EXPECT_EQ(grids.at("Logits"), (Grid{{"v", 8}}));
  check_plan(graph, std::get<Plan>(tensor));
  const Planned sequence = planned_by("sequence", graph, 8);
  for (const auto& [name, grid] : grids_of(graph, sequence)) EXPECT_EQ(grid, (Grid{{"s", 8}})) << name;
  check_plan(graph, std::get<Plan>(sequence));
  check_plan(graph, std::get<Plan>(planned_by("heads", graph, 8)));
}

TEST(Transformers, MayHaveKeysOfAnotherSequence) {
  for (const std::string name : {"multi_head_attention", "attention"}) {
    const EinGraph graph = example(name);
    for (const std::string planner : {"heads", "tensor"}) {
      const auto grids = grids_of(graph, planned_by(planner, graph, 4));
      for (const auto& [vertex, grid] : grids) EXPECT_EQ(grid, (Grid{{"h", 4}})) << name << " " << vertex;
    }
    const auto grids = grids_of(graph, planned_by("sequence", graph, 4));
    for (const auto& [vertex, grid] : grids) {
      const std::string label = vertex == "Kh" || vertex == "Vh" ? "t" : "s";
      EXPECT_EQ(grid, (Grid{{label, 4}})) << name << " " << vertex;
    }
  }
}

/// Attention of merged heads, of which each key serves several, by other names and in another order; biased by a tensor
/// of both positions that is computed from one of single positions.
const std::string grouped = R"(
dims n=3 i=64 j=64 g=2 r=4 z=8 x=16 w=128
input H[n,i,w], B[g,x,w], C[g,x,w], D[w,z,x], slope[i]
AQ[n,i,z,x] = sum[w] H[n,i,w] * D[w,z,x]
RQ[n,i,g,r,x] = view AQ[n,i,(g r),x]
BK[n,i,g,x] = sum[w] B[g,x,w] * H[n,i,w]
CV[n,i,g,x] = sum[w] H[n,i,w] * C[g,x,w]
Bias[j,i] = slope[i] - slope[j]
S[j,n,g,r,i] = sum[x] BK[n,j,g,x] * RQ[n,i,g,r,x]
T[j,n,g,r,i] = exp(S[j,n,g,r,i] + Bias[j,i])
U[n,g,r,i] = sum[j] T[j,n,g,r,i]
W[n,i,g,r,x] = sum[j] CV[n,j,g,x] * T[j,n,g,r,i]
WN[n,i,g,r,x] = W[n,i,g,r,x] / U[n,g,r,i]
output WN
)";

TEST(Transformers, MayShareKeysAmongHeads) {
  const EinGraph graph = einrel::graph_of(grouped);
  // Queries have 2 groups of 4 heads, merged before they are needed; a view is cut by its first label.
  const auto heads = grids_of(graph, planned_by("heads", graph, 8));
  EXPECT_EQ(heads.at("S"), (Grid{{"g", 2}, {"r", 4}}));
  EXPECT_EQ(heads.at("T"), (Grid{{"g", 2}, {"r", 4}}));
  EXPECT_EQ(heads.at("W"), (Grid{{"g", 2}, {"r", 4}}));
  EXPECT_EQ(heads.at("BK"), (Grid{{"g", 2}}));
  EXPECT_EQ(heads.at("AQ"), (Grid{{"z", 2}}));
  EXPECT_EQ(heads.at("Bias"), (Grid{{"j", 8}}));
  const auto sequence = grids_of(graph, planned_by("sequence", graph, 8));
  for (const std::string name : {"AQ", "RQ", "BK", "CV", "S", "T", "U", "W", "WN"}) {
    EXPECT_EQ(sequence.at(name), (Grid{{"i", 8}})) << name;
  }
}

TEST(Transformers, AreCutByEinDecompAtNoMoreCost) {
  const EinGraph graph = example("llama_layer");
  for (const std::int64_t sites : {4, 8, 16}) {
    const auto bytes = [&](const std::string& planner) {
      return costs_of(graph, std::get<Plan>(planner_named(planner).plan(graph, request(sites))), {}).bytes;
    };
    const std::int64_t least = bytes("eindecomp");
    for (const std::string planner : {"tensor", "sequence", "heads"}) EXPECT_LE(least, bytes(planner)) << planner;
  }
}

std::string refusal(const Planned& planned) {
  return std::holds_alternative<std::string>(planned) ? std::get<std::string>(planned) : "a plan";
}

TEST(Transformers, AreRefusedWithTheReason) {
  for (const std::string name :
       {"matmul", "chain_uniform", "chain_skewed", "ffnn", "two_layer", "convolution", "nearest_neighbour"}) {
    const EinGraph graph = example(name);
    for (const std::string planner : {"heads", "sequence"}) {
      EXPECT_EQ(
          refusal(planned_by(planner, graph, 4)),
          "there is no attention in it: no sum of values is weighted by a softmax of products of queries and keys")
          << name;
    }
  }
  // A chain that is summed on the way, but without exponentials; a hidden layer with a softmax.
  for (const std::string text :
       {"input A[i,j], B[j,k], C[k,l]\nS[i,k] = sum[j] A[i,j] * B[j,k]\nZ[i,l] = (sum[k] S[i,k] * C[k,l]) / sum[k] "
        "S[i,k]\n",
        "input A[i,i], B[i,j], C[j,k], D[k,l]\nH[i,j] = sum[l] A[i,l] * B[l,j]\nS[i,k] = sum[j] H[i,j] * C[j,k]\n"
        "Z[i,l] = sum[k] softmax[k](S[i,k]) * D[k,l]\n"}) {
    const EinGraph graph = einrel::graph_of("dims i=8 j=8 k=8 l=8\n" + text);
    EXPECT_NE(refusal(planned_by("sequence", graph, 4)).find("no attention"), std::string::npos) << text;
  }
}

TEST(Transformers, WithoutHeadsAreCutBySequenceOnly) {
  const EinGraph single = einrel::graph_of(
      "dims s=16 t=16 d=8\ninput Q[s,d], K[t,d], V[t,d]\nS[s,t] = sum[d] Q[s,d] * K[t,d]\n"
      "Z[s,d] = sum[t] softmax[t](S[s,t]) * V[t,d]\n");
  EXPECT_EQ(refusal(planned_by("heads", single, 4)),
            "the attention in it has no heads: no label of 'S' comes from weights that give queries or keys");
  EXPECT_EQ(grids_of(single, planned_by("sequence", single, 4)).at("Z"), (Grid{{"s", 4}}));

  const EinGraph one_head = example("multi_head_attention", {{{"h", 1}}, {}});
  EXPECT_EQ(refusal(planned_by("heads", one_head, 4)),
            "the attention in it has one head at 'L_1', which cannot be cut");
  const EinGraph one_token = example("multi_head_attention", {{{"s", 1}, {"t", 1}}, {}});
  EXPECT_EQ(refusal(planned_by("sequence", one_token, 4)),
            "the attention in it has one position at 'L_1', which cannot be cut");
}

TEST(Transformers, OfAnyExtentsAndSitesHaveValidPlansOrNone) {
  int plans = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Environment environment;
    for (const std::string label : {"b", "h", "m"}) environment.dims[label] = random.between(0, 9);
    for (const std::string label : {"s", "e"}) environment.dims[label] = random.between(1, 9);
    const std::int64_t c = random.between(1, 3);
    environment.dims["c"] = c;
    environment.dims["d"] = 2 * c;
    const EinGraph graph = example("llama_layer", environment);
    for (const std::string planner : {"heads", "tensor", "sequence"}) {
      const Planned planned = planned_by(planner, graph, random.between(1, 12));
      if (const auto* const plan = std::get_if<Plan>(&planned)) {
        check_plan(graph, *plan);
        ++plans;
      }
    }
  }
  EXPECT_GE(plans, 300);
}

std::string list(const std::string& letters) {
  std::string joined;
  for (const char letter : letters) joined += (joined.empty() ? "" : ",") + std::string(1, letter);
  return joined;
}

/// A tensor and its labels, each one letter.
using Tensors = std::vector<std::pair<std::string, std::string>>;

std::string read(const Tensors::value_type& tensor) { return tensor.first + "[" + list(tensor.second) + "]"; }

std::string pick_labels(Random& random, const std::string& from, double probability) {
  std::vector<char> picked;
  for (const char label : from) {
    if (random.chance(probability)) picked.push_back(label);
  }
  random.shuffle(picked);
  return {picked.begin(), picked.end()};
}

/// Heads a, positions b of queries and d of keys, width c, all in any order.
std::string random_attention(Random& random, Tensors& tensors) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& labels, const std::string& value) {
    tensors.emplace_back(name, pick_labels(random, labels, 1));
    text += (value.empty() ? "\ninput " : "\n") + read(tensors.back()) + (value.empty() ? "" : " = " + value);
    return read(tensors.back());
  };
  const std::string x = add("X", "be", "");
  const std::string weights = add("W", "ace", "");
  const std::string queries = add("Q", "abc", "sum[e] " + x + " * " + weights);
  const std::string keys = add("K", "adc", "");
  const std::string scores = add("S", "abd", "sum[c] " + keys + " * " + queries);
  const std::string softmax = add("P", "abd", "softmax[d](" + scores + ")");
  add("O", "abc", "sum[d] " + softmax + " * " + keys);
  return text;
}

/// Products, softmaxes and what is computed element by element, of tensors of a few labels, each read anyhow.
std::string random_program(Random& random) {
  std::string text = "dims";
  for (const char label : std::string("abcde")) {
    text += std::string(" ") + label + "=" + std::to_string(random.between(1, 6));
  }
  Tensors tensors;
  for (int i = 0; i < 3; ++i) {
    tensors.emplace_back("I" + std::to_string(i), pick_labels(random, "abcde", 0.5));
    text += "\ninput " + read(tensors.back());
  }
  if (random.chance(0.5)) text += random_attention(random, tensors);
  for (std::int64_t v = 0; v < 12; ++v) {
    const auto newest = static_cast<std::int64_t>(tensors.size()) - 1;
    const auto x = tensors[static_cast<std::size_t>(random.between(std::max<std::int64_t>(newest - 2, 0), newest))];
    const auto y = tensors[static_cast<std::size_t>(random.between(0, newest))];
    std::string all = x.second;
    for (const char label : y.second) all += all.find(label) == std::string::npos ? std::string(1, label) : "";
    std::string output = all;
    std::string value = read(x) + " + " + read(y);
    if (random.chance(0.2) && !x.second.empty()) {
      output = x.second;
      value = "softmax[" + output.substr(0, 1) + "](" + read(x) + ")";
    } else if (random.chance(0.8)) {
      output = pick_labels(random, all, 0.7);
      std::string reduced;
      for (const char label : all) reduced += output.find(label) == std::string::npos ? std::string(1, label) : "";
      value = (reduced.empty() ? "" : "sum[" + list(reduced) + "] ") + read(x) + " * " + read(y);
    }
    tensors.emplace_back("V" + std::to_string(v), output);
    text += "\n" + read(tensors.back());
    text += " = " + value;
  }
  return text + "\n";
}

TEST(Transformers, AreFoundOrNotInAnyGraph) {
  int plans = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Random random(seed);
    const std::string text = random_program(random);
    const EinGraph graph = einrel::graph_of(text);
    for (const std::string planner : {"heads", "tensor", "sequence"}) {
      const Planned planned = planned_by(planner, graph, random.between(1, 12));
      if (const auto* const plan = std::get_if<Plan>(&planned)) {
        SCOPED_TRACE(text);
        check_plan(graph, *plan);
        ++plans;
      }
    }
  }
  EXPECT_GE(plans, 1000);
}

}  // namespace
}  // namespace einrel::test
