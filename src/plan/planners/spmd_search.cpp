#include "plan/planners/spmd_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/graph/vertex_key.h"
#include "plan/collectives.h"
#include "plan/cost/exact_costs.h"
#include "plan/cost/memory.h"
#include "plan/planners/eindecomp.h"
#include "plan/planners/within_memory.h"
#include "plan/search/elimination.h"
#include "plan/spmd.h"

namespace einrel {
namespace {

/// A way to compute a vertex, and what that costs without what is moved.
struct SpmdWay {
  VertexPlan plan;
  double alone = 0;
};

/// A number for each different layout.
struct NumberedLayouts {
  std::vector<Layout> layouts;
  std::vector<std::size_t> of_way;
};

template <class LayoutOf>
NumberedLayouts numbered_layouts(const std::vector<SpmdWay>& ways, LayoutOf layout_of) {
  NumberedLayouts numbered;
  std::map<Layout, std::size_t> known;
  for (const SpmdWay& way : ways) {
    const auto [at, is_new] = known.try_emplace(layout_of(way.plan), numbered.layouts.size());
    if (is_new) numbered.layouts.push_back(at->first);
    numbered.of_way.push_back(at->second);
  }
  return numbered;
}

class SpmdSearch {
 public:
  SpmdSearch(const EinGraph& graph, const PlanRequest& request)
      : graph_(graph),
        request_(request),
        transfers_(request.sites, request.machine),
        exact_(graph, request.machine, transfers_),
        mesh_(mesh_of(request.sites)) {
    collect_ways();
  }

  Plan run() {
    std::vector<std::size_t> domains;
    for (const std::vector<SpmdWay>& ways : ways_) domains.push_back(ways.size());
    const std::vector<CostTable> tables = cost_tables();
    std::vector<std::vector<std::size_t>> scopes;
    for (const CostTable& table : tables) scopes.push_back(table.variables);
    constexpr std::size_t most_entries = std::size_t{1} << 20U;
    const Assignment found = least_assignment(domains, tables, min_fill_order(domains.size(), scopes), most_entries);
    Plan plan{"eindecomp", request_.sites, {}};
    for (std::size_t v = 0; v < ways_.size(); ++v) plan.vertices.push_back(ways_[v][found.values[v]].plan);
    improve(plan);
    return plan;
  }

  double cost(const Plan& plan) { return costs_of(graph_, plan, request_.machine, transfers_).of(request_.cost); }

 private:
  /// All ways, the cheapest first; where bytes count and not time, those that compute nothing twice, but for what is
  /// next to nothing to compute.
  void collect_ways() {
    const std::vector<bool> small = small_vertices(graph_, request_.sites, request_.machine);
    const std::size_t most = most_ways();
    std::unordered_map<std::string, std::size_t> known;
    for (std::size_t v = 0; v < graph_.vertices.size(); ++v) {
      ByteKey key;
      put_computation_of_inputs(key, graph_.vertices[v], graph_);
      key.put(static_cast<std::uint8_t>(small[v]));
      key.put(static_cast<std::uint8_t>(is_state(graph_, v)));
      const auto [first, is_new] = known.try_emplace(key.take(), v);
      kinds_.push_back(first->second);
      std::vector<SpmdWay>& ways = ways_.emplace_back();
      if (!is_new) {
        ways = ways_[first->second];
        continue;
      }
      std::int64_t fewest_copies = std::numeric_limits<std::int64_t>::max();
      for (VertexPlan& plan : spmd_candidates(graph_, v, request_.sites)) {
        fewest_copies = std::min(fewest_copies, copies_of(plan));
        const double alone = exact_.alone(v, plan, request_.cost);
        ways.push_back({std::move(plan), alone});
      }
      if (request_.cost != CostKind::seconds && !small[v] && !is_input(graph_.vertices[v]))
        std::erase_if(ways, [&](const SpmdWay& way) { return copies_of(way.plan) > fewest_copies; });
      std::stable_sort(ways.begin(), ways.end(), [](const SpmdWay& a, const SpmdWay& b) { return a.alone < b.alone; });
      if (ways.size() > most) ways.resize(most);
    }
  }

  /// Of a vertex: tables of all neighbours together have some million entries.
  std::size_t most_ways() const {
    constexpr double all = 4e6;
    constexpr double fewest = 24;
    constexpr double most = 128;  // three variables beside each other then make a table of a million or two
    std::size_t edges = 1;
    for (const Vertex& vertex : graph_.vertices) edges += vertex.inputs.size();
    return static_cast<std::size_t>(std::clamp(std::sqrt(all / static_cast<double>(edges)), fewest, most));
  }

  std::vector<CostTable> cost_tables() {
    std::vector<CostTable> tables;
    std::map<std::tuple<std::size_t, std::size_t, std::size_t>, std::size_t> known;  // kinds, operand: the table
    for (std::size_t v = 0; v < ways_.size(); ++v) {
      CostTable alone{{v}, {}};
      for (const SpmdWay& way : ways_[v]) alone.costs.push_back(way.alone);
      tables.push_back(std::move(alone));
      for (const std::size_t operand : operands_read(graph_.vertices[v])) {
        const std::size_t tensor = graph_.vertices[v].inputs[operand].index;
        const auto [same, is_new] = known.try_emplace({kinds_[tensor], kinds_[v], operand}, tables.size());
        if (!is_new) {
          tables.push_back({{tensor, v}, tables[same->second].costs});
          continue;
        }
        tables.push_back(moves(tensor, v, [&](const VertexPlan& plan) {
          return needed_layout(graph_.vertices[v], operand, graph_.vertices[tensor].bound, plan);
        }));
      }
    }
    for (const State& state : graph_.steps.states) {
      if (!state.next || graph_.outputs[*state.next] == state.now) continue;
      tables.push_back(moves(graph_.outputs[*state.next].index, state.now.index,
                             [&](const VertexPlan& plan) { return result_layout(graph_[state.now], plan); }));
    }
    return tables;
  }

