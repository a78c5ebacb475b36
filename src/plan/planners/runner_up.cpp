#include "plan/planners/runner_up.h"

#include <algorithm>
#include <map>
#include <string>

#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"
#include "plan/planners/eindecomp.h"
#include "plan/refine/changing_costs.h"
#include "plan/refine/polish.h"
#include "plan/refine/reduce_as_received.h"

namespace einrel {
namespace {

/// Says which vertices are alike, with all that the cost of another way to compute them depends on.
class Likeness {
 public:
  Likeness(const EinGraph& graph, const Plan& plan) : graph_(graph), readers_(graph.vertices.size()) {
    std::map<std::string, std::size_t> numbers;
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      const Vertex& vertex = graph.vertices[v];
      ByteKey key;
      put_computation(key, vertex);
      key.put(vertex.bound);
      put(key, plan.vertices[v]);
      own_.push_back(numbers.try_emplace(key.take(), numbers.size()).first->second);
      for (const VertexId input : vertex.inputs) readers_[input.index].push_back(v);
    }
  }

  /// The vertex, what it reads, and all readers of these.
  std::vector<std::size_t> of(std::size_t v) const {
    std::vector<std::size_t> likeness;
    const auto add_readers = [&](std::size_t tensor) {
      likeness.push_back(own_[tensor]);
      for (const std::size_t reader : readers_[tensor]) {
        likeness.push_back(own_[reader]);
        for (const VertexId input : graph_.vertices[reader].inputs) likeness.push_back(input.index == tensor ? 1 : 0);
      }
      likeness.push_back(readers_[tensor].size());
    };
    add_readers(v);
    for (const VertexId input : graph_.vertices[v].inputs) add_readers(input.index);
    const std::vector<VertexId>& inputs = graph_.vertices[v].inputs;
    for (const State& state : graph_.steps.states) {  // their next values go where they lie: no other vertex is alike
      const bool is_next = state.next && graph_.outputs[*state.next].index == v;
      if (is_next || std::find(inputs.begin(), inputs.end(), state.now) != inputs.end()) likeness.push_back(v);
    }
    return likeness;
  }

 private:
  static void put(ByteKey& key, const VertexPlan& plan) {
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

  const EinGraph& graph_;
  std::vector<std::size_t> own_;
  std::vector<std::vector<std::size_t>> readers_;
};

std::vector<std::size_t> readers_of(const EinGraph& graph, std::size_t tensor) {
  std::vector<std::size_t> readers;
  for (std::size_t v = tensor + 1; v < graph.vertices.size(); ++v) {
    const std::vector<VertexId>& inputs = graph.vertices[v].inputs;
    if (std::find(inputs.begin(), inputs.end(), VertexId{tensor}) != inputs.end()) readers.push_back(v);
  }
  return readers;
}

/// What is known of a vertex, of another one that is like it.
std::optional<RunnerUp> alike(const EinGraph& graph, std::size_t v, std::size_t first, std::optional<RunnerUp> known) {
  if (!known) return known;
  const auto counterpart = [&](std::size_t vertex) {
    if (vertex == first) return v;
    const std::vector<VertexId>& inputs = graph.vertices[first].inputs;
    const auto input = std::find(inputs.begin(), inputs.end(), VertexId{vertex});
    if (input != inputs.end()) return graph.vertices[v].inputs[static_cast<std::size_t>(input - inputs.begin())].index;
    const std::vector<std::size_t> readers = readers_of(graph, first);
    const auto reader = std::find(readers.begin(), readers.end(), vertex);
    return readers_of(graph, v)[static_cast<std::size_t>(reader - readers.begin())];
  };
  known->producer = counterpart(known->producer);
  known->consumer = counterpart(known->consumer);
  return known;
}

/// Of a change of v, what costs more for it, and where most.
RunnerUp runner_up(const EinGraph& graph, std::size_t v, const ChangingCosts::Costed& now,
                   const ChangingCosts::Change& change) {
  RunnerUp other{change.plans.front().second, change.total - now.total, v, v, change.alone - now.alone[v]};
  for (const auto& [tensor, cost] : change.moves) {
    const double more = cost - now.moves[tensor];
    if (more <= other.more_there) continue;
    other.more_there = more;
    other.producer = tensor;
    const std::vector<std::size_t> readers = tensor == v ? readers_of(graph, v) : std::vector<std::size_t>();
    other.consumer = readers.empty() ? v : readers.front();
  }
  return other;
}

}  // namespace

std::vector<std::optional<RunnerUp>> runners_up(const EinGraph& graph, const Plan& plan, const Machine& machine,
                                                CostKind kind) {
  std::vector<std::optional<RunnerUp>> result(graph.vertices.size());
  Transfers transfers(plan.sites, machine);
  ChangingCosts costs(graph, plan, machine, kind, transfers);
  const Candidates candidates = all_candidates(graph, plan.sites, kind);
  const Plan at_once = reduced_at_once(graph, plan);
  const Likeness likeness(graph, plan);
  std::map<std::vector<std::size_t>, std::size_t> known;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (is_input(graph.vertices[v])) continue;
    if (const auto [first, is_new] = known.try_emplace(likeness.of(v), v); !is_new) {
      result[v] = alike(graph, v, first->second, result[first->second]);
      continue;
    }
    std::optional<ChangingCosts::Change> best;
    for (const VertexPlan& cut : candidates(graph.vertices[v], v)) {
      if (is_cut_alike(cut, at_once.vertices[v])) continue;
      for (const VertexPlan& other : numbered_in_all_orders(graph.vertices[v], cut)) {
        auto change = best ? costs.with(v, other, best->total) : costs.with(v, other);
        if (change) best = std::move(change);
      }
    }
    if (best) result[v] = runner_up(graph, v, costs.now(), *best);
  }
  return result;
}

}  // namespace einrel
