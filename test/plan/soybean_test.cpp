// What the SoyBean paper says of networks on 8 devices (section 6), on the model of its machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "einsum/graph/vertex_facts.h"
#include "einsum/passes/contraction_order.h"
#include "einsum/passes/factor_split.h"
#include "einsum/passes/selection_split.h"
#include "machine/machines.h"
#include "plan/planners/eindecomp.h"
#include "plan/planners/kcut.h"
#include "plan/planners/planner.h"
#include "plan/search/tilings.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/rounds.h"

namespace einrel::test {
namespace {

/// As run/compile prepares it for plans.
EinGraph network(const std::string& name, const std::map<std::string, std::int64_t>& dims) {
  std::ifstream file(std::filesystem::path(EINREL_EXAMPLES) / (name + ".ein"));
  std::stringstream text;
  text << file.rdbuf();
  std::vector<OrderedContraction> contractions;
  return split_factors(
      order_contractions(split_selections(needed_for_outputs(einrel::graph_of(text.str(), {dims, {}}))), contractions));
}

Plan planned(const EinGraph& graph, const std::string& planner, std::int64_t devices,
             CostKind kind = CostKind::seconds) {
  return std::get<Plan>(planner_named(planner).plan(graph, {devices, machine_of("p2-server", devices), kind, {}}));
}

PlanCosts costs(const EinGraph& graph, const std::string& planner, std::int64_t devices,
                CostKind kind = CostKind::seconds) {
  return costs_of(graph, planned(graph, planner, devices, kind), machine_of("p2-server", devices));
}

double seconds(const EinGraph& graph, const std::string& planner, std::int64_t devices = 8) {
  return costs(graph, planner, devices).seconds;
}

TEST(SoyBean, IsFasterThanDataParallelismOfAlexNetAndVggByWhatThePaperSays) {
  for (const auto& [name, batch] : {std::pair("alexnet", 256), std::pair("vgg16", 64)}) {
    const EinGraph graph = network(name, {{"b", batch}});
    const double factor = seconds(graph, "data") / seconds(graph, "kcut");
    EXPECT_GE(factor, 1.5) << name;
    EXPECT_LE(factor, 4) << name;
  }
  EXPECT_GE(seconds(network("alexnet", {{"b", 128}}), "data"), 2 * seconds(network("alexnet", {{"b", 128}}), "kcut"));
}

TEST(SoyBean, NeedsASmallerBatchForSevenTimesTheSpeedThanDataParallelism) {
  const auto speedup = [](const EinGraph& graph, const std::string& planner) {
    return seconds(graph, "single", 1) / seconds(graph, planner);
  };
  EXPECT_GE(speedup(network("alexnet", {{"b", 512}}), "kcut"), 7);
  EXPECT_LT(speedup(network("alexnet", {{"b", 1024}}), "data"), 7);
}

TEST(SoyBean, CutsConvolutionsByBatchAndDenseLayersByUnits) {
  const EinGraph graph = network("alexnet", {{"b", 256}});
  const Plan plan = planned(graph, "kcut", 8);
  const auto sites_along_batch = [&](const std::string& name) -> std::int64_t {
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      if (graph.vertices[v].name != name) continue;
      const std::vector<std::string> labels = label_names(graph.vertices[v]);
      const auto at = std::find(labels.begin(), labels.end(), "b") - labels.begin();
      return plan.vertices[v].grid[static_cast<std::size_t>(at)];
    }
    throw std::out_of_range(name);
  };
  for (const char* const convolution : {"C1_1", "C2_1", "C3_1", "C4_1", "C5_1"})
    EXPECT_EQ(sites_along_batch(convolution), 8) << convolution;
  for (const char* const dense : {"H6_1", "H7_1", "Z"})  // here the plan changes
    EXPECT_EQ(sites_along_batch(dense), 1) << dense;
}

TEST(SoyBean, FindsDataParallelismBetterForLargeImagesAndModelParallelismForManyFilters) {
  const auto convolutions = [](std::int64_t side, std::int64_t filters) {
    std::map<std::string, std::int64_t> dims{{"b", 256}, {"y", side}, {"x", side}};
    for (int c = 0; c <= 5; ++c) dims["c" + std::to_string(c)] = filters;
    return network("convolution_layers", dims);
  };
  const EinGraph many_filters = convolutions(6, 2048);
  EXPECT_LT(seconds(many_filters, "model"), seconds(many_filters, "data"));
  EXPECT_LT(seconds(many_filters, "kcut"), seconds(many_filters, "model"));
  const EinGraph large_images = convolutions(24, 512);
  EXPECT_LT(seconds(large_images, "data"), seconds(large_images, "model"));
  EXPECT_LE(seconds(large_images, "kcut"), seconds(large_images, "data"));
}

TEST(SoyBean, SpendsOfWideDenseLayersMostTimeOnDataParallelism) {
  const EinGraph graph = network("dense_layers", {});
  const double data = seconds(graph, "data");
  const double computing = seconds(graph, "single", 1) / 8;
  EXPECT_GE(data, 5 * computing);  // section 6.2: five times as long to communicate as to compute
  EXPECT_LT(seconds(graph, "model"), data / 2);
  EXPECT_LT(seconds(graph, "kcut"), seconds(graph, "model"));
}

struct CountedNetwork {
  std::string name;
  std::map<std::string, std::int64_t> dims;
  std::vector<std::int64_t> devices;
};

/// SoyBean's count of data, model and all hybrid parallelisms.
std::vector<double> counts_of_hybrids(const EinGraph& graph, std::int64_t devices) {
  AllowedForms by_batch;
  AllowedForms by_others;
  for (const Vertex& vertex : graph.vertices) {
    std::vector<std::size_t>& batch = by_batch.emplace_back();
    std::vector<std::size_t>& others = by_others.emplace_back();
    if (is_input(vertex)) continue;
    const std::vector<std::string> labels = label_names(vertex);
    for (std::size_t l = 0; l < labels.size(); ++l) (labels[l] == "b" ? batch : others).push_back(l);
  }
  std::vector<double> counts;
  for (std::int64_t data = 1; data <= devices; ++data) {  // 1: model, all: data, else hybrid
    if (devices % data != 0) continue;
    std::vector<std::int64_t> of_data = prime_factors(data);
    std::vector<std::int64_t> of_model = prime_factors(devices / data);
    for (const bool is_descending : {false, true}) {
      if (is_descending) std::reverse(of_data.begin(), of_data.end());
      if (is_descending) std::reverse(of_model.begin(), of_model.end());
      CutsWanted wanted{of_data};
      wanted.groups.insert(wanted.groups.end(), of_model.begin(), of_model.end());
      wanted.allowed.assign(of_data.size(), by_batch);
      wanted.allowed.resize(wanted.groups.size(), by_others);
      counts.push_back(tiling_cuts(graph, {wanted}).moved());
    }
  }
  return counts;
}

/// With weights on all devices, which each send their gradients to one place and receive the sum: of n weights, 2 n for
/// every device but one.
double count_of_data_parallelism(const EinGraph& graph, std::int64_t devices) {
  double weights = 0;
  for (const State& state : graph.steps.states) {
    double elements = 1;
    for (const Extent extent : graph.vertices[state.now.index].bound) elements *= static_cast<double>(extent.value());
    weights += elements;
  }
  return 2 * weights * static_cast<double>(devices - 1);
}

// Of some of these, cuts that are each the best for what is left add up to more than hybrid parallelism.
TEST(SoyBean, IsNeverAboveDataModelOrHybridParallelismByItsOwnCount) {
  const std::vector<CountedNetwork> networks{
      {"alexnet", {}, {2, 6, 8, 12}},    {"vgg16", {}, {4, 8}},
      {"dense_layers", {}, {3, 6, 8}},   {"convolution_layers", {{"b", 1024}}, {8, 24}},
      {"mlp", {{"b", 64}}, {2, 12, 64}}, {"train_mnist", {{"b", 60}}, {6, 8, 30, 64}},
      {"layers", {{"b", 32}}, {8, 12}},  {"dense_layers", {{"b", 7}}, {6, 10, 12}},
      {"mlp", {{"b", 5}}, {6, 10, 15}},
  };
  for (const auto& [name, dims, all_devices] : networks) {
    const EinGraph graph = network(name, dims);
    for (const std::int64_t devices : all_devices) {
      PlanRequest request{devices, {}, CostKind::bytes, {}};
      request.batch = "b";
      const double own = kcut_tilings(graph, request).moved();
      for (const double other : counts_of_hybrids(graph, devices)) EXPECT_LE(own, other) << name << " on " << devices;
      if (!graph.steps.states.empty()) {
        EXPECT_LE(own, count_of_data_parallelism(graph, devices)) << name << " on " << devices;
      }
    }
  }
}

/// Where plans have to use all sites, those alone.
void expect_least(const EinGraph& graph, std::int64_t devices, const std::string& what) {
  std::vector<std::string> others{"kcut", "data", "model"};
  for (std::int64_t groups = 2; groups < devices; ++groups) {
    if (devices % groups == 0)
      others.push_back("hybrid:" + std::to_string(groups) + "x" + std::to_string(devices / groups));
  }
  const Machine machine = machine_of("p2-server", devices);
  for (const CostKind kind : {CostKind::seconds, CostKind::bytes}) {
    const double pieces = kind == CostKind::seconds ? 1.01 : 1;  // starting kernels for them
    const double own = costs(graph, "eindecomp", devices, kind).of(kind);
    for (const std::string& other : others) {
      const Plan plan = planned(graph, other, devices, kind);
      if (kind == CostKind::bytes && !uses_all_sites(graph, plan, machine)) continue;
      EXPECT_LE(own, pieces * costs_of(graph, plan, machine).of(kind)) << other << " on " << devices << "\n" << what;
    }
  }
}

TEST(SoyBean, IsNeverBelowEinDecomp) {
  const std::vector<CountedNetwork> networks{{"alexnet", {}, {6, 8}},          {"vgg16", {}, {8}},
                                             {"dense_layers", {}, {6, 8, 12}}, {"convolution_layers", {}, {6, 8}},
                                             {"mlp", {{"b", 64}}, {4, 6, 12}}, {"train_mnist", {{"b", 60}}, {6, 12}}};
  for (const auto& [name, dims, all_devices] : networks) {
    const EinGraph graph = network(name, dims);
    for (const std::int64_t devices : all_devices) expect_least(graph, devices, name);
  }
}

TEST(SoyBean, IsNeverBelowEinDecompForLayersOfAnyWidth) {
  Random random(38);
  for (int round = 0; round < rounds(60); ++round) {
    const auto layers = static_cast<std::size_t>(random.between(1, 4));
    std::string text = "dims b=" + std::to_string(random.between(20, 400));
    for (std::size_t l = 0; l <= layers; ++l)
      text += " h" + std::to_string(l) + "=" + std::to_string(random.between(20, 400));
    const std::string top = "b,h" + std::to_string(layers);
    text += "\ninput X0[b,h0], Y[" + top + "]\n";
    std::string weights;
    for (std::size_t l = 1; l <= layers; ++l) {
      const std::string n = std::to_string(l);
      const std::string m = std::to_string(l - 1);
      text += "state W" + n + "[h" + m + ",h" + n + "] = 0.1\nX" + n + "[b,h" + n + "] = relu(sum[h" + m + "] X" + m +
              "[b,h" + m + "] * W" + n + "[h" + m + ",h" + n + "])\n";
      weights += (l == 1 ? "W" : ", W") + n;
    }
    text += "loss[] = mean[" + top + "] sq(X" + std::to_string(layers) + "[" + top + "] - Y[" + top +
            "])\nminimize loss over " + weights + " by sgd(0.1)\noutput loss\n";
    expect_least(needed_for_outputs(einrel::graph_of(text)), random.between(2, 12), text);
  }
}

}  // namespace
}  // namespace einrel::test
