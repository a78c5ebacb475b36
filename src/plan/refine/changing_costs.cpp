#include "plan/refine/changing_costs.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/cost/bound_cost.h"
#include "plan/placed_inputs.h"
#include "plan/refine/numbering.h"
#include "plan/spmd.h"
#include "plan/staying_inputs.h"

namespace einrel {
namespace {

void add_once(std::vector<std::size_t>& list, std::size_t number) {
  if (std::find(list.begin(), list.end(), number) == list.end()) list.push_back(number);
}

/// Once, though two states may have one next value.
void set_moves(ChangingCosts::Change& change, std::size_t tensor, double cost) {
  const auto known = std::find_if(change.moves.begin(), change.moves.end(),
                                  [&](const std::pair<std::size_t, double>& moves) { return moves.first == tensor; });
  change.total += cost;
  if (known == change.moves.end()) {
    change.moves.emplace_back(tensor, cost);
  } else {
    change.total -= std::exchange(known->second, cost);
  }
}

}  // namespace

ChangingCosts::ChangingCosts(const EinGraph& graph, Plan plan, const Machine& machine, CostKind kind,
                             Transfers& transfers)
    : graph_(graph),
      now_{std::move(plan), {}, {}, 0},
      kind_(kind),
      transfers_(transfers),
      exact_(graph, machine, transfers),
      readers_(graph.vertices.size()),
      fed_back_(graph.vertices.size()),
      next_(next_of_inputs(graph)),
      laid_out_with_(graph.vertices.size()) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (computes_nothing(vertex)) continue;
    for (const std::size_t operand : operands_read(vertex)) {
      const std::size_t tensor = vertex.inputs[operand].index;
      std::vector<Reader>& readers = readers_[tensor];
      if (readers.empty() || readers.back().vertex != v) readers.push_back({v, {}});
      readers.back().operands.push_back(operand);
      if (lies_freely(graph.vertices[tensor])) add_once(laid_out_with_[v], tensor);
    }
  }
  for (const State& state : graph.steps.states) {
    if (!state.next) continue;
    const std::size_t next = graph.outputs[*state.next].index;
    fed_back_[next].push_back(state.now.index);
    add_once(laid_out_with_[next], state.now.index);
  }
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    now_.alone.push_back(alone(v, now_.plan.vertices[v]));
    now_.moves.push_back(cost_of_moves(v));
  }
  add_up();
}

/// Anew, so that rounding does not add up.
void ChangingCosts::add_up() {
  now_.total = std::accumulate(now_.alone.begin(), now_.alone.end(), 0.0) +
               std::accumulate(now_.moves.begin(), now_.moves.end(), 0.0);
}

Layout ChangingCosts::needed_by(const Reader& reader, std::size_t operand) const {
  const Vertex& vertex = graph_.vertices[reader.vertex];
  return needed_layout(vertex, operand, graph_[vertex.inputs[operand]].bound, now_.plan.vertices[reader.vertex]);
}

double ChangingCosts::cost_of_moves(std::size_t tensor) {
  const Vertex& vertex = graph_.vertices[tensor];
  const VertexPlan& own = now_.plan.vertices[tensor];
  TensorRoutes routes(result_layout(vertex, own));
  double cost = 0;
  const auto bring = [&](Layout need) {
    const std::size_t known = routes.count();
    const std::optional<std::size_t> number = routes.find_or_add(std::move(need), vertex.bound, transfers_);
    if (number && *number == known) cost += share_of_step(vertex) * exact_.move(vertex, routes, known).of(kind_);
  };
  for (const Reader& reader : readers_[tensor]) {
    routes.next_reader();
    for (const std::size_t operand : reader.operands) {
      bring(needed_by(reader, operand));
      if (kind_ != CostKind::bound || is_input(vertex)) continue;
      cost += bound_of_repartition(
          vertex.bound, result_parts(vertex, own.parts),
          operand_parts(graph_.vertices[reader.vertex], operand, now_.plan.vertices[reader.vertex].parts));
    }
  }
  for (const std::size_t state : fed_back_[tensor]) {
    routes.next_reader();
    bring(result_layout(graph_.vertices[state], now_.plan.vertices[state]));
  }
  return cost;
}

std::vector<std::size_t> ChangingCosts::moved_with(std::size_t v) const {
  std::vector<std::size_t> tensors{v};
  for (const VertexId input : graph_.vertices[v].inputs) add_once(tensors, input.index);
  for (const std::size_t input : laid_out_with_[v]) {
    add_once(tensors, input);
    if (is_fed_back(input)) add_once(tensors, *next_[input]);
  }
  return tensors;
}

