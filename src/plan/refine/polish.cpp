#include "plan/refine/polish.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>

#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"
#include "plan/refine/changing_costs.h"

namespace einrel {
namespace {

/// Gains below this part of the whole are rounding.
constexpr double rounding = 1e-9;

class Polish {
 public:
  Polish(const EinGraph& graph, const Plan& plan, const Machine& machine, Transfers& transfers,
         const PolishOptions& options)
      : graph_(graph), costs_(graph, plan, machine, options.kind, transfers), options_(options) {
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) find_candidates(v);
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      for (const VertexId input : graph.vertices[v].inputs) {
        if (is_input(graph[input])) continue;
        neighbours_[v].push_back(input.index);
        neighbours_[input.index].push_back(v);
      }
    }
  }

  Plan run() {
    bool has_changed = true;
    while (has_changed && goes_on()) {
      has_changed = false;
      for (std::size_t v = 0; v < graph_.vertices.size() && goes_on(); ++v) has_changed |= improve(v);
      if (has_changed) continue;
      for (std::size_t v = 0; v < graph_.vertices.size() && goes_on(); ++v) has_changed |= improve_with_neighbours(v);
    }
    return costs_.now().plan;
  }

 private:
  bool goes_on() const { return tried_ < options_.changes_tried; }

  void find_candidates(std::size_t v) {
    neighbours_.emplace_back();
    const Vertex& vertex = graph_.vertices[v];
    ByteKey key;
    put_computation(key, vertex);
    key.put(vertex.bound);
    auto [known, is_new] = candidates_of_.try_emplace(key.take());
    if (is_new && !is_input(vertex)) known->second = numbered_candidates(vertex, v);
    candidates_.push_back(&known->second);
  }

  std::vector<VertexPlan> numbered_candidates(const Vertex& vertex, std::size_t v) const {
    std::vector<VertexPlan> in_one_order;
    std::vector<VertexPlan> in_all;
    for (const VertexPlan& cut : options_.candidates(vertex, v)) {
      std::vector<VertexPlan> orders = numbered_in_all_orders(vertex, cut);
      if (orders.empty()) continue;
      in_one_order.push_back(orders.front());
      std::move(orders.begin(), orders.end(), std::back_inserter(in_all));
    }
    constexpr std::size_t most = 4000;
    return in_all.size() <= most ? in_all : in_one_order;
  }

  double enough() const { return (1 - rounding) * costs_.now().total; }

  std::optional<ChangingCosts::Change> best_change(std::size_t v, double enough) {
    std::optional<ChangingCosts::Change> best;
    for (const VertexPlan& plan : *candidates_[v]) {
      if (plan == costs_.now().plan.vertices[v]) continue;
      ++tried_;
      std::optional<ChangingCosts::Change> change = costs_.with(v, plan, best ? best->total : enough);
      if (change && is_allowed(*change)) best = std::move(change);
    }
    return best;
  }

  bool is_allowed(const ChangingCosts::Change& change) const {
    Plan plan = costs_.now().plan;
    for (const auto& [v, own] : change.plans) plan.vertices[v] = own;
    return options_.is_allowed(plan);
  }

  bool improve(std::size_t v) {
    const std::optional<ChangingCosts::Change> change = best_change(v, enough());
    if (change) costs_.take(*change);
    return change.has_value();
  }

  /// The few best changes of a vertex, each with its neighbours changed, one after the other, to what is best then.
  bool improve_with_neighbours(std::size_t v) {
    constexpr std::size_t few = 8;
    std::vector<ChangingCosts::Change> changes;
    for (const VertexPlan& plan : *candidates_[v]) {
      if (plan == costs_.now().plan.vertices[v]) continue;
      ++tried_;
      if (auto change = costs_.with(v, plan)) changes.push_back(std::move(*change));
    }
    const std::size_t count = std::min(few, changes.size());
    std::partial_sort(changes.begin(), changes.begin() + static_cast<std::ptrdiff_t>(count), changes.end(),
                      [](const auto& a, const auto& b) { return a.total < b.total; });
    changes.resize(count);
    const ChangingCosts::Costed before = costs_.now();
    for (const ChangingCosts::Change& change : changes) {
      if (!goes_on()) break;
      costs_.take(change);
      for (const std::size_t other : neighbours_[v]) {
        if (const auto follows = best_change(other, costs_.now().total)) costs_.take(*follows);
      }
      if (costs_.now().total < (1 - rounding) * before.total && options_.is_allowed(costs_.now().plan)) return true;
      costs_.restore(before);
    }
    return false;
  }

  const EinGraph& graph_;
  ChangingCosts costs_;
  const PolishOptions& options_;
  std::unordered_map<std::string, std::vector<VertexPlan>> candidates_of_;  // of vertices that compute the same
  std::vector<const std::vector<VertexPlan>*> candidates_;                  // per vertex
  std::vector<std::vector<std::size_t>> neighbours_;
  std::int64_t tried_ = 0;
};

}  // namespace

std::vector<VertexPlan> numbered_in_all_orders(const Vertex& vertex, const VertexPlan& plan) {
  std::vector<std::int64_t> counts = plan.grid;
  counts.push_back(copies_of(plan));
  std::vector<std::size_t> digits;
  std::vector<std::size_t> others;
  for (std::size_t d = 0; d < counts.size(); ++d) (counts[d] > 1 ? digits : others).push_back(d);
  std::vector<VertexPlan> plans;
  constexpr std::size_t few = 4;
  do {
    std::vector<std::size_t> order = digits;
    order.insert(order.end(), others.begin(), others.end());
    VertexPlan numbered = plan;
    numbered.strides = strides_in_order(counts, order);
    if (counts.back() > 1) numbered.copies = {{counts.back(), numbered.strides.back()}};
    numbered.strides.pop_back();
    if (!numbered.scatter || numbers_scatter(vertex, numbered)) plans.push_back(std::move(numbered));
  } while (digits.size() <= few && std::next_permutation(digits.begin(), digits.end()));
  return plans;
}

Plan polished(const EinGraph& graph, const Plan& plan, const Machine& machine, Transfers& transfers,
              const PolishOptions& options) {
  return Polish(graph, plan, machine, transfers, options).run();
}

}  // namespace einrel
