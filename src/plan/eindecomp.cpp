#include "plan/eindecomp.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "plan/bound_cost.h"

namespace einrel {
namespace {

constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

/// The cheapest way to compute a vertex, and what it needs, so that its result is cut in one way.
struct Cheapest {
  double cost = 0;
  PartitionVector parts;
  std::map<std::size_t, PartitionVector> results;  ///< of the producers that are planned with it
};
/// F(v, dZ), for all dZ.
using Table = std::map<PartitionVector, Cheapest>;

bool is_input(const Vertex& vertex) { return std::holds_alternative<Input>(vertex.op); }

class EinDecomp {
 public:
  EinDecomp(const EinGraph& graph, std::int64_t calls)
      : graph_(graph), parts_(graph.vertices.size()), is_planned_(graph.vertices.size()) {
    for (const Vertex& vertex : graph.vertices) {
      candidates_.push_back(is_input(vertex) ? std::vector<PartitionVector>{PartitionVector(vertex.bound.size(), 1)}
                                             : power_of_two_partitions(most_parts(vertex, graph), calls));
    }
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      if (!is_input(graph.vertices[v])) continue;
      parts_[v] = candidates_[v].front();
      is_planned_[v] = true;
    }
  }

  Plan run() {
    if (is_forest()) {
      std::vector<std::size_t> all;
      for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
        if (!is_planned_[v]) all.push_back(v);
      }
      plan_together(all);
    }
    for (std::vector<std::size_t> path = longest_path(); !path.empty(); path = longest_path()) plan_together(path);
    Plan plan{"eindecomp-paper", std::move(parts_), 0};
    plan.cost = bound_of_plan(graph_, plan.parts);
    return plan;
  }

 private:
  bool is_forest() const {
    std::vector<std::size_t> consumers(graph_.vertices.size(), 0);
    for (const Vertex& vertex : graph_.vertices) {
      for (const std::size_t producer : producers_of(vertex)) ++consumers[producer];
    }
    for (std::size_t v = 0; v < consumers.size(); ++v) {
      if (!is_input(graph_.vertices[v]) && consumers[v] > 1) return false;
    }
    return true;
  }

  static std::set<std::size_t> producers_of(const Vertex& vertex) {
    std::set<std::size_t> producers;
    for (const VertexId input : vertex.inputs) producers.insert(input.index);
    return producers;
  }

  /// Of vertices that are not planned yet, each the producer of the next; empty when all are.
  std::vector<std::size_t> longest_path() const {
    std::vector<std::size_t> length(graph_.vertices.size(), 0);
    std::vector<std::size_t> before(graph_.vertices.size(), nobody);
    for (std::size_t v = 0; v < length.size(); ++v) {
      if (is_planned_[v]) continue;
      for (const std::size_t producer : producers_of(graph_.vertices[v])) {
        if (length[producer] < length[v]) continue;
        length[v] = length[producer];
        before[v] = length[producer] > 0 ? producer : nobody;
      }
      ++length[v];
    }
    std::vector<std::size_t> path;
    if (length.empty()) return path;
    auto at = static_cast<std::size_t>(std::max_element(length.begin(), length.end()) - length.begin());
    if (length[at] == 0) return path;
    for (; at != nobody; at = before[at]) path.push_back(at);
    std::reverse(path.begin(), path.end());
    return path;
  }

  /// The best plan of some vertices, producers first, each with at most one consumer among them; whatever is not among
  /// them costs nothing.
  void plan_together(const std::vector<std::size_t>& vertices) {
    tables_.clear();
    chosen_.clear();
    std::vector<bool> is_used(graph_.vertices.size(), false);
    for (const std::size_t v : vertices) {
      for (const std::size_t producer : producers_of(graph_.vertices[v])) is_used[producer] = true;
      tables_[v] = table_of(v);
    }
    for (std::size_t i = vertices.size(); i-- > 0;) {
      const std::size_t v = vertices[i];
      if (!is_used[v]) choose(v);
    }
    for (std::size_t i = vertices.size(); i-- > 0;) {
      for (const auto& [producer, result] : chosen_.at(vertices[i])->results) {
        chosen_[producer] = &tables_.at(producer).at(result);
      }
    }
    for (const std::size_t v : vertices) {
      parts_[v] = chosen_.at(v)->parts;
      is_planned_[v] = true;
    }
  }

  /// Takes the cheapest entry of all.
  void choose(std::size_t v) {
    const Table& table = tables_.at(v);
    const auto best = std::min_element(table.begin(), table.end(),
                                       [](const auto& x, const auto& y) { return x.second.cost < y.second.cost; });
    chosen_[v] = &best->second;
  }

  Table table_of(std::size_t v) {
    const Vertex& vertex = graph_.vertices[v];
    best_results_.clear();
    Table table;
    for (const PartitionVector& parts : candidates_[v]) {
      Cheapest entry{bound_of_vertex(vertex, graph_, parts), parts, {}};
      for (const std::size_t producer : producers_of(vertex)) {
        if (tables_.find(producer) == tables_.end()) continue;
        const auto& [cost, result] = best_result(vertex, producer, parts);
        entry.cost += cost;
        entry.results[producer] = result;
      }
      const auto [at, is_new] = table.try_emplace(result_parts(vertex, parts), entry);
      if (!is_new && entry.cost < at->second.cost) at->second = std::move(entry);
    }
    return table;
  }

  /// The cheapest way to compute a producer and to bring its result to where a vertex with these parts needs it.
  const std::pair<double, PartitionVector>& best_result(const Vertex& vertex, std::size_t producer,
                                                        const PartitionVector& parts) {
    std::vector<PartitionVector> needed;
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      if (vertex.inputs[o].index == producer) needed.push_back(operand_parts(vertex, o, parts));
    }
    const auto [known, is_new] = best_results_.try_emplace({producer, std::move(needed)});
    if (!is_new) return known->second;
    double least = std::numeric_limits<double>::infinity();
    for (const auto& [result, entry] : tables_.at(producer)) {
      double cost = entry.cost;
      for (const PartitionVector& to : known->first.second) {
        cost += bound_of_repartition(graph_.vertices[producer].bound, result, to);
      }
      if (cost >= least) continue;
      least = cost;
      known->second = {cost, result};
    }
    return known->second;
  }

  const EinGraph& graph_;
  std::vector<PartitionVector> parts_;
  std::vector<bool> is_planned_;
  std::vector<std::vector<PartitionVector>> candidates_;
  std::map<std::size_t, Table> tables_;  ///< of the vertices that are planned together
  std::map<std::size_t, const Cheapest*> chosen_;
  std::map<std::pair<std::size_t, std::vector<PartitionVector>>, std::pair<double, PartitionVector>> best_results_;
};

}  // namespace

Plan eindecomp_paper(const EinGraph& graph, std::int64_t calls) {
  if (calls < 1) throw Bug("a plan of no kernel calls");
  return EinDecomp(graph, calls).run();
}

}  // namespace einrel
