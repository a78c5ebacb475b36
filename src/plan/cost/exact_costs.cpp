#include "plan/cost/exact_costs.h"

#include <algorithm>
#include <numeric>

#include "einsum/graph/vertex_facts.h"
#include "machine/seconds.h"
#include "plan/cost/bound_cost.h"
#include "plan/cost/modelled.h"

namespace einrel {

double MoveCost::of(CostKind kind) const {
  switch (kind) {
    case CostKind::bound: return 0;  // charged for each reader
    case CostKind::floats: return floats;
    case CostKind::bytes: return static_cast<double>(bytes);
    case CostKind::seconds: break;
  }
  return copying + moving;
}

ExactCosts::ExactCosts(const EinGraph& graph, const Machine& machine, Transfers& transfers)
    : graph_(graph), machine_(machine), transfers_(transfers) {}

double ExactCosts::alone_at_least(std::size_t v, const VertexPlan& plan, CostKind kind) const {
  const Vertex& vertex = graph_.vertices[v];
  if (is_input(vertex)) return 0;
  switch (kind) {
    case CostKind::bound: return bound_of_vertex(vertex, graph_, plan.parts);
    case CostKind::floats: return reduced_floats(vertex, plan);
    case CostKind::bytes: return reduced_bytes(vertex, plan);
    case CostKind::seconds: break;
  }
  return computing(vertex, plan) + receiving_parts_seconds(vertex, plan, machine_);
}

double ExactCosts::alone(std::size_t v, const VertexPlan& plan, CostKind kind) const {
  if (kind != CostKind::seconds || machine_.links.empty()) return alone_at_least(v, plan, kind);
  const Vertex& vertex = graph_.vertices[v];
  return is_input(vertex) ? 0 : computing(vertex, plan) + receiving_parts(vertex, plan, nullptr);
}

VertexCost ExactCosts::alone(std::size_t v, const VertexPlan& plan, Tally& tally) {
  const Vertex& vertex = graph_.vertices[v];
  VertexCost cost;
  cost.operand_bytes.assign(vertex.inputs.size(), 0);
  if (is_input(vertex)) return cost;
  cost.bound = bound_of_vertex(vertex, graph_, plan.parts);
  cost.floats = reduced_floats(vertex, plan);
  cost.moving = receiving_parts(vertex, plan, &tally);
  cost.reduced_bytes = reduce(vertex, plan, tally);
  cost.seconds = computing(vertex, plan) + cost.moving;
  return cost;
}

double ExactCosts::computing(const Vertex& vertex, const VertexPlan& plan) const {
  return vertex_seconds(graph_, vertex, plan, machine_) + adding_seconds(vertex, plan, machine_);
}

MoveCost ExactCosts::move(const Vertex& tensor, const Layout& have, const Route& route, Tally* tally) {
  const Layout& need = route.need;
  MoveCost cost;
  const double delivered = has_windows(need) ? static_cast<double>(elements_in_chunks(tensor.bound, cuts_of(need)))
                                             : elements_in(tensor.bound);
  cost.floats = copies_in(need) * delivered;
  // What an earlier vertex took in pieces is put together as it mostly would have been when it came.
  if (!route.source || cuts_parts_of(have, need)) cost.copying = copying_seconds(tensor, have, need, machine_);
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  const ReceivedSums received = transfers_.sums(have, need, tensor.bound);
  if (received.all == 0) return cost;
  cost.bytes = checked_multiply(received.all, size);
  if (tally != nullptr) {
    const std::vector<std::int64_t> elements = elements_received(have, need, tensor.bound, transfers_.sites());
    for (std::size_t site = 0; site < elements.size(); ++site) tally->add(site, checked_multiply(elements[site], size));
  }
  const auto most = static_cast<double>(checked_multiply(received.most, size));
  const double part = most * sites_in(need) / (bytes_of(tensor) * copies_in(need));
  cost.moving = std::max(receiving_seconds(most, messages_to(have, need, part, tree_depth(copies_in(need))),
                                           static_cast<double>(received.receivers), machine_),
                         crossing(have, need, tensor, tally));
  return cost;
}

double ExactCosts::seconds_at_least(const Vertex& tensor, const Layout& have, const Layout& need) {
  const auto size = static_cast<double>(size_of(tensor.dtype));
  const ReceivedSums received = transfers_.sums(have, need, tensor.bound);
  double longest = receiving_seconds(size * static_cast<double>(received.most), 1, 1, machine_);
  for (const Link& link : machine_.links) {
    const auto& elements = transfers_.crossing(link, have, need, tensor.bound);
    const auto most = static_cast<double>(*std::max_element(elements.begin(), elements.end()));
    longest = std::max(longest, crossing_seconds(most * size, link));
  }
  return longest;
}

/// What crosses the links of the machine on the way from where a tensor lies to where it is needed: links carry bytes
/// at a time, and sites receive meanwhile.
double ExactCosts::crossing(const Layout& have, const Layout& need, const Vertex& tensor, Tally* tally) {
  double longest = 0;
  for (std::size_t l = 0; l < machine_.links.size(); ++l) {
    const auto& elements = transfers_.crossing(machine_.links[l], have, need, tensor.bound);
    longest = std::max(longest, crossing_link(l, elements, static_cast<double>(size_of(tensor.dtype)), tally));
  }
  return longest;
}

/// Of what each group behind a link receives, which is counted as crossing it: elements of so many bytes.
double ExactCosts::crossing_link(std::size_t l, const std::vector<std::int64_t>& elements, double size,
                                 Tally* tally) const {
  if (tally != nullptr) tally->crossing[l] += size * std::accumulate(elements.begin(), elements.end(), 0.0);
  const auto most = static_cast<double>(*std::max_element(elements.begin(), elements.end()));
  return einrel::crossing_seconds(most * size, machine_.links[l]);
}

/// The owners of results receive the others' parts of these, over links, too.
double ExactCosts::receiving_parts(const Vertex& vertex, const VertexPlan& plan, Tally* tally) const {
  double longest = receiving_parts_seconds(vertex, plan, machine_);
  if (partial_sites(vertex, plan) == 1) return longest;
  for (std::size_t l = 0; l < machine_.links.size(); ++l) {
    const auto elements = parts_crossing(vertex, plan, transfers_.sites(), machine_.links[l].sites);
    const auto size = static_cast<double>(partial_bytes(vertex));
    double seconds = crossing_link(l, elements, size, tally);
    if (plan.all_reduced) {  // sums go back when they are done
      const auto& back =
          transfers_.crossing(machine_.links[l], owned_layout(vertex, plan), result_layout(vertex, plan), vertex.bound);
      seconds += crossing_link(l, back, size, tally);
    }
    longest = std::max(longest, seconds);
  }
  return longest;
}

/// Bytes received: the owners of results receive what the others of their groups have of these; an extreme goes back to
/// them, and a result that is all-reduced, too.
std::int64_t ExactCosts::reduce(const Vertex& vertex, const VertexPlan& plan, Tally& tally) const {
  const std::int64_t others = partial_sites(vertex, plan) - 1;
  if (others == 0) return 0;
  std::int64_t all = 0;
  const Layout owners = owned_layout(vertex, plan);
  const Layout group = partial_layout(vertex, plan);
  const std::int64_t back = plan.all_reduced ? partial_bytes(vertex) : bytes_back(vertex);
  const std::int64_t each = partial_bytes(vertex) - bytes_back(vertex);
  for (std::int64_t site = 0; site < transfers_.sites(); ++site) {
    const std::int64_t owned = elements_at(owners, vertex.bound, site);
    const std::int64_t returned =
        back == 0 ? 0 : checked_multiply(back, elements_at(group, vertex.bound, site) - owned);
    const std::int64_t bytes = checked_add(checked_multiply(checked_multiply(others, each), owned), returned);
    tally.add(static_cast<std::size_t>(site), bytes);
    all = checked_add(all, bytes);
  }
  return all;
}

}  // namespace einrel
