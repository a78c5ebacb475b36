#include "plan/cost/cost.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include "einsum/expr/functions.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/cost/bound_cost.h"
#include "plan/cost/exact_costs.h"
#include "plan/cost/modelled.h"
#include "plan/routes.h"
#include "plan/staying_inputs.h"
#include "plan/transfers.h"

namespace einrel {
namespace {
/// Sums up a plan, vertex by vertex.
class Accounting {
 public:
  Accounting(const EinGraph& graph, const Plan& plan, const Machine& machine, Transfers& transfers)
      : graph_(graph), plan_(plan), exact_(graph, machine, transfers), routes_(graph, plan, transfers) {
    for (Tally* const tally : {&tally_, &tally_once_}) {
      tally->received.assign(static_cast<std::size_t>(plan.sites), 0);
      tally->crossing.assign(machine.links.size(), 0);
    }
  }

  PlanCosts run() {
    std::vector<PartitionVector> parts;
    for (const VertexPlan& vertex : plan_.vertices) parts.push_back(vertex.parts);
    costs_.bound = bound_of_plan(graph_, parts);
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) costs_.vertices.push_back(of(v));
    for (std::size_t s = 0; s < graph_.steps.states.size(); ++s) feed_back(s);
    for (const VertexCost& cost : costs_.vertices) {
      costs_.floats += cost.floats;
      costs_.bytes = checked_add(costs_.bytes, cost.bytes());
      costs_.seconds += cost.seconds;
    }
    if (plan_.sites == 1) costs_.floats = costs_.once.floats = 0;  // there is nowhere to move to
    add_once();
    costs_.received = std::move(tally_.received);
    costs_.crossing = std::move(tally_.crossing);
    return std::move(costs_);
  }

 private:
  /// What inputs that stay have received is a part of all that was.
  void add_once() {
    for (std::size_t site = 0; site < tally_.received.size(); ++site) tally_.add(site, tally_once_.received[site]);
    for (std::size_t l = 0; l < tally_.crossing.size(); ++l) tally_.crossing[l] += tally_once_.crossing[l];
    for (const VertexCost& cost : costs_.vertices) costs_.once.bytes = checked_add(costs_.once.bytes, cost.once_bytes);
    costs_.once.received = std::move(tally_once_.received);
    costs_.steps = steps_of(graph_);
  }

  VertexCost of(std::size_t v) {
    VertexCost cost = exact_.alone(v, plan_.vertices[v], tally_);
    if (is_input(graph_.vertices[v])) return cost;
    for (const std::size_t operand : operands_read(graph_.vertices[v])) receive(v, operand, cost);
    return cost;
  }

  void receive(std::size_t v, std::size_t operand, VertexCost& cost) {
    const Vertex& vertex = graph_.vertices[v];
    const std::size_t producer = vertex.inputs[operand].index;
    const Vertex& tensor = graph_.vertices[producer];
    if (!is_input(tensor)) {
      cost.bound += bound_of_repartition(tensor.bound, result_parts(tensor, plan_.vertices[producer].parts),
                                         operand_parts(vertex, operand, plan_.vertices[v].parts));
    }
    if (const std::optional<std::size_t> number = routes_.route_of(v, operand))
      cost.operand_bytes[operand] = bring(producer, *number, cost);
  }

  /// The next value of a state to where that lies, for the next step.
  void feed_back(std::size_t s) {
    const State& state = graph_.steps.states[s];
    const std::optional<std::size_t> number = routes_.route_of_state(s);
    if (!number) return;
    VertexCost& cost = costs_.vertices[state.now.index];
    cost.feedback_bytes = bring(graph_.outputs[*state.next].index, *number, cost);
  }

