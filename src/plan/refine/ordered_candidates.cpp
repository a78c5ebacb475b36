#include "plan/refine/ordered_candidates.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <utility>

#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"
#include "plan/search/sampled_cuts.h"

namespace einrel {
namespace {

std::vector<VertexPlan> in_all_orders(const Vertex& vertex, const VertexPlan& plan) {
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

}  // namespace

OrderedCandidates::OrderedCandidates(const EinGraph& graph, Candidates candidates, bool are_numbered)
    : graph_(graph),
      candidates_(std::move(candidates)),
      are_numbered_(are_numbered),
      of_vertex_(graph.vertices.size(), nullptr) {}

const std::vector<OrderedCandidate>& OrderedCandidates::of(std::size_t v, ChangingCosts& costs) {
  if (of_vertex_[v] != nullptr) return *of_vertex_[v];
  ByteKey key;
  put_computation_of_inputs(key, graph_.vertices[v], graph_);
  if (has_many_labels(graph_.vertices[v])) key.put(v);  // the cuts that are looked at depend on its place
  const auto [known, is_new] = known_.try_emplace(key.take());
  of_vertex_[v] = &known->second;
  if (is_new && !is_input(graph_.vertices[v])) {
    for (VertexPlan& plan : numbered(v)) {
      const double alone = costs.alone_at_least(v, plan);
      known->second.push_back({std::move(plan), alone});
    }
    std::stable_sort(known->second.begin(), known->second.end(),
                     [](const OrderedCandidate& a, const OrderedCandidate& b) { return a.alone < b.alone; });
  }
  return known->second;
}

std::vector<VertexPlan> OrderedCandidates::numbered(std::size_t v) const {
  if (are_numbered_) return candidates_(graph_.vertices[v], v);
  std::vector<VertexPlan> in_one_order;
  std::vector<VertexPlan> in_all;
  for (const VertexPlan& cut : candidates_(graph_.vertices[v], v)) {
    std::vector<VertexPlan> orders = in_all_orders(graph_.vertices[v], cut);
    if (orders.empty()) continue;
    in_one_order.push_back(orders.front());
    std::move(orders.begin(), orders.end(), std::back_inserter(in_all));
  }
  constexpr std::size_t most = 1500;
  return in_all.size() <= most ? in_all : in_one_order;
}

}  // namespace einrel
