#include "plan/cost/cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "base/error.h"
#include "einsum/expr/functions.h"
#include "einsum/graph/vertex_facts.h"
#include "machine/seconds.h"
#include "plan/cost/bound_cost.h"
#include "plan/cost/exact_costs.h"
#include "plan/routes.h"
#include "plan/transfers.h"

namespace einrel {
namespace {

double elements_of(const Shape& bound) { return static_cast<double>(element_count(bound)); }

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
  const EinSum* const einsum = einsum_of(vertex);
  return einsum != nullptr && finds_position(einsum->reducer);
}

/// Bytes of each result that go back to those who have a part of it.
std::int64_t bytes_back(const Vertex& vertex) {
  return is_argument(vertex) ? static_cast<std::int64_t>(size_of(std::get<EinSum>(vertex.op).body.type())) : 0;
}

/// How often partial results travel.
double partial_passes(const Vertex& vertex) { return is_argument(vertex) ? 3 : 1; }

double reduced_floats(const Vertex& vertex, const VertexPlan& plan) {
  const auto sites = static_cast<double>(partial_sites(vertex, plan));
  return sites == 1 ? 0 : sites * partial_passes(vertex) * elements_of(vertex.bound);
}

double reduced_bytes(const Vertex& vertex, const VertexPlan& plan) {
  const auto each = static_cast<double>(partial_bytes(vertex));
  return static_cast<double>(partial_sites(vertex, plan) - 1) * elements_of(vertex.bound) * each;
}

/// Work and memory traffic of the site that has most of them, and the start of its kernel calls.
double vertex_seconds(const EinGraph& graph, const Vertex& vertex, const VertexPlan& plan, const Machine& machine) {
  if (is_input(vertex)) return 0;
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
  const std::int64_t results = sites_used(plan) / partial_sites(vertex, plan);  // that differ in more than their part
  double touched = bytes_of(vertex) / static_cast<double>(results);
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
    const Vertex& operand = graph[vertex.inputs[o]];
    double grid = 1;
    for (const std::optional<std::size_t> label : operand_labels(vertex, o)) {
      if (label) grid *= static_cast<double>(plan.grid[*label]);
    }
    touched += bytes_of(operand) / grid;
  }
  if (const std::int64_t each = bytes_between(vertex, plan); each > 0) {
    constexpr double passes = 3;  // written, read, and read again
    double bindings = share;
    for (const Extent extent : extents) bindings *= static_cast<double>(extent.value());
    touched += passes * static_cast<double>(each) * bindings;
  }
  return computing_seconds(
      {flops(vertex) * share, vertex.dtype == DType::f64, touched, calls, sites_used(plan) * copies_of(plan)}, machine);
}

/// Whether a site has several parts in one layout that are not made of whole parts of another: what lies in the other
/// has to be cut to lie like this. (When a result is shared out, its operands are cut finer than sites are.)
bool cuts_parts_of(const Layout& other, const Layout& layout) {
  bool cuts = false;
  for (std::size_t d = 0; d < layout.axes.size(); ++d) {
    const std::int64_t parts = layout.axes[d].cut.parts;
    cuts = cuts || (parts > layout.axes[d].grid && other.axes[d].cut.parts % parts != 0);
  }
  return cuts;
}

/// Copying, on each site, what it needs: where that cuts finer than it lies, or puts together what lies there in
/// several parts. Inputs with one reader lie as that wants them. What one site cuts out for another, and puts together
/// of what comes from several, is not counted: most of it is done while others compute.
double copying_seconds(const Vertex& tensor, const Layout& have, const Layout& need, const Machine& machine) {
  if (!cuts_parts_of(have, need) && !cuts_parts_of(need, have)) return 0;
  const double sites = sites_of(need);
  const double needed = bytes_of(tensor) * copies_of(need) / sites;
  return memory_seconds(2 * needed, static_cast<std::int64_t>(sites), machine);
}

Layout layout_in_one_part(Layout layout) {
  for (LayoutAxis& axis : layout.axes) axis.cut.parts = 1;
  return layout;
}

/// What many sites need goes from one to two others, from these to the next ones, and so on (ia/traffic, deliveries).
double tree_depth(double copies) { return std::max(1.0, std::floor(std::log2(copies))); }

/// Sites that own results of which others have parts.
std::int64_t owners_of(const Vertex& vertex, const VertexPlan& plan) {
  return plan.scatter ? sites_used(plan) : sites_used(plan) / partial_sites(vertex, plan);
}

