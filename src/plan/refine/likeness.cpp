#include "plan/refine/likeness.h"

#include <optional>

#include "einsum/graph/vertex_key.h"
#include "plan/refine/numbering.h"
#include "plan/search/sampled_cuts.h"

namespace einrel {
namespace {

void put(ByteKey& key, const VertexPlan& plan) {
  for (const std::vector<std::int64_t>* numbers : {&plan.parts, &plan.grid, &plan.strides}) {
    key.put(numbers->size());
    for (const std::int64_t number : *numbers) key.put(number);
  }
  key.put(plan.scatter.value_or(plan.grid.size()));
  key.put(plan.all_reduced);
  for (const SiteCopies& copies : plan.copies) {
    key.put(copies.count);
    key.put(copies.stride);
  }
}

}  // namespace

Likeness::Likeness(const EinGraph& graph, const Plan& plan)
    : graph_(graph), own_(graph.vertices.size()), readers_(graph.vertices.size()), beside_(graph.vertices.size()) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    ByteKey key;
    put_computation_of_inputs(key, graph.vertices[v], graph);
    if (has_many_labels(graph.vertices[v])) key.put(v);
    computation_.push_back(key.take());
    change(v, plan.vertices[v]);
    for (const VertexId input : graph.vertices[v].inputs) readers_[input.index].push_back(v);
  }
  const std::vector<std::optional<std::size_t>> next = next_of_inputs(graph);
  for (std::size_t v = 0; v < next.size(); ++v) {
    if (!next[v]) continue;
    beside_[v].push_back(*next[v]);
    beside_[*next[v]].push_back(v);
  }
}

void Likeness::change(std::size_t v, const VertexPlan& plan) {
  ByteKey key;
  key.put(computation_[v]);
  put(key, plan);
  own_[v] = numbers_.try_emplace(key.take(), numbers_.size()).first->second;
}

std::vector<std::size_t> Likeness::of(std::size_t v) const {
  std::vector<std::size_t> likeness;
  const auto add_readers = [&](std::size_t tensor) {
    likeness.push_back(own_[tensor]);
    likeness.push_back(readers_[tensor].size());
    constexpr std::size_t many = 64;  // that only one tensor has, so that it tells enough
    if (readers_[tensor].size() > many) return likeness.push_back(tensor);
    for (const std::size_t reader : readers_[tensor]) {
      likeness.push_back(own_[reader]);
      likeness.push_back(graph_.vertices[reader].inputs.size());
      for (const VertexId input : graph_.vertices[reader].inputs) likeness.push_back(input.index == tensor ? 1 : 0);
    }
  };
  const std::vector<VertexId>& inputs = graph_.vertices[v].inputs;
  add_readers(v);
  for (const VertexId input : inputs) add_readers(input.index);
  const auto add_beside = [&](std::size_t tensor) {
    likeness.push_back(beside_[tensor].size());
    for (const std::size_t other : beside_[tensor]) add_readers(other);
  };
  add_beside(v);
  for (const VertexId input : inputs) add_beside(input.index);
  return likeness;
}

std::vector<std::size_t> Likeness::around(std::size_t v) const {
  std::vector<std::size_t> around{v};
  const auto add = [&](const std::vector<std::size_t>& others) {
    around.insert(around.end(), others.begin(), others.end());
  };
  add(readers_[v]);
  add(beside_[v]);
  for (const VertexId input : graph_.vertices[v].inputs) {
    around.push_back(input.index);
    add(readers_[input.index]);
    add(beside_[input.index]);
  }
  return around;
}

}  // namespace einrel