  /// Whether collectives bring one layout to another.
  bool can_move(const Sharding& from, const Sharding& to) {
    const auto [at, is_new] = can_move_.try_emplace({from, to}, true);
    if (is_new) at->second = collectives_fault(from, to, mesh_).empty();
    return at->second;
  }

  /// What it costs to bring a tensor to a reader, for all ways of both; infinity where no collectives do.
  template <class NeedOf>
  CostTable moves(std::size_t tensor, std::size_t reader, NeedOf need_of) {
    const Vertex& moved = graph_.vertices[tensor];
    const NumberedLayouts have =
        numbered_layouts(ways_[tensor], [&](const VertexPlan& plan) { return result_layout(moved, plan); });
    const NumberedLayouts need = numbered_layouts(ways_[reader], need_of);
    std::vector<Sharding> needed;
    for (const Layout& to : need.layouts) needed.push_back(sharding_of(to, mesh_));
    std::vector<std::vector<double>> costs;
    for (const Layout& from : have.layouts) {
      const Sharding held = sharding_of(from, mesh_);
      costs.emplace_back();
      for (std::size_t i = 0; i < needed.size(); ++i) {
        const Layout& to = need.layouts[i];
        costs.back().push_back(!can_move(held, needed[i]) ? std::numeric_limits<double>::infinity()
                               : from == to               ? 0
                                            : exact_.move(moved, from, {to, std::nullopt}, nullptr).of(request_.cost));
      }
    }
    CostTable table{{tensor, reader}, {}};
    table.costs.reserve(have.of_way.size() * need.of_way.size());
    for (const std::size_t from : have.of_way) {
      for (const std::size_t to : need.of_way) table.costs.push_back(costs[from][to]);
    }
    return table;
  }

  /// Changes one vertex after the other to what makes the whole cheapest, as long as that gains anything and few plans
  /// have been looked at. What one program says is better than what none does, whatever it costs: a tensor may be taken
  /// from where it was brought for another reader, which the tables do not know.
  void improve(Plan& plan) {
    constexpr double looks = 2e6;
    constexpr double rounding = 1e-12;
    double tries = looks / static_cast<double>(graph_.vertices.size()) / static_cast<double>(request_.sites);
    constexpr double unsaid = std::numeric_limits<double>::infinity();
    double least = spmd_fault(graph_, plan).empty() ? cost(plan) : unsaid;
    for (bool gained = true; gained;) {
      gained = false;
      for (std::size_t v = 0; v < ways_.size(); ++v) {
        VertexPlan best = plan.vertices[v];
        for (const SpmdWay& way : ways_[v]) {
          if (--tries < 0) break;
          plan.vertices[v] = way.plan;
          const double other = cost(plan);
          if (other >= least * (1 - rounding) || !spmd_fault(graph_, plan).empty()) continue;
          least = other;
          best = way.plan;
          gained = true;
        }
        plan.vertices[v] = std::move(best);
      }
    }
  }

  const EinGraph& graph_;
  const PlanRequest& request_;
  Transfers transfers_;
  ExactCosts exact_;
  std::vector<MeshAxis> mesh_;
  std::map<std::pair<Sharding, Sharding>, bool> can_move_;
  std::vector<std::size_t> kinds_;  // per vertex: the first one that has the same ways, at the same costs
  std::vector<std::vector<SpmdWay>> ways_;
};

}  // namespace

Planned spmd_plan(const EinGraph& graph, const PlanRequest& request, const std::vector<Plan>& others) {
  if (request.cost == CostKind::bound) return "plans of a single program for all sites make no bound least";
  SpmdSearch search(graph, request);
  std::vector<Plan> plans{search.run()};
  const std::string fault = spmd_fault(graph, plans.front());
  if (!fault.empty()) plans.clear();
  for (const Plan& other : others) {
    const bool is_comparable = request.cost == CostKind::seconds || uses_all_sites(graph, other, request.machine);
    if (is_comparable && spmd_fault(graph, other).empty()) plans.push_back(other);
  }
  if (plans.empty()) return fault;
  std::optional<std::pair<double, std::size_t>> best;
  std::optional<SitePeak> smallest;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    if (request.memory) {
      SitePeak peak = peak_of(graph, plans[p]);
      if (!smallest || peak.bytes < smallest->bytes) smallest = peak;
      if (peak.bytes > *request.memory) continue;
    }
    const double cost = search.cost(plans[p]);
    if (!best || cost < best->first) best = {cost, p};
  }
  if (!best) return over_limit(graph, *smallest, *request.memory) + "; give more, or more sites";
  Plan plan = std::move(plans[best->second]);
  plan.planner = "eindecomp";
  return plan;
}

}  // namespace einrel
