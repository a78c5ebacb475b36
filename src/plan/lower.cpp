#include "plan/lower.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "ia/from_tra.h"
#include "plan/layout.h"
#include "plan/routes.h"
#include "plan/staying_inputs.h"

namespace einrel {
namespace {

/// Adds the operations of one node after the other to a store.
class Lowering {
 public:
  Lowering(const EinGraph& graph, const EinGraphProgram& made, const Plan& plan, IaStore& store)
      : graph_(graph),
        made_(made),
        plan_(plan),
        store_(store),
        transfers_(plan.sites),
        routes_(graph, plan, transfers_) {}

  std::set<IaId> once() { return std::move(once_); }
  /// Per node of the store, the first vertex that has it.
  const std::vector<std::optional<std::size_t>>& vertices() const { return vertices_; }

  IaPlan run() {
    const std::vector<TraNode>& nodes = made_.program.nodes;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      ids_.push_back(made_.roles[n] ? of_vertex(n) : shared(n));
      vertices_.resize(store_.size(), made_.roles[n] ? std::optional(made_.roles[n]->vertex) : std::nullopt);
      const std::string& fault = store_[ids_.back()].fault;
      if (!fault.empty()) throw UserError(fmt::format("{}: {}", describe(made_.program, TraId{n}), fault));
    }
    IaPlan outputs;
    for (const TraOutput& output : made_.program.outputs) outputs.push_back({output.name, ids_[output.id.index]});
    for (std::size_t s = 0; s < graph_.steps.states.size(); ++s) carry(s, outputs);
    return outputs;
  }

 private:
  /// Lets the next value of a state go out where that lies, for the next step.
  void carry(std::size_t s, IaPlan& outputs) {
    const State& state = graph_.steps.states[s];
    if (!state.next) return;
    outputs[*state.next].is_kept = true;
    const std::optional<std::size_t> number = routes_.route_of_state(s);
    if (!number) return;
    const std::size_t tensor = graph_.outputs[*state.next].index;
    IaId& output = outputs[*state.next].id;
    const Route& route = routes_.route(tensor, *number);
    const auto [brought, is_new] = brought_.try_emplace({tensor, *number}, output);
    if (is_new) {
      const IaId there = route.source ? brought_.at({tensor, *route.source}) : output;
      brought->second = moved(there, grid_of(route.need), recutting(routes_.source(tensor, *number), route.need));
      vertices_.resize(store_.size(), state.now.index);
    }
    if (stays(graph_.vertices[tensor])) once_.insert(brought->second);
    output = brought->second;
  }

  const TraNode& node(std::size_t n) const { return made_.program.nodes[n]; }

  /// What no vertex owns: a new cut is made where it is used.
  IaId shared(std::size_t n) {
    if (const auto* const positions = std::get_if<LabelPositions>(&node(n).op)) return store_.add(*positions);
    if (std::holds_alternative<Repartition>(node(n).op)) return ids_[node(n).inputs.front().index];
    throw Bug("a plan with a diagonal that is cut");
  }

  IaId of_vertex(std::size_t n) {
    const NodeRole& role = *made_.roles[n];
    const TraNode& at = node(n);
    if (const auto* const input = std::get_if<StoredRelation>(&at.op)) {
      return store_.add(PlacedRelation{*input, Partitioned{all_positions(role.labels.size()),
                                                           grid(plan_of(role), role.labels, plan_of(role).copies)}});
    }
    if (const auto* const join = std::get_if<Join>(&at.op)) {
      std::vector<IaId> inputs;
      for (std::size_t i = 0; i < at.inputs.size(); ++i) inputs.push_back(brought(n, i));
      return store_.add(
          LocalJoin{join->keys_left, join->keys_right, join->kernel, identity_map(role.labels.size()), join->numbers},
          std::move(inputs));
    }
    if (const auto* const transform = std::get_if<Transform>(&at.op)) {
      const IaId in = is_own(n) ? ids_[at.inputs.front().index] : brought(n, 0);
      return store_.add(LocalMap{identity_map(role.labels.size()), transform->kernel, transform->numbers}, {in});
    }
    if (const auto* const aggregate = std::get_if<Aggregate>(&at.op)) return aggregated(n, *aggregate);
    if (const auto* const rekey = std::get_if<ReKey>(&at.op)) {
      const IaId in = ids_[at.inputs.front().index];
      return store_.add(LocalMap{rekey->map, identity_kernel(store_[in].type.relation.dtype)}, {in});
    }
    throw Bug("an operation that the lowering of a vertex does not make");
  }