/// Bytes read and written once all parts of a result are together: a mean is divided, a narrow result rounded.
double finishing_bytes(const Vertex& vertex) {
  const auto& einsum = std::get<EinSum>(vertex.op);
  const bool is_rounded = reduced_type(*einsum.reducer, einsum.body.type()) != vertex.dtype;
  if (einsum.reducer != Reducer::mean && !is_rounded) return 0;
  return elements_of(vertex.bound) * static_cast<double>(partial_bytes(vertex)) + bytes_of(vertex);
}

/// An owner of results adds the others' parts of these to its own, one after the other, and finishes them. A small sum
/// stays in a cache meanwhile.
double adding_seconds(const Vertex& vertex, const VertexPlan& plan, const Machine& machine) {
  if (partial_sites(vertex, plan) == 1) return 0;
  const std::int64_t owners = owners_of(vertex, plan);
  const auto each = static_cast<double>(partial_bytes(vertex));
  const double sum = elements_of(vertex.bound) * each / static_cast<double>(owners);
  const bool stays = sum < static_cast<double>(machine.processor.second_cache);
  const double passes = stays ? 1 : 3;  // a large sum is read and written again
  const double touched = passes * reduced_bytes(vertex, plan) + finishing_bytes(vertex);
  return memory_seconds(touched / static_cast<double>(owners), owners, machine);
}

/// An owner of results receives the others' parts of these.
double receiving_parts_seconds(const Vertex& vertex, const VertexPlan& plan, const Machine& machine) {
  const std::int64_t sites = partial_sites(vertex, plan);
  double messages = static_cast<double>(sites - 1);
  if (is_argument(vertex)) messages += messages + tree_depth(static_cast<double>(sites));  // back from the owners
  const auto receivers = static_cast<double>(owners_of(vertex, plan));
  return receiving_seconds(reduced_bytes(vertex, plan) / receivers, messages, receivers, machine);
}

/// Into how many pieces that lie in one chunk each falls what a site needs.
double pieces_needed(const Layout& have, const Layout& need) {
  double pieces = 1;
  for (std::size_t d = 0; d < need.axes.size(); ++d) {
    const std::int64_t had = have.axes[d].cut.parts;
    const std::int64_t needed = need.axes[d].cut.parts;
    if (had == 1 && needed == 1) continue;
    const std::int64_t all = had + needed - std::gcd(had, needed);  // both cut evenly
    const std::int64_t grid = need.axes[d].grid;
    const std::int64_t each = (all + grid - 1) / grid;
    pieces *= static_cast<double>(each);
  }
  return pieces;
}

/// How many messages a site waits for that receives this part of what it needs: a piece each, and no fewer than copies
/// take to come to it (tree_depth).
double messages_to(const Layout& have, const Layout& need, double part, double fewest) {
  return std::max(fewest, std::round(pieces_needed(have, need) * part));
}

class BoundModel : public CostModel {
 public:
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    return bound_of_vertex(graph.vertices[vertex], graph, plan.parts);
  }
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    return bounds_of_repartitions(tensor.bound, parts_of(have), parts_of(need));
  }
  double of_input(const Vertex&, const Layout&) const override { return 0; }
  bool sends_once() const override { return false; }

 private:
  static std::vector<PartitionVector> parts_of(const std::vector<Layout>& layouts) {
    std::vector<PartitionVector> parts(layouts.size());
    for (std::size_t l = 0; l < layouts.size(); ++l) {
      for (const LayoutAxis& axis : layouts[l].axes) parts[l].push_back(axis.cut.parts);
    }
    return parts;
  }
};

bool lies_alike(const Layout& have, const Layout& need) {
  return have.copies == need.copies &&
         std::equal(have.axes.begin(), have.axes.end(), need.axes.begin(),
                    [](const LayoutAxis& a, const LayoutAxis& b) { return a.cut == b.cut && a.grid == b.grid; });
}

class FloatsModel : public CostModel {
 public:
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    return reduced_floats(graph.vertices[vertex], plan);
  }
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    std::vector<double> costs;
    costs.reserve(have.size() * need.size());
    for (const Layout& from : have) {
      for (const Layout& to : need) {
        costs.push_back(lies_alike(from, to) ? 0 : copies_of(to) * elements_of(tensor.bound));
      }
    }
    return costs;
  }
  double of_input(const Vertex& tensor, const Layout& need) const override {
    return need.copies.empty() ? 0 : copies_of(need) * elements_of(tensor.bound);
  }
  double of_misplacing(const Vertex& tensor, const Layout&, std::int64_t) const override {
    return elements_of(tensor.bound);
  }
};