  /// Bytes received by a route, in `cost` but for these; 0 where somebody else has taken it.
  std::int64_t bring(std::size_t producer, std::size_t number, VertexCost& cost) {
    if (!sent_.insert({producer, number}).second) {
      cost.has_received_before = true;
      return 0;
    }
    const Route& route = routes_.route(producer, number);
    if (route.source) cost.has_received_before = true;
    const Vertex& tensor = graph_.vertices[producer];
    Tally& tally = stays(tensor) ? tally_once_ : tally_;
    const MoveCost moved = exact_.move(tensor, routes_.source(producer, number), route, &tally);
    cost.floats += moved.floats;
    cost.moving += moved.moving;
    cost.seconds += moved.copying + moved.moving;
    if (!stays(tensor)) return moved.bytes;
    costs_.once.floats += moved.floats;
    costs_.once.seconds += moved.copying + moved.moving;
    costs_.once.moving_seconds += moved.moving;
    cost.once_bytes = checked_add(cost.once_bytes, moved.bytes);
    return moved.bytes;
  }

  const EinGraph& graph_;
  const Plan& plan_;
  PlanCosts costs_;
  Tally tally_;
  Tally tally_once_;
  ExactCosts exact_;
  Routes routes_;
  std::set<std::pair<std::size_t, std::size_t>> sent_;  // tensors and their routes
};

}  // namespace

std::string_view name_of(CostKind kind) {
  constexpr std::array<std::string_view, 4> names{"bound", "floats", "bytes", "seconds"};
  return names.at(static_cast<std::size_t>(kind));
}

std::int64_t VertexCost::bytes() const {
  return std::accumulate(operand_bytes.begin(), operand_bytes.end(), checked_add(reduced_bytes, feedback_bytes),
                         checked_add);
}

std::int64_t PlanCosts::most_received() const { return *std::max_element(received.begin(), received.end()); }

std::int64_t PlanCosts::most_received_later() const {
  std::int64_t most = 0;
  for (std::size_t site = 0; site < received.size(); ++site)
    most = std::max(most, received[site] - (site < once.received.size() ? once.received[site] : 0));
  return most;
}

double PlanCosts::moving_seconds() const {
  return std::accumulate(vertices.begin(), vertices.end(), 0.0,
                         [](double sum, const VertexCost& cost) { return sum + cost.moving; });
}

double PlanCosts::of(CostKind kind) const {
  const double not_paid = 1 - 1 / static_cast<double>(steps);  // of what only the first step has
  switch (kind) {
    case CostKind::bound: return bound;
    case CostKind::floats: return floats - not_paid * once.floats;
    case CostKind::bytes: return static_cast<double>(bytes) - not_paid * static_cast<double>(once.bytes);
    case CostKind::seconds: break;
  }
  return seconds - not_paid * once.seconds;
}

PlanCosts costs_of(const EinGraph& graph, const Plan& plan, const Machine& machine) {
  Transfers transfers(plan.sites, machine);
  return costs_of(graph, plan, machine, transfers);
}

PlanCosts costs_of(const EinGraph& graph, const Plan& plan, const Machine& machine, Transfers& transfers) {
  return Accounting(graph, plan, machine, transfers).run();
}

std::int64_t bytes_between(const Vertex& vertex, const VertexPlan& plan) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr) return 0;
  if (is_argument(vertex)) {
    const std::vector<std::size_t> reduced = reduced_labels(vertex);
    const bool is_cut =
        std::any_of(reduced.begin(), reduced.end(), [&](std::size_t label) { return plan.parts[label] > 1; });
    const bool is_read = einsum->body.steps.size() == 1;
    const std::int64_t value = is_read ? 0 : static_cast<std::int64_t>(size_of(einsum->body.type()));
    return is_cut ? value : 0;
  }
  std::set<VertexId> tensors;
  for (const std::size_t operand : operands_read(vertex)) tensors.insert(vertex.inputs[operand]);
  const auto results = std::clamp<std::int64_t>(static_cast<std::int64_t>(tensors.size()) - 2, 0, 2);
  return results * static_cast<std::int64_t>(size_of(vertex.dtype));
}

std::int64_t partial_bytes(const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr || !einsum->reducer) return static_cast<std::int64_t>(size_of(vertex.dtype));
  const DType value = einsum->body.type();
  // The extreme to its owner and back, then the position.
  if (is_argument(vertex)) return 2 * bytes_back(vertex) + static_cast<std::int64_t>(size_of(DType::i64));
  return static_cast<std::int64_t>(size_of(reduced_type(*einsum->reducer, value)));
}

}  // namespace einrel
