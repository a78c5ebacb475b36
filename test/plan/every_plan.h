#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/refine/numbering.h"
#include "random_product.h"
#include "support/random_einsum.h"

namespace einrel::test {

/// Graphs of up to `most` vertices over tensors of two or three labels, read once or several times.
inline std::string random_dag(Random& random, std::int64_t most) {
  static const std::array<std::string, 3> labels{"a", "b", "c"};
  std::string text = "dims a=8 b=4 c=6\n";
  std::vector<std::pair<std::string, std::string>> tensors;
  for (int i = 0; i < 3; ++i) {
    const std::string of = i == 0 ? "ab" : i == 1 ? "bc" : "ac";
    tensors.emplace_back("I" + std::to_string(i), of);
    text += "input I" + std::to_string(i) + "[" + of.substr(0, 1) + "," + of.substr(1) + "]\n";
  }
  const std::int64_t count = random.between(2, most);
  for (std::int64_t v = 0; v < count; ++v) {
    const Named x = tensors[static_cast<std::size_t>(random.between(std::max<std::int64_t>(0, v - 1), v + 2))];
    const Named y = tensors[static_cast<std::size_t>(random.between(0, v + 2))];
    auto [statement, made] = random_product(random, "V" + std::to_string(v), x, y, 0.7);
    text += statement;
    tensors.push_back(std::move(made));
  }
  return text;
}

/// Every grid of all sites, and each with its result shared out along every label that allows it.
inline std::vector<VertexPlan> all_ways(const EinGraph& graph, const Vertex& vertex, std::int64_t sites,
                                        CostKind kind) {
  if (std::holds_alternative<Input>(vertex.op))  // numbered by its readers
    return {one_part_per_site(PartitionVector(vertex.bound.size(), 1))};
  std::vector<VertexPlan> ways;
  for (const PartitionVector& grid : site_grids(most_parts(vertex, graph), sites)) {
    const VertexPlan whole = one_part_per_site(grid);
    ways.push_back(whole);
    for (std::size_t label = 0; label < grid.size() && kind != CostKind::bound; ++label) {
      VertexPlan scattered = whole;
      scattered.scatter = label;
      scattered.parts[label] *= partial_sites(vertex, whole);
      const bool is_long_enough = scattered.parts[label] <= most_parts(vertex, graph)[label];
      if (is_long_enough && scatter_fault(vertex, scattered).empty()) ways.push_back(scattered);
    }
  }
  return ways;
}

/// The least cost of all plans on all sites; nothing where there are too many.
inline std::optional<double> least_of_every_plan(const EinGraph& graph, std::int64_t sites, CostKind kind) {
  std::vector<std::vector<VertexPlan>> candidates;
  double all = 1;
  for (const Vertex& vertex : graph.vertices) {
    candidates.push_back(all_ways(graph, vertex, sites, kind));
    all *= static_cast<double>(candidates.back().size());
  }
  if (all > 2e4) return std::nullopt;
  std::vector<std::size_t> at(candidates.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  for (;;) {
    Plan plan{"", sites, {}};
    for (std::size_t v = 0; v < at.size(); ++v) plan.vertices.push_back(candidates[v][at[v]]);
    if (kind != CostKind::bound) number_sites(graph, plan);
    least = std::min(least, costs_of(graph, plan, {}).of(kind));
    std::size_t v = 0;
    while (v < at.size() && ++at[v] == candidates[v].size()) at[v++] = 0;
    if (v == at.size()) return least;
  }
}

}  // namespace einrel::test