class BytesModel : public CostModel {
 public:
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    return reduced_bytes(graph.vertices[vertex], plan);
  }
  /// Every site needs its share; those that hold one keep what both have in common, along a dimension the smaller of
  /// the two shares. At best these are as many sites as there are of the fewer kind.
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    const std::vector<double> sites_needed = each(need, sites_of);
    const std::vector<double> copies = each(need, copies_of);
    std::vector<std::vector<double>> grids;  // needed, per dimension
    for (std::size_t d = 0; d < tensor.bound.size(); ++d) {
      grids.push_back(each(need, [&](const Layout& layout) { return static_cast<double>(layout.axes[d].grid); }));
    }
    const double bytes = bytes_of(tensor);
    std::vector<double> costs(have.size() * need.size());
    std::vector<double> shares(need.size());
    auto cost = costs.begin();
    for (const Layout& from : have) {
      std::fill(shares.begin(), shares.end(), 1);
      for (std::size_t d = 0; d < grids.size(); ++d) {
        const auto grid = static_cast<double>(from.axes[d].grid);
        for (std::size_t n = 0; n < shares.size(); ++n) shares[n] *= std::max(grid, grids[d][n]);
      }
      const double sites = sites_of(from);
      for (std::size_t n = 0; n < shares.size(); ++n) {
        *cost++ = bytes * (copies[n] - std::min(sites, sites_needed[n]) / shares[n]);
      }
    }
    return costs;
  }
  double of_input(const Vertex& tensor, const Layout& need) const override {
    return bytes_of(tensor) * (copies_of(need) - 1);
  }
  /// At best everything lies where it is needed.
  double of_misplacing(const Vertex& tensor, const Layout&, std::int64_t) const override { return bytes_of(tensor); }

 private:
  template <class F>
  static std::vector<double> each(const std::vector<Layout>& layouts, F of) {
    std::vector<double> values;
    values.reserve(layouts.size());
    for (const Layout& layout : layouts) values.push_back(of(layout));
    return values;
  }
};

class SecondsModel : public CostModel {
 public:
  explicit SecondsModel(Machine machine) : machine_(std::move(machine)) {}
  double of_vertex(const EinGraph& graph, std::size_t vertex, const VertexPlan& plan) const override {
    const Vertex& computed = graph.vertices[vertex];
    return vertex_seconds(graph, computed, plan, machine_) + adding_seconds(computed, plan, machine_) +
           receiving_parts_seconds(computed, plan, machine_);
  }
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    std::vector<double> costs = bytes_.of_moves(tensor, have, need);
    struct Needed {
      double bytes;
      double sites;
      double fewest_messages;
    };
    std::vector<Needed> needed;
    needed.reserve(need.size());
    for (const Layout& to : need) {
      const double copies = copies_of(to);
      needed.push_back({bytes_of(tensor) * copies, sites_of(to), tree_depth(copies)});
    }
    auto cost = costs.begin();
    for (const Layout& from : have) {
      for (std::size_t n = 0; n < need.size(); ++n, ++cost) {
        if (*cost > 0) {
          const auto& [bytes, sites, fewest_messages] = needed[n];
          const double messages = messages_to(from, need[n], *cost / bytes, fewest_messages);
          *cost = receiving_seconds(*cost / sites, messages, sites, machine_);
        }
        *cost += copying_seconds(tensor, from, need[n], machine_);
      }
    }
    return costs;
  }
  /// Each of the sites that want copies stores a piece.
  double of_input(const Vertex& tensor, const Layout& need) const override {
    const double sites = sites_of(need);
    return receiving_seconds(bytes_.of_input(tensor, need) / sites, copies_of(need) - 1, sites, machine_);
  }
  /// At worst every site sends a piece of each part, and all of it is cut once more.
  double of_misplacing(const Vertex& tensor, const Layout& layout, std::int64_t sites) const override {
    auto messages = static_cast<double>(sites);
    for (const LayoutAxis& axis : layout.axes)
      messages *= std::ceil(static_cast<double>(axis.cut.parts) / static_cast<double>(axis.grid));
    const double receivers = sites_of(layout);
    return receiving_seconds(bytes_of(tensor) / receivers, messages, receivers, machine_) +
           copying_seconds(tensor, layout_in_one_part(layout), layout, machine_);
  }

 private:
  Machine machine_;
  BytesModel bytes_;
};

