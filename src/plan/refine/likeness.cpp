#include "plan/refine/likeness.h"

#include <optional>

#include "einsum/graph/vertex_key.h"
#include "plan/refine/numbering.h"

namespace einrel {
namespace {

void put(ByteKey& key, const VertexPlan& plan) {
  for (const std::vector<std::int64_t>* numbers : {&plan.parts, &plan.grid, &plan.strides}) {
    key.put(numbers->size());
    for (const std::int64_t number : *numbers) key.put(number);
  }
  key.put(plan.scatter.value_or(plan.grid.size()));
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
    put_computation(key, graph.vertices[v]);
    key.put(graph.vertices[v].bound);
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
    for (const std::size_t reader : readers_[tensor]) {
      likeness.push_back(own_[reader]);
      for (const VertexId input : graph_.vertices[reader].inputs) likeness.push_back(input.index == tensor ? 1 : 0);
    }
    likeness.push_back(readers_[tensor].size());
  };
  const std::vector<VertexId>& inputs = graph_.vertices[v].inputs;
  add_readers(v);
  for (const VertexId input : inputs) add_readers(input.index);
  const auto add_beside = [&](std::size_t tensor) {
    for (const std::size_t other : beside_[tensor]) add_readers(other);
    likeness.push_back(beside_[tensor].size());
  };
  add_beside(v);
  for (const VertexId input : inputs) add_beside(input.index);
  return likeness;
}

}  // namespace einrel
