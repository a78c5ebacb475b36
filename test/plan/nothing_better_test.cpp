#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "machine/machine.h"
#include "plan/cost/cost.h"
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

/// The plan that random changes come to from here.
Plan after_random_changes(Random& random, const EinGraph& graph, Plan plan, const Machine& machine, CostKind kind,
                          int changes) {
  double least = costs_of(graph, plan, machine).of(kind);
  for (int change = 0; change < changes; ++change) {
    Plan other = plan;
    const std::int64_t vertices = random.chance(0.7) ? 1 : 2;
    for (std::int64_t i = 0; i < vertices; ++i) {
      const auto v = static_cast<std::size_t>(random.between(0, std::ssize(graph.vertices) - 1));
      if (!std::holds_alternative<Input>(graph.vertices[v].op))
        other.vertices[v] = random_vertex_plan(random, graph, v, plan.sites);
    }
    lay_out_inputs(graph, other);
    const double cost = costs_of(graph, other, machine).of(kind);
    if (cost >= least) continue;
    least = cost;
    plan = std::move(other);
  }
  return plan;
}

TEST(NothingBetter, IsFoundByRandomChanges) {
  for (int seed = 0; seed < rounds(60); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const std::string text = random_program(random);
    const std::int64_t sites = random.one_of(std::array<std::int64_t, 9>{2, 3, 4, 6, 8, 12, 16, 32, 64});
    const Machine machine = random_machine(random, sites);
    SCOPED_TRACE(fmt::format("seed {}, {} sites, {} links\n{}", seed, sites, machine.links.size(), text));
    const EinGraph graph = einrel::graph_of(text);
    const Planned planned =
        planner_named("eindecomp").plan(graph, {.sites = sites, .machine = machine, .batch = std::nullopt});
    const Plan& plan = std::get<Plan>(planned);
    const double cost = costs_of(graph, plan, machine).seconds;
    const Plan other = after_random_changes(random, graph, plan, machine, CostKind::seconds, 3000);
    EXPECT_GE(costs_of(graph, other, machine).seconds, 0.99 * cost) << "planned\n"
                                                                    << text_of(graph, plan, machine) << "found\n"
                                                                    << text_of(graph, other, machine);
  }
}

TEST(NothingBetter, IsFoundForFewerSites) {
  for (int seed = 0; seed < rounds(30); ++seed) {
    Random random(static_cast<std::uint64_t>(1000 + seed));
    const std::string text = random_program(random);
    const std::int64_t sites = random.one_of(std::array<std::int64_t, 5>{4, 6, 8, 12, 16});
    const Machine machine = random_machine(random, sites);
    const std::optional<std::int64_t> memory = random.chance(0.5) ? std::optional(std::int64_t{1} << 40) : std::nullopt;
    SCOPED_TRACE(fmt::format("seed {}, {} sites, {} links\n{}", seed, sites, machine.links.size(), text));
    const EinGraph graph = einrel::graph_of(text);
    const auto seconds_of_plan_for = [&](std::int64_t number) {
      const PlanRequest request{.sites = number, .machine = machine, .batch = std::nullopt, .memory = memory};
      Plan plan = std::get<Plan>(planner_named("eindecomp").plan(graph, request));
      plan.sites = sites;
      return costs_of(graph, plan, machine).seconds;
    };
    for (const std::int64_t fewer : divisors_of(sites))
      EXPECT_LE(seconds_of_plan_for(sites), 1.01 * seconds_of_plan_for(fewer)) << "for " << fewer;
  }
}

}  // namespace
}  // namespace einrel::test
