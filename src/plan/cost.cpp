#include "plan/cost.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "einsum/functions.h"
#include "plan/bound_cost.h"
#include "plan/numbering.h"

namespace einrel {
namespace {

double elements_of(const Shape& bound) { return static_cast<double>(element_count(bound)); }
double bytes_of(const Vertex& tensor) { return elements_of(tensor.bound) * static_cast<double>(size_of(tensor.dtype)); }

double copies_of(const Layout& layout) {
  return std::transform_reduce(layout.copies.begin(), layout.copies.end(), 1.0, std::multiplies<>(),
                               [](const SiteCopies& copies) { return static_cast<double>(copies.count); });
}

double sites_of(const Layout& layout) {
  double sites = copies_of(layout);
  for (const LayoutAxis& axis : layout.axes) sites *= static_cast<double>(axis.grid);
  return sites;
}

bool is_argument(const Vertex& vertex) {
  const auto* const einsum = std::get_if<EinSum>(&vertex.op);
  return einsum != nullptr && (einsum->reducer == Reducer::argmax || einsum->reducer == Reducer::argmin);
}

/// Sites that each hold a part of every result: the product of the grid over reduced labels.
double partial_sites(const Vertex& vertex, const VertexPlan& plan) {
  double sites = 1;
  for (const std::size_t label : reduced_labels(vertex)) sites *= static_cast<double>(plan.grid[label]);
  return sites;
}

/// Bytes of each result that go back to those who have a part of it.
std::int64_t bytes_back(const Vertex& vertex) {
  return is_argument(vertex) ? static_cast<std::int64_t>(size_of(std::get<EinSum>(vertex.op).body.type())) : 0;
}

/// How often partial results travel.
double partial_passes(const Vertex& vertex) { return is_argument(vertex) ? 3 : 1; }

double reduced_floats(const Vertex& vertex, const VertexPlan& plan) {
  const double sites = partial_sites(vertex, plan);
  return sites == 1 ? 0 : sites * partial_passes(vertex) * elements_of(vertex.bound);
}

double reduced_bytes(const Vertex& vertex, const VertexPlan& plan) {
  const auto each = static_cast<double>(partial_bytes(vertex));
  return (partial_sites(vertex, plan) - 1) * elements_of(vertex.bound) * each;
}

/// Work and memory traffic of the site that has most of them, and the start of its kernel calls.
double computing_seconds(const EinGraph& graph, const Vertex& vertex, const VertexPlan& plan, const Machine& machine) {
  if (std::holds_alternative<Input>(vertex.op)) return 0;
  const Shape extents = label_extents(vertex);
  double share = 1;
  double calls = 1;
  for (std::size_t l = 0; l < extents.size(); ++l) {
    if (extents[l] == Extent(0)) return 0;
    const std::int64_t parts_here = (plan.parts[l] + plan.grid[l] - 1) / plan.grid[l];
    const std::int64_t largest = (extents[l].value() + plan.parts[l] - 1) / plan.parts[l];
    share *= static_cast<double>(std::min(parts_here * largest, extents[l].value())) /
             static_cast<double>(extents[l].value());
    calls *= static_cast<double>(parts_here);
  }
  const double rate = machine.cores * machine.flops_per_core * (vertex.dtype == DType::f64 ? 0.5 : 1);
  double touched = elements_of(vertex.bound) * static_cast<double>(size_of(vertex.dtype)) /
                   (static_cast<double>(sites_used(plan)) / partial_sites(vertex, plan));
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
    const Layout need = needed_layout(vertex, o, plan);
    touched += bytes_of(graph[vertex.inputs[o]]) * copies_of(need) / sites_of(need);
  }
  return std::max(flops(vertex) * share / rate, touched / machine.memory_bandwidth) +
         calls / machine.cores * machine.task_seconds;
}

double receiving_seconds(double bytes, const Machine& machine) {
  return bytes == 0 ? 0 : machine.network_latency + bytes / machine.network_bandwidth;
}

/// An owner of results receives the others' parts.
double reducing_seconds(const Vertex& vertex, const VertexPlan& plan, const Machine& machine) {
  const double owners = static_cast<double>(sites_used(plan)) / partial_sites(vertex, plan);
  return receiving_seconds(reduced_bytes(vertex, plan) / owners, machine);
}

class BoundModel : public CostModel {
 public:
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    return bound_of_vertex(graph.vertices[vertex], graph, plan.parts);
  }
  double of_move(const Vertex& tensor, const Layout& have, const Layout& need) const override {
    return bound_of_repartition(tensor.bound, parts_of(have), parts_of(need));
  }
  double of_input(const Vertex&, const Layout&) const override { return 0; }
  bool sends_once() const override { return false; }

