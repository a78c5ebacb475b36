#include "plan/lower.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "ia/from_tra.h"

namespace einrel {
namespace {

/// Adds the operations of one node after the other to a store.
class Lowering {
 public:
  Lowering(const EinGraphProgram& made, const Plan& plan, IaStore& store) : made_(made), plan_(plan), store_(store) {}

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
    return outputs;
  }

 private:
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
      return store_.add(
          PlacedRelation{*input, Partitioned{all_positions(role.labels.size()), grid(role, role.labels)}});
    }
    if (const auto* const join = std::get_if<Join>(&at.op)) {
      const IaId left = brought(n, 0);
      const IaId right = brought(n, 1);
      return store_.add(LocalJoin{join->keys_left, join->keys_right, join->kernel, identity_map(role.labels.size())},
                        {left, right});
    }
    if (const auto* const transform = std::get_if<Transform>(&at.op)) {
      const IaId in = is_own(n) ? ids_[at.inputs.front().index] : brought(n, 0);
      return store_.add(LocalMap{identity_map(role.labels.size()), transform->kernel}, {in});
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

  /// Where tuples whose keys count these labels lie, one copy of each.
  SiteGrid grid(const NodeRole& role, const KeyLabels& labels, std::vector<SiteCopies> copies = {}) const {
    const VertexPlan& plan = plan_.vertices[role.vertex];
    SiteGrid grid;
    for (const std::optional<std::size_t> label : labels) {
      const bool is_cut = label && *label < plan.parts.size() && plan.parts[*label] > 1;
      grid.parts.push_back(is_cut ? plan.parts[*label] : 1);
      grid.grid.push_back(is_cut ? plan.grid[*label] : 1);
      grid.strides.push_back(is_cut ? plan.strides[*label] : 0);
    }
    return site_grid(grid.parts, grid.grid, grid.strides, std::move(copies));
  }

  /// An input of a node where its vertex needs it: with copies along the labels that its keys do not count.
  IaId brought(std::size_t n, std::size_t input) {
    const NodeRole& role = *made_.roles[n];
    const KeyLabels& labels = role.inputs[input];
    const VertexPlan& plan = plan_.vertices[role.vertex];
    std::vector<SiteCopies> copies;
    for (std::size_t l = 0; l < plan.grid.size(); ++l) {
      const bool is_counted = std::find(labels.begin(), labels.end(), std::optional(l)) != labels.end();
      if (plan.grid[l] > 1 && !is_counted) copies.push_back({plan.grid[l], plan.strides[l]});
    }
    const SiteGrid where = grid(role, labels, std::move(copies));
    const std::size_t source = node(n).inputs[input].index;
    const IaId at = ids_[source];
    if (const auto* const recut = std::get_if<Repartition>(&node(source).op)) {
      return store_.add(Repart{recut->from, recut->to, where}, {at});
    }
    return lies(at, where) ? at : store_.add(Shuf{all_positions(labels.size()), where}, {at});
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
    const IaId moved = store_.add(Shuf{all, grid(role, role.labels)}, {here});
    return store_.add(LocalAggregate{all, op.kernel, std::nullopt}, {moved});
  }

  const EinGraphProgram& made_;
  const Plan& plan_;
  IaStore& store_;
  std::vector<IaId> ids_;  // per node
  std::vector<std::optional<std::size_t>> vertices_;
};

}  // namespace

LoweredPlan lower(const EinGraph& graph, const Plan& plan) {
  check_sites(plan.sites);
  EinGraphProgram made = from_einsum_with_roles(graph, cuts_of(plan));
  IaProgram ia{IaStore(plan.sites), {}, made.program.scalars};
  Lowering lowering(made, plan, ia.store);
  ia.plan = lowering.run();
  return {std::move(made.program), std::move(ia), lowering.vertices()};
}

}  // namespace einrel