  /// Whether the only input was computed for the same vertex, so that it lies where it should.
  bool is_own(std::size_t n) const {
    const auto& role = made_.roles[node(n).inputs.front().index];
    return role && role->vertex == made_.roles[n]->vertex;
  }

  const VertexPlan& plan_of(const NodeRole& role) const { return plan_.vertices[role.vertex]; }

  /// Where tuples whose keys count these labels lie.
  static SiteGrid grid(const VertexPlan& plan, const KeyLabels& labels, std::vector<SiteCopies> copies = {}) {
    SiteGrid grid;
    for (const std::optional<std::size_t> label : labels) {
      const bool is_cut = label && *label < plan.parts.size() && plan.parts[*label] > 1;
      grid.parts.push_back(is_cut ? plan.parts[*label] : 1);
      grid.grid.push_back(is_cut ? plan.grid[*label] : 1);
      grid.strides.push_back(is_cut ? plan.strides[*label] : 0);
    }
    return site_grid(grid.parts, grid.grid, grid.strides, std::move(copies));
  }

  /// An input of a node where its vertex needs it: with copies along the labels that its keys do not count, and for all
  /// that compute alike.
  IaId brought(std::size_t n, std::size_t input) {
    const NodeRole& role = *made_.roles[n];
    const KeyLabels& labels = role.inputs[input];
    const VertexPlan& plan = plan_of(role);
    std::vector<SiteCopies> copies = plan.copies;
    for (std::size_t l = 0; l < plan.grid.size(); ++l) {
      const bool is_counted = std::find(labels.begin(), labels.end(), std::optional(l)) != labels.end();
      if (plan.grid[l] > 1 && !is_counted) copies.push_back({plan.grid[l], plan.strides[l]});
    }
    const SiteGrid where = grid(plan, labels, std::move(copies));
    const std::size_t source = node(n).inputs[input].index;
    const auto* const recut = std::get_if<Repartition>(&node(source).op);
    const IaId at = ids_[source];
    const std::size_t computed = recut == nullptr ? source : node(source).inputs.front().index;
    const std::optional<std::size_t> number = route_of(role.vertex, computed, recut, where);
    if (!number) return moved(at, where, recut == nullptr ? std::nullopt : std::optional(*recut));
    const std::size_t tensor = made_.roles[computed]->vertex;
    const auto [brought, is_new] = brought_.try_emplace({tensor, *number}, at);
    if (!is_new) return brought->second;
    const Route& route = routes_.route(tensor, *number);
    if (!route.source) {
      brought->second = moved(at, where, recut == nullptr ? std::nullopt : std::optional(*recut));
    } else {
      const IaId there = brought_.at({tensor, *route.source});
      brought->second = moved(there, where, recutting(routes_.source(tensor, *number), route.need));
    }
    if (stays(graph_.vertices[tensor])) once_.insert(brought->second);
    return brought->second;
  }

  IaId moved(IaId at, const SiteGrid& where, const std::optional<Repartition>& recut) {
    if (recut) return store_.add(Repart{recut->from, recut->to, where}, {at});
    return lies(at, where) ? at : store_.add(Shuf{all_positions(where.parts.size()), where}, {at});
  }

  /// The route by which a vertex gets what a node computes, in other cuts if it is recut; none where it lies there, or
  /// is no tensor.
  std::optional<std::size_t> route_of(std::size_t vertex, std::size_t node, const Repartition* recut,
                                      const SiteGrid& where) const {
    if (!made_.roles[node]) return std::nullopt;
    const std::size_t tensor = made_.roles[node]->vertex;
    const std::vector<VertexId>& operands = graph_.vertices[vertex].inputs;
    for (std::size_t operand = 0; operand < operands.size(); ++operand) {
      const std::optional<std::size_t> number = routes_.route_of(vertex, operand);
      if (operands[operand].index != tensor || !number) continue;
      const Layout& need = routes_.route(tensor, *number).need;
      if (grid_of(need) == where && has_windows_of(need, recut)) return number;
    }
    return std::nullopt;
  }

