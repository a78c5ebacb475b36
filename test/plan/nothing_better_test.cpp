#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "machine/machine.h"
#include "plan/cost/cost.h"
#include "plan/planners/eindecomp.h"
#include "plan/planners/planner.h"
#include "plan/refine/numbering.h"
#include "support/program.h"
#include "support/random_plan.h"
#include "support/rounds.h"

/// Random changes of plans, with costs counted for the whole plan each time: no search, no candidates of the planner's.
namespace einrel::test {
namespace {

/// A chain, tree or net of products, element-wise statements and reductions over a few labels.
std::string random_program(Random& random) {
  const std::vector<std::string> labels{"a", "b", "c", "d"};
  std::string text = "dims";
  for (const std::string& label : labels)
    text += fmt::format(" {}={}", label, random.one_of(std::array<std::int64_t, 7>{1, 6, 48, 60, 256, 1000, 4096}));
  struct Known {
    std::string name;
    std::vector<std::string> labels;
  };
  std::vector<Known> known;
  const auto some_labels = [&](std::size_t least) {
    std::vector<std::string> all = labels;
    random.shuffle(all);
    all.resize(static_cast<std::size_t>(random.between(static_cast<std::int64_t>(least), 3)));
    return all;
  };
  const auto read = [](const Known& tensor) {
    return fmt::format("{}[{}]", tensor.name, fmt::join(tensor.labels, ","));
  };
  text += "\ninput ";
  const std::int64_t inputs = random.between(2, 4);
  for (std::int64_t i = 0; i < inputs; ++i) {
    known.push_back({fmt::format("X{}", i), some_labels(1)});
    text += (i > 0 ? ", " : "") + read(known.back());
  }
  text += "\n";
  const std::int64_t statements = random.between(1, 5);
  for (std::int64_t s = 0; s < statements; ++s) {
    const auto any = [&] { return known[static_cast<std::size_t>(random.between(0, std::ssize(known) - 1))]; };
    const Known x = any();
    const Known y = any();
    std::vector<std::string> all = x.labels;
    for (const std::string& label : y.labels) {
      if (std::find(all.begin(), all.end(), label) == all.end()) all.push_back(label);
    }
    random.shuffle(all);
    const auto kept = static_cast<std::size_t>(random.between(1, std::ssize(all)));
    const std::vector<std::string> reduced(all.begin() + static_cast<std::ptrdiff_t>(kept), all.end());
    all.resize(kept);
    const std::string body = fmt::format("{} {} {}", read(x), random.chance(0.7) ? "*" : "+", read(y));
    known.push_back({fmt::format("Z{}", s), all});
    text += fmt::format("{} = {}{}\n", read(known.back()),
                        reduced.empty() ? "" : fmt::format("sum[{}] ", fmt::join(reduced, ",")),
                        reduced.empty() ? body : "(" + body + ")");
  }
  return text;
}

Machine random_machine(Random& random, std::int64_t sites) {
  Machine machine;
  machine.sites = sites;
  machine.processor.flops_per_core = random.one_of(std::array{5e9, 1e11, 2e13});
  machine.cores = 1;
  machine.memory_bandwidth = random.one_of(std::array{1e10, 1e12});
  machine.network_bandwidth = random.one_of(std::array{1e9, 1e10, 3e11});
  machine.network_latency = random.one_of(std::array{1e-6, 5e-5});
  machine.task_seconds = random.one_of(std::array{1e-6, 1e-5});
  if (random.chance(0.5) && sites % 4 == 0) {
    machine.links.push_back({"between", sites / 2, machine.network_bandwidth / 20, 1e-5});
    if (sites % 8 == 0) machine.links.push_back({"inside", sites / 4, machine.network_bandwidth / 4, 1e-6});
  }
  return machine;
}

/// A random way to compute a vertex, numbered in a random order, which may not be one that a shared out result allows.
VertexPlan any_vertex_plan(Random& random, const Vertex& vertex, const PartitionVector& most, std::int64_t sites) {
  const std::vector<PartitionVector> grids = site_grids(most, random.between(1, sites));
  VertexPlan plan = one_part_per_site(grids[static_cast<std::size_t>(random.between(0, std::ssize(grids) - 1))]);
  if (random.chance(0.4)) scatter(random, vertex, most, plan);
  const std::int64_t copies = random.chance(0.3) ? random.between(1, sites / sites_used(plan)) : 1;
  std::vector<std::int64_t> counts = plan.grid;
  counts.push_back(partial_sites(vertex, plan) == 1 ? copies : 1);
  std::vector<std::size_t> order(counts.size());
  for (std::size_t l = 0; l < order.size(); ++l) order[l] = l;
  random.shuffle(order);
  plan.strides = strides_in_order(counts, order);
  if (counts.back() > 1) plan.copies = {{counts.back(), plan.strides.back()}};
  plan.strides.pop_back();
  return plan;
}

VertexPlan random_vertex_plan(Random& random, const EinGraph& graph, std::size_t v, std::int64_t sites) {
  const Vertex& vertex = graph.vertices[v];
  const PartitionVector most = most_parts(vertex, graph);
  VertexPlan plan = any_vertex_plan(random, vertex, most, sites);
  while (plan.scatter && !numbers_scatter(vertex, plan)) plan = any_vertex_plan(random, vertex, most, sites);
  return plan;
}

/// An input on some of the sites, each element once, whatever its readers need.
VertexPlan random_input_plan(Random& random, const EinGraph& graph, std::size_t v, std::int64_t sites) {
  const Shape& bound = graph.vertices[v].bound;
  PartitionVector most;
  for (const Extent extent : bound) most.push_back(std::max<std::int64_t>(extent.value(), 1));
  const bool is_on_one = random.chance(0.3);
  VertexPlan plan = any_vertex_plan(random, graph.vertices[v], most, is_on_one ? 1 : sites);
  plan.copies.clear();
  return plan;
}

std::string text_of(const EinGraph& graph, const Plan& plan, const Machine& machine) {
  const PlanCosts costs = costs_of(graph, plan, machine);
  std::string text;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const VertexPlan& own = plan.vertices[v];
    text += fmt::format("{}: parts {} grid {} strides {}{}", graph.vertices[v].name, own.parts, own.grid, own.strides,
                        own.scatter ? fmt::format(" scatter {}", *own.scatter) : "");
    for (const SiteCopies& copies : own.copies) text += fmt::format(" x{}@{}", copies.count, copies.stride);
    text += fmt::format(" {} s, {} bytes\n", costs.vertices[v].seconds, costs.vertices[v].bytes());
  }
  return text;
}

/// The plan that random changes come to from here; among those that use all sites where seconds do not count.
Plan after_random_changes(Random& random, const EinGraph& graph, Plan plan, const Machine& machine, CostKind kind,
                          int changes) {
  double least = costs_of(graph, plan, machine).of(kind);
  for (int change = 0; change < changes; ++change) {
    Plan other = plan;
    const std::int64_t vertices = random.chance(0.7) ? 1 : 2;
    const auto change_one = [&](bool of_inputs) {
      const auto v = static_cast<std::size_t>(random.between(0, std::ssize(graph.vertices) - 1));
      if (std::holds_alternative<Input>(graph.vertices[v].op) != of_inputs) return;
      other.vertices[v] = of_inputs ? random_input_plan(random, graph, v, plan.sites)
                                    : random_vertex_plan(random, graph, v, plan.sites);
    };
    for (std::int64_t i = 0; i < vertices; ++i) change_one(false);
    if (random.chance(0.5)) lay_out_inputs(graph, other);
    for (std::int64_t i = 0; i < vertices; ++i) change_one(true);
    const double cost = costs_of(graph, other, machine).of(kind);
    if (cost >= least || (kind != CostKind::seconds && !uses_all_sites(graph, other, machine))) continue;
    least = cost;
    plan = std::move(other);
  }
  return plan;
}

void expect_nothing_better(const std::string& text, const PlanRequest& request, int changes) {
  SCOPED_TRACE(fmt::format("{} sites, {} links, {}\n{}", request.sites, request.machine.links.size(),
                           name_of(request.cost), text));
  const EinGraph graph = einrel::graph_of(text);
  const Planned planned = planner_named("eindecomp").plan(graph, request);
  const Plan& plan = std::get<Plan>(planned);
  const double cost = costs_of(graph, plan, request.machine).of(request.cost);
  Random random(static_cast<std::uint64_t>(request.sites));
  const Plan other = after_random_changes(random, graph, plan, request.machine, request.cost, changes);
  EXPECT_GE(costs_of(graph, other, request.machine).of(request.cost), 0.99 * cost)
      << "planned\n"
      << text_of(graph, plan, request.machine) << "found\n"
      << text_of(graph, other, request.machine);
}

TEST(NothingBetter, IsFoundByRandomChanges) {
  for (int seed = 0; seed < rounds(80); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const std::string text = random_program(random);
    const std::int64_t sites = random.one_of(std::array<std::int64_t, 9>{2, 3, 4, 6, 8, 12, 16, 32, 64});
    const CostKind kind = seed % 4 == 3 ? CostKind::bytes : CostKind::seconds;
    SCOPED_TRACE(fmt::format("seed {}", seed));
    expect_nothing_better(
        text, {.sites = sites, .machine = random_machine(random, sites), .cost = kind, .batch = std::nullopt}, 3000);
  }
}

/// Windows, and inputs so small that where they lie is a matter of latencies.
TEST(NothingBetter, IsFoundWhereInputsLieAtRandom) {
  const std::vector<std::string> programs{
      "dims b=80000 i=64 j=64\ninput X[b,i], W[i,j], G[j]\nY[b,j] = sum[i] X[b,i] * W[i,j]\n"
      "Z[b,j] = relu(Y[b,j]) * G[j]\n",
      "dims b=4 c=8 k=8 t=5000 d=5\ninput X[b,c,t], K[k,c,d], L[k,c,d]\n"
      "A[b,k,t] = relu(sum[c,d] pad(X[b,c,t-d],0) * K[k,c,d])\n"
      "B[b,k,t] = relu(sum[c,d] pad(A[b,c,t-4*d],0) * L[k,c,d])\n",
      "dims c=3 k=8 y=960 x=1200 e=5 f=5\ninput I[c,y,x], K[k,c,e,f]\n"
      "A[k,y,x] = sum[c,e,f] pad(I[c,y+e-2,x+f-2], 0) * K[k,c,e,f]\n"};
  for (const std::string& text : programs) {
    for (const std::int64_t sites : {4, 8}) {
      for (const CostKind kind : {CostKind::seconds, CostKind::bytes})
        expect_nothing_better(text, {.sites = sites, .machine = {}, .cost = kind, .batch = std::nullopt}, 3000);
    }
  }
}

/// That no number of sites has a slower plan than a smaller one.
void expect_none_faster_on_fewer(const EinGraph& graph, std::int64_t most, const Machine& machine,
                                 std::optional<std::int64_t> memory) {
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t sites = 1; sites <= most; ++sites) {
    const PlanRequest request{.sites = sites, .machine = machine, .batch = std::nullopt, .memory = memory};
    Plan plan = std::get<Plan>(planner_named("eindecomp").plan(graph, request));
    plan.sites = most;
    const double seconds = costs_of(graph, plan, machine).seconds;
    EXPECT_LE(seconds, 1.01 * least) << "for " << sites;
    least = std::min(least, seconds);
  }
}

TEST(NothingBetter, IsFoundForFewerSites) {
  for (int seed = 0; seed < rounds(6); ++seed) {
    Random random(static_cast<std::uint64_t>(1000 + seed));
    const std::string text = random_program(random);
    const Machine machine = random_machine(random, 16);
    const std::optional<std::int64_t> memory = random.chance(0.5) ? std::optional(std::int64_t{1} << 40) : std::nullopt;
    SCOPED_TRACE(fmt::format("seed {}, {} links\n{}", seed, machine.links.size(), text));
    expect_none_faster_on_fewer(einrel::graph_of(text), 16, machine, memory);
  }
}

}  // namespace
}  // namespace einrel::test