/// An input, so that what follows from where it lies costs least; a state's next value goes back to it.
void ChangingCosts::lay_out(std::size_t input, Change& change) {
  const Vertex& vertex = graph_.vertices[input];
  std::set<Layout> needs;
  for (const Reader& reader : readers_[input]) {
    for (const std::size_t operand : reader.operands) needs.insert(needed_by(reader, operand));
  }
  const bool is_state = is_fed_back(input);
  std::optional<Layout> kept;
  if (next_[input]) kept = result_layout(graph_.vertices[*next_[input]], now_.plan.vertices[*next_[input]]);
  const VertexPlan before = now_.plan.vertices[input];
  VertexPlan best = before;
  const auto moves = [&] { return std::pair(cost_of_moves(input), is_state ? cost_of_moves(*next_[input]) : 0); };
  const auto sum = [](const std::pair<double, double>& costs) { return costs.first + costs.second; };
  std::pair<double, double> least = moves();
  for (VertexPlan& plan : now_.plan.is_spmd ? spmd_candidates(graph_, input, now_.plan.sites)
                                            : input_plans(vertex.bound, needs, kept, is_state)) {
    if (sum(least) == 0) break;
    now_.plan.vertices[input] = std::move(plan);
    if (const auto other = moves(); sum(other) < sum(least)) {
      least = other;
      best = now_.plan.vertices[input];
    }
  }
  now_.plan.vertices[input] = best;
  if (!(best == before)) change.plans.emplace_back(input, best);
  set_moves(change, input, least.first);
  if (is_state) set_moves(change, *next_[input], least.second);
}

std::vector<std::size_t> ChangingCosts::readers(std::size_t tensor) const {
  std::vector<std::size_t> found;
  for (const Reader& reader : readers_[tensor]) found.push_back(reader.vertex);
  return found;
}

std::vector<std::size_t> ChangingCosts::moved_with_input(std::size_t tensor) const {
  if (!next_[tensor]) return {tensor};
  return {tensor, *next_[tensor]};
}

double ChangingCosts::moving(std::size_t tensor) {
  if (!lies_freely(graph_.vertices[tensor])) return cost_of_moves(tensor);
  Change change{.total = 0, .plans = {}, .alone = 0, .moves = {}};
  const VertexPlan before = now_.plan.vertices[tensor];
  lay_out(tensor, change);
  now_.plan.vertices[tensor] = before;
  return change.total;
}

std::vector<std::size_t> ChangingCosts::moving_depends_on(std::size_t tensor) const {
  if (!fed_back_[tensor].empty()) return {};
  std::vector<std::size_t> found;
  const auto add = [&](std::size_t of) {
    if (!is_input(graph_.vertices[of])) add_once(found, of);
    for (const Reader& reader : readers_[of]) add_once(found, reader.vertex);
  };
  add(tensor);
  if (is_fed_back(tensor)) add(*next_[tensor]);
  std::sort(found.begin(), found.end());
  return found;
}

bool ChangingCosts::is_fed_back(std::size_t input) const { return next_[input] && !fed_back_[*next_[input]].empty(); }

std::int64_t ChangingCosts::effort(std::size_t v) const {
  constexpr std::size_t few = 8;
  std::size_t readers = 0;
  for (const std::size_t tensor : moved_with(v)) readers += readers_[tensor].size();
  return static_cast<std::int64_t>(1 + readers / few);
}

double ChangingCosts::total_without(std::size_t v) const {
  double total = now_.total - now_.alone[v];
  for (const std::size_t tensor : moved_with(v)) total -= now_.moves[tensor];
  return total;
}

std::optional<ChangingCosts::Change> ChangingCosts::with(std::size_t v, const VertexPlan& plan, double enough) {
  Change change;
  change.alone = alone(v, plan);
  change.total = total_without(v) + change.alone;
  if (change.total >= enough) return std::nullopt;
  std::vector<std::pair<std::size_t, VertexPlan>> before{{v, now_.plan.vertices[v]}};
  for (const std::size_t input : laid_out_with_[v]) before.emplace_back(input, now_.plan.vertices[input]);
  change.plans.emplace_back(v, plan);
  now_.plan.vertices[v] = plan;
  const auto is_laid_out = [&](std::size_t tensor) {
    return std::any_of(laid_out_with_[v].begin(), laid_out_with_[v].end(), [&](std::size_t input) {
      return tensor == input || (is_fed_back(input) && tensor == *next_[input]);
    });
  };
  try {
    for (const std::size_t tensor : moved_with(v)) {
      if (change.total >= enough) break;
      if (is_laid_out(tensor)) continue;
      set_moves(change, tensor, cost_of_moves(tensor));
    }
    for (const std::size_t input : laid_out_with_[v]) {
      if (change.total < enough) lay_out(input, change);
    }
  } catch (const UserError&) {  // more bytes than 63 bits count
    change.total = std::numeric_limits<double>::infinity();
  }
  for (auto& [changed, own] : before) now_.plan.vertices[changed] = std::move(own);
  return change.total < enough ? std::optional(std::move(change)) : std::nullopt;
}

std::optional<ChangingCosts::Change> ChangingCosts::with_laid_out(std::size_t input) {
  Change change;
  change.total = now_.total - now_.moves[input];
  if (is_fed_back(input)) change.total -= now_.moves[*next_[input]];
  const VertexPlan before = now_.plan.vertices[input];
  try {
    lay_out(input, change);
  } catch (const UserError&) {  // more bytes than 63 bits count
    change.plans.clear();
  }
  now_.plan.vertices[input] = before;
  return change.plans.empty() ? std::nullopt : std::optional(std::move(change));
}

void ChangingCosts::take(const Change& change) {
  now_.alone[change.plans.front().first] = change.alone;
  for (const auto& [v, plan] : change.plans) now_.plan.vertices[v] = plan;
  for (const auto& [tensor, cost] : change.moves) now_.moves[tensor] = cost;
  add_up();
}

}  // namespace einrel
