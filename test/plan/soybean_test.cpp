// What the SoyBean paper says of networks on 8 devices (section 6), on the model of its machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "einsum/contraction_order.h"
#include "einsum/factor_split.h"
#include "einsum/selection_split.h"
#include "einsum/vertex_facts.h"
#include "machine/machines.h"
#include "plan/planner.h"
#include "plan/planners/kcut.h"
#include "plan/search/tilings.h"
#include "support/program.h"

namespace einrel::test {
namespace {

/// As engine/compile prepares it for plans.
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

/// What data, model and all hybrid parallelisms on powers of two count.
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
  const auto cuts = static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(devices)));
  for (std::size_t of_batch = 0; of_batch <= cuts; ++of_batch) {  // 0: model, all: data, else hybrid
    std::vector<AllowedForms> allowed(of_batch, by_batch);
    allowed.resize(cuts, by_others);
    counts.push_back(tiling_cuts(graph, devices, allowed).moved());
  }
  return counts;
}

// Of some of these, cuts that are each the best for what is left add up to more than hybrid parallelism.
TEST(SoyBean, IsNeverAboveDataModelOrHybridParallelismByItsOwnCount) {
  const std::vector<CountedNetwork> networks{
      {"alexnet", {}, {2, 4, 8}},        {"vgg16", {}, {2, 4, 8}},
      {"dense_layers", {}, {2, 4, 8}},   {"convolution_layers", {{"b", 1024}}, {8, 32}},
      {"mlp", {{"b", 64}}, {2, 16, 64}}, {"train_mnist", {{"b", 64}}, {8, 64}},
      {"layers", {{"b", 32}}, {8}},
  };
  for (const auto& [name, dims, all_devices] : networks) {
    const EinGraph graph = network(name, dims);
    for (const std::int64_t devices : all_devices) {
      PlanRequest request{devices, {}, CostKind::bytes, {}};
      request.batch = "b";
      const double own = kcut_tilings(graph, request).moved();
      for (const double other : counts_of_hybrids(graph, devices)) EXPECT_LE(own, other) << name << " on " << devices;
    }
  }
}

TEST(SoyBean, IsNeverBelowEinDecomp) {
  for (const char* const name : {"alexnet", "vgg16", "dense_layers", "convolution_layers"}) {
    const EinGraph graph = network(name, {});
    for (const CostKind kind : {CostKind::seconds, CostKind::bytes}) {
      const double pieces = kind == CostKind::seconds ? 1.01 : 1;  // starting kernels for them
      EXPECT_LE(costs(graph, "eindecomp", 8, kind).of(kind), pieces * costs(graph, "kcut", 8, kind).of(kind)) << name;
    }
  }
}

}  // namespace
}  // namespace einrel::test