 private:
  static PartitionVector parts_of(const Layout& layout) {
    PartitionVector parts;
    for (const LayoutAxis& axis : layout.axes) parts.push_back(axis.cut.parts);
    return parts;
  }
};

bool lies_alike(const Layout& have, const Layout& need) {
  return need.copies.empty() &&
         std::equal(have.axes.begin(), have.axes.end(), need.axes.begin(),
                    [](const LayoutAxis& a, const LayoutAxis& b) { return a.cut == b.cut && a.grid == b.grid; });
}

class FloatsModel : public CostModel {
 public:
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    return reduced_floats(graph.vertices[vertex], plan);
  }
  double of_move(const Vertex& tensor, const Layout& have, const Layout& need) const override {
    return lies_alike(have, need) ? 0 : copies_of(need) * elements_of(tensor.bound);
  }
  double of_input(const Vertex& tensor, const Layout& need) const override {
    return need.copies.empty() ? 0 : copies_of(need) * elements_of(tensor.bound);
  }
};

class BytesModel : public CostModel {
 public:
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    return reduced_bytes(graph.vertices[vertex], plan);
  }
  /// Every site needs its share; those that hold one keep what both have in common, along a dimension the smaller of
  /// the two shares. At best these are as many sites as there are of the fewer kind.
  double of_move(const Vertex& tensor, const Layout& have, const Layout& need) const override {
    double kept = std::min(sites_of(have), sites_of(need));
    for (std::size_t d = 0; d < have.axes.size(); ++d) {
      kept /= static_cast<double>(std::max(have.axes[d].grid, need.axes[d].grid));
    }
    return bytes_of(tensor) * (copies_of(need) - kept);
  }
  double of_input(const Vertex& tensor, const Layout& need) const override {
    return bytes_of(tensor) * (copies_of(need) - 1);
  }
};

class SecondsModel : public CostModel {
 public:
  explicit SecondsModel(Machine machine) : machine_(std::move(machine)) {}
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    const Vertex& computed = graph.vertices[vertex];
    return computing_seconds(graph, computed, plan, machine_) + reducing_seconds(computed, plan, machine_);
  }
  double of_move(const Vertex& tensor, const Layout& have, const Layout& need) const override {
    return receiving_seconds(bytes_.of_move(tensor, have, need) / sites_of(need), machine_);
  }
  double of_input(const Vertex& tensor, const Layout& need) const override {
    return receiving_seconds(bytes_.of_input(tensor, need) / sites_of(need), machine_);
  }

 private:
  Machine machine_;
  BytesModel bytes_;
};

/// Sums up a plan, vertex by vertex.
class Accounting {
 public:
  Accounting(const EinGraph& graph, const Plan& plan, const Machine& machine)
      : graph_(graph), plan_(plan), machine_(machine), transfers_(plan.sites) {
    costs_.received.assign(static_cast<std::size_t>(plan.sites), 0);
  }