/// Sums up a plan, vertex by vertex.
class Accounting {
 public:
  Accounting(const EinGraph& graph, const Plan& plan, const Machine& machine, Transfers& transfers)
      : graph_(graph), plan_(plan), exact_(graph, machine, transfers), routes_(graph, plan, transfers) {
    tally_.received.assign(static_cast<std::size_t>(plan.sites), 0);
    tally_.crossing.assign(machine.links.size(), 0);
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
    if (plan_.sites == 1) costs_.floats = 0;  // there is nowhere to move to
    costs_.received = std::move(tally_.received);
    costs_.crossing = std::move(tally_.crossing);
    return std::move(costs_);
  }

 private:
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
    const MoveCost moved = exact_.move(graph_.vertices[producer], routes_.source(producer, number), route, &tally_);
    cost.floats += moved.floats;
    cost.moving += moved.moving;
    cost.seconds += moved.copying + moved.moving;
    return moved.bytes;
  }

  const EinGraph& graph_;
  const Plan& plan_;
  PlanCosts costs_;
  Tally tally_;
  ExactCosts exact_;
  Routes routes_;
  std::set<std::pair<std::size_t, std::size_t>> sent_;  // tensors and their routes
};

}  // namespace

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

double ExactCosts::alone(std::size_t v, const VertexPlan& plan, CostKind kind) {
  const Vertex& vertex = graph_.vertices[v];
  if (is_input(vertex)) return 0;
  switch (kind) {
    case CostKind::bound: return bound_of_vertex(vertex, graph_, plan.parts);
    case CostKind::floats: return reduced_floats(vertex, plan);
    case CostKind::bytes: return reduced_bytes(vertex, plan);
    case CostKind::seconds: break;
  }
  return computing(vertex, plan) + receiving_parts(vertex, plan, nullptr);
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
  cost.floats = copies_of(need) * elements_of(tensor.bound);
  // What an earlier vertex took in pieces is put together as it mostly would have been when it came.
  if (!route.source || cuts_parts_of(have, need)) cost.copying = copying_seconds(tensor, have, need, machine_);
  const auto size = static_cast<std::int64_t>(size_of(tensor.dtype));
  const ReceivedSums& received = transfers_.sums(have, need, tensor.bound);
  if (received.all == 0) return cost;
  cost.bytes = checked_multiply(received.all, size);
  if (tally != nullptr) {
    const std::vector<std::int64_t> elements = elements_received(have, need, tensor.bound, transfers_.sites());
    for (std::size_t site = 0; site < elements.size(); ++site) tally->add(site, checked_multiply(elements[site], size));
  }
  const auto most = static_cast<double>(checked_multiply(received.most, size));
  const double part = most * sites_of(need) / (bytes_of(tensor) * copies_of(need));
  cost.moving = std::max(receiving_seconds(most, messages_to(have, need, part, tree_depth(copies_of(need))),
                                           static_cast<double>(received.receivers), machine_),
                         crossing(have, need, tensor, tally));
  return cost;
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
    longest = std::max(longest, crossing_link(l, elements, static_cast<double>(partial_bytes(vertex)), tally));
  }
  return longest;
}

/// Bytes received: the owners of results receive what the others of their groups have of these; an extreme goes back to
/// them.
std::int64_t ExactCosts::reduce(const Vertex& vertex, const VertexPlan& plan, Tally& tally) const {
  const std::int64_t others = partial_sites(vertex, plan) - 1;
  if (others == 0) return 0;
  std::int64_t all = 0;
  const Layout owners = result_layout(vertex, plan);
  const Layout group = partial_layout(vertex, plan);
  const std::int64_t back = bytes_back(vertex);
  const std::int64_t each = partial_bytes(vertex) - back;
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

std::string_view name_of(CostKind kind) {
  constexpr std::array<std::string_view, 4> names{"bound", "floats", "bytes", "seconds"};
  return names.at(static_cast<std::size_t>(kind));
}

double one_site_seconds(const EinGraph& graph, std::size_t vertex, const Machine& machine) {
  const Vertex& computed = graph.vertices[vertex];
  const VertexPlan whole = one_part_per_site(PartitionVector(label_extents(computed).size(), 1));
  return vertex_seconds(graph, computed, whole, machine);
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
  return std::accumulate(operand_bytes.begin(), operand_bytes.end(), checked_add(reduced_bytes, feedback_bytes),
                         checked_add);
}

std::int64_t PlanCosts::most_received() const { return *std::max_element(received.begin(), received.end()); }

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