  /// Grids do not tell windows apart.
  static bool has_windows_of(const Layout& need, const Repartition* recut) {
    for (std::size_t d = 0; d < need.axes.size(); ++d) {
      if (need.axes[d].cut.window != (recut == nullptr ? std::nullopt : recut->to[d].window)) return false;
    }
    return true;
  }

  /// What cuts one into the chunks of the other, if that takes anything.
  static std::optional<Repartition> recutting(const Layout& have, const Layout& need) {
    std::vector<DimensionCut> from = cuts_of(have);
    std::vector<DimensionCut> to = cuts_of(need);
    if (from == to) return std::nullopt;
    return Repartition{std::move(from), std::move(to)};
  }
  static SiteGrid grid_of(const Layout& layout) {
    SiteGrid grid;
    for (const LayoutAxis& axis : layout.axes) {
      grid.parts.push_back(axis.cut.parts);
      grid.grid.push_back(axis.grid);
      grid.strides.push_back(axis.stride);
    }
    return site_grid(grid.parts, grid.grid, grid.strides, layout.copies);
  }

  /// Whether all positions of a relation are placed so: placements may leave out positions that are not spread.
  bool lies(IaId id, const SiteGrid& where) const {
    const auto* const placed = std::get_if<Partitioned>(&store_[id].type.placement);
    if (placed == nullptr || placed->grid.copies != where.copies) return false;
    std::vector<std::optional<std::size_t>> entry(where.grid.size());
    for (std::size_t i = 0; i < placed->positions.size(); ++i) entry[placed->positions[i]] = i;
    for (std::size_t p = 0; p < where.grid.size(); ++p) {
      const std::int64_t sites = entry[p] ? placed->grid.grid[*entry[p]] : 1;
      if (sites != where.grid[p]) return false;
      if (sites == 1) continue;
      if (placed->grid.parts[*entry[p]] != where.parts[p] || placed->grid.strides[*entry[p]] != where.strides[p]) {
        return false;
      }
    }
    return true;
  }

  IaId aggregated(std::size_t n, const Aggregate& op) {
    const NodeRole& role = *made_.roles[n];
    const IaId here = store_.add(LocalAggregate{op.group_by, op.kernel, std::nullopt}, {ids_[node(n).inputs[0].index]});
    if (!store_[here].fault.empty() || !store_[here].type.partial) return here;
    const KeyPositions all = all_positions(role.labels.size());
    const VertexPlan owners = with_scattered_result(graph_.vertices[role.vertex], plan_of(role));
    const IaId moved = store_.add(Shuf{all, grid(owners, role.labels)}, {here});
    const IaId reduced = store_.add(LocalAggregate{all, op.kernel, std::nullopt}, {moved});
    if (!plan_of(role).all_reduced) return reduced;
    const Layout everywhere = result_layout(graph_.vertices[role.vertex], plan_of(role));
    return store_.add(Shuf{all, grid(owners, role.labels, everywhere.copies)}, {reduced});
  }

  const EinGraph& graph_;
  const EinGraphProgram& made_;
  const Plan& plan_;
  IaStore& store_;
  Transfers transfers_;
  Routes routes_;
  std::map<std::pair<std::size_t, std::size_t>, IaId> brought_;  // tensors by their routes
  std::set<IaId> once_;
  std::vector<IaId> ids_;  // per node
  std::vector<std::optional<std::size_t>> vertices_;
};

}  // namespace

LoweredPlan lower(const EinGraph& graph, const Plan& plan) {
  check_sites(plan.sites);
  EinGraphProgram made = from_einsum_with_roles(graph, cuts_of(plan));
  IaProgram ia{IaStore(plan.sites), {}, made.program.scalars};
  Lowering lowering(graph, made, plan, ia.store);
  ia.plan = lowering.run();
  return {std::move(made.program), std::move(ia), lowering.vertices(), lowering.once()};
}

}  // namespace einrel