  PlanCosts run() {
    std::vector<PartitionVector> parts;
    for (const VertexPlan& vertex : plan_.vertices) parts.push_back(vertex.parts);
    costs_.bound = bound_of_plan(graph_, parts);
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      VertexCost cost = of(v);
      costs_.floats += cost.floats;
      costs_.bytes = checked_add(costs_.bytes, cost.bytes());
      costs_.seconds += cost.seconds;
      costs_.vertices.push_back(std::move(cost));
    }
    if (plan_.sites == 1) costs_.floats = 0;  // there is nowhere to move to
    return std::move(costs_);
  }

 private:
  VertexCost of(std::size_t v) {
    const Vertex& vertex = graph_.vertices[v];
    const VertexPlan& plan = plan_.vertices[v];
    VertexCost cost;
    cost.operand_bytes.assign(vertex.inputs.size(), 0);
    if (std::holds_alternative<Input>(vertex.op)) return cost;
    cost.bound = bound_of_vertex(vertex, graph_, plan.parts);
    cost.floats = reduced_floats(vertex, plan);
    cost.moving = reducing_seconds(vertex, plan, machine_);
    for (const std::size_t operand : operands_read(vertex)) receive(v, operand, cost);
    reduce(v, cost);
    cost.seconds = computing_seconds(graph_, vertex, plan, machine_) + cost.moving;
    return cost;
  }

  void receive(std::size_t v, std::size_t operand, VertexCost& cost) {
    const Vertex& vertex = graph_.vertices[v];
    const std::size_t producer = vertex.inputs[operand].index;
    const Vertex& tensor = graph_.vertices[producer];
    const Layout have = result_layout(tensor, plan_.vertices[producer]);
    const Layout need = needed_layout(vertex, operand, plan_.vertices[v]);
    if (!std::holds_alternative<Input>(tensor.op)) {
      cost.bound += bound_of_repartition(tensor.bound, result_parts(tensor, plan_.vertices[producer].parts),
                                         operand_parts(vertex, operand, plan_.vertices[v].parts));
    }
    if (have == need) return;
    if (!sent_.insert({producer, need}).second) {
      cost.has_received_before = true;
      return;
    }
    cost.floats += copies_of(need) * elements_of(tensor.bound);
    const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
    std::int64_t most = 0;
    const std::vector<std::int64_t>& elements = transfers_.received(have, need, tensor.bound);
    for (std::size_t site = 0; site < elements.size(); ++site) {
      const std::int64_t bytes = checked_multiply(elements[site], size);
      cost.operand_bytes[operand] = checked_add(cost.operand_bytes[operand], bytes);
      costs_.received[site] = checked_add(costs_.received[site], bytes);
      most = std::max(most, bytes);
    }
    cost.moving += receiving_seconds(static_cast<double>(most), machine_);
  }

  /// The sites at coordinate 0 of all reduced labels receive what the others of their groups have; an extreme goes back
  /// to these.
  void reduce(std::size_t v, VertexCost& cost) {
    const Vertex& vertex = graph_.vertices[v];
    const VertexPlan& plan = plan_.vertices[v];
    const auto others = static_cast<std::int64_t>(partial_sites(vertex, plan)) - 1;
    if (others == 0) return;
    const Layout owners = result_layout(vertex, plan);
    Layout group = owners;
    for (const std::size_t label : reduced_labels(vertex))
      group.copies.push_back({plan.grid[label], plan.strides[label]});
    const std::int64_t back = bytes_back(vertex);
    const std::int64_t each = partial_bytes(vertex) - back;
    for (std::int64_t site = 0; site < plan_.sites; ++site) {
      const std::int64_t owned = elements_at(owners, vertex.bound, site);
      const std::int64_t returned = checked_multiply(back, elements_at(group, vertex.bound, site) - owned);
      const std::int64_t bytes = checked_add(checked_multiply(checked_multiply(others, each), owned), returned);
      std::int64_t& received = costs_.received[static_cast<std::size_t>(site)];
      received = checked_add(received, bytes);
      cost.reduced_bytes = checked_add(cost.reduced_bytes, bytes);
    }
  }

  const EinGraph& graph_;
  const Plan& plan_;
  const Machine& machine_;
  PlanCosts costs_;
  Transfers transfers_;
  std::set<std::pair<std::size_t, Layout>> sent_;
};

}  // namespace

std::string_view name_of(CostKind kind) {
  constexpr std::array<std::string_view, 4> names{"bound", "floats", "bytes", "seconds"};
  return names.at(static_cast<std::size_t>(kind));
}

double one_site_seconds(const EinGraph& graph, std::size_t vertex, const Machine& machine) {
  const Vertex& computed = graph.vertices[vertex];
  const VertexPlan whole = one_part_per_site(PartitionVector(label_extents(computed).size(), 1));
  return computing_seconds(graph, computed, whole, machine);
}

std::unique_ptr<CostModel> cost_model(CostKind kind, const Machine& machine) {
  switch (kind) {
    case CostKind::bound: return std::make_unique<BoundModel>();
    case CostKind::floats: return std::make_unique<FloatsModel>();
    case CostKind::bytes: return std::make_unique<BytesModel>();
    case CostKind::seconds: break;
  }
  return std::make_unique<SecondsModel>(machine);
}

std::int64_t VertexCost::bytes() const {
  return std::accumulate(operand_bytes.begin(), operand_bytes.end(), reduced_bytes, checked_add);
}

double PlanCosts::of(CostKind kind) const {
  switch (kind) {
    case CostKind::bound: return bound;
    case CostKind::floats: return floats;
    case CostKind::bytes: return static_cast<double>(bytes);
    case CostKind::seconds: break;
  }
  return seconds;
}

PlanCosts costs_of(const EinGraph& graph, const Plan& plan, const Machine& machine) {
  return Accounting(graph, plan, machine).run();
}

std::int64_t partial_bytes(const Vertex& vertex) {
  const auto* const einsum = std::get_if<EinSum>(&vertex.op);
  if (einsum == nullptr || !einsum->reducer) return static_cast<std::int64_t>(size_of(vertex.dtype));
  const DType value = einsum->body.type();
  // The extreme to its owner and back, then the position.
  if (is_argument(vertex)) return 2 * bytes_back(vertex) + static_cast<std::int64_t>(size_of(DType::i64));
  return static_cast<std::int64_t>(size_of(reduced_type(*einsum->reducer, value)));
}

}  // namespace einrel
