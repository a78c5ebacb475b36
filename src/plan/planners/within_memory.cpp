#include "plan/planners/within_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/placed_inputs.h"
#include "plan/planners/eindecomp.h"
#include "plan/refine/numbering.h"
#include "plan/refine/reduce_as_received.h"

namespace einrel {
namespace {

/// A cost, and `per_byte` for every byte that a site holds: of results, of inputs as their readers need them, of what
/// is brought, of partial results. Whatever lives longer costs no more.
class HoldingModel : public CostModel {
 public:
  HoldingModel(CostKind kind, const Machine& machine, double per_byte)
      : cost_(cost_model(kind, machine)), per_byte_(per_byte) {}

  double of_vertex(const EinGraph& graph, std::size_t v, const VertexPlan& plan) const override {
    const Vertex& vertex = graph.vertices[v];
    const Layout result = result_layout(vertex, plan);
    double held = share(vertex, result);
    const std::int64_t sites = partial_sites(vertex, plan);
    if (sites > 1) {
      const double partial = share(vertex, partial_layout(vertex, plan)) + static_cast<double>(sites - 1) * held;
      held += partial / static_cast<double>(size_of(vertex.dtype)) * static_cast<double>(partial_bytes(vertex));
    }
    return cost_->of_vertex(graph, v, plan) + per_byte_ * held;
  }
  std::vector<double> of_moves(const Vertex& tensor, const std::vector<Layout>& have,
                               const std::vector<Layout>& need) const override {
    std::vector<double> costs = cost_->of_moves(tensor, have, need);
    const bool is_held_anyway = is_input(tensor);
    for (std::size_t n = 0; n < need.size(); ++n) {
      const double held = per_byte_ * share(tensor, need[n]);
      for (std::size_t i = n; i < costs.size(); i += need.size()) {
        if (costs[i] != 0 || is_held_anyway) costs[i] += held;
      }
    }
    return costs;
  }
  double of_input(const Vertex& tensor, const Layout& need) const override {
    return cost_->of_input(tensor, need) + per_byte_ * share(tensor, need);
  }
  bool sends_once() const override { return cost_->sends_once(); }

 private:
  static double share(const Vertex& tensor, const Layout& layout) {
    double bytes = static_cast<double>(element_count(tensor.bound)) * static_cast<double>(size_of(tensor.dtype));
    for (const LayoutAxis& axis : layout.axes) bytes /= static_cast<double>(axis.grid);
    return bytes;
  }

  std::unique_ptr<CostModel> cost_;
  double per_byte_;
};

/// Without what does not fit even alone; where nothing does, all.
Candidates fitting(const EinGraph& graph, Candidates all, std::int64_t limit) {
  return [&graph, all = std::move(all), limit](const Vertex& vertex, std::size_t v) {
    std::vector<VertexPlan> candidates = all(vertex, v);
    if (is_input(vertex)) return candidates;
    std::vector<VertexPlan> fit;
    for (const VertexPlan& plan : candidates) {
      if (least_memory_of(graph, vertex, plan) <= limit) fit.push_back(plan);
    }
    return fit.empty() ? candidates : fit;
  };
}

/// The cheapest plan that fits, and the one that comes nearest to that.
class Best {
 public:
  Best(const EinGraph& graph, const PlanRequest& request) : graph_(graph), request_(request) {}

  void consider(const Plan& plan) {
    SitePeak peak = peak_of(graph_, plan);
    const bool fits = peak.bytes <= *request_.memory;
    if (!smallest_ || peak.bytes < smallest_->bytes) smallest_ = std::move(peak);
    if (!fits) return;
    const double cost = costs_of(graph_, plan, request_.machine).of(request_.cost);
    if (plan_ && cost >= cost_) return;
    plan_ = plan;
    cost_ = cost;
  }

  Planned found() const {
    if (plan_) return *plan_;
    return fmt::format("none that was found fits; of the nearest one, {}; give more, or more sites",
                       over_limit(graph_, *smallest_, *request_.memory));
  }

 private:
  const EinGraph& graph_;
  const PlanRequest& request_;
  std::optional<Plan> plan_;
  double cost_ = 0;
  std::optional<SitePeak> smallest_;
};

Plan plan_of(const EinGraph& graph, const SearchSpace& space, const SearchSpace::Choice& choice, std::int64_t sites) {
  Plan plan{"eindecomp", sites, {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) plan.vertices.push_back(space.candidates(v)[choice[v]]);
  number_sites(graph, plan);
  return plan;
}

/// The beam's, see eindecomp: this is done several times.
std::size_t few_steps_per_vertex(const EinGraph& graph) {
  constexpr std::size_t all = 300'000;
  constexpr std::size_t most = 1000;
  return std::min(most, all / std::max<std::size_t>(graph.vertices.size(), 1));
}

/// A plan whose large inputs lie evenly on all sites, wherever they are needed.
Plan with_spread_inputs(const EinGraph& graph, Plan plan, std::int64_t limit) {
  constexpr std::int64_t is_small = 1000;  // of so many of which a site can hold all
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    if (!lies_freely(vertex) || sites_used(plan.vertices[v]) == plan.sites) continue;
    PartitionVector most;
    for (const Extent extent : vertex.bound) most.push_back(std::max<std::int64_t>(extent.value(), 1));
    const VertexPlan spread = one_part_per_site(site_grids(most, plan.sites).back());
    const auto size = static_cast<std::int64_t>(size_of(vertex.dtype));
    const std::int64_t held = elements_at(result_layout(vertex, plan.vertices[v]), vertex.bound, 0) * size;
    if (held >= limit / is_small && sites_used(spread) > sites_used(plan.vertices[v])) plan.vertices[v] = spread;
  }
  return plan;
}

/// Changes a plan that does not fit where most is held: one vertex at a time, to what leaves the smallest peak, until
/// it fits, or no such change makes it smaller, or many plans have been looked at.
class Descent {
 public:
  Descent(const EinGraph& graph, const SearchSpace& space, std::int64_t sites)
      : graph_(graph), space_(space), sites_(sites) {
    constexpr std::size_t all = 5'000'000;
    constexpr std::size_t most = 2000;
    tries_ = std::min(most, all / graph.vertices.size() / static_cast<std::size_t>(sites));
    std::size_t many_labels = 1;
    for (const Vertex& vertex : graph.vertices) {
      if (has_many_labels(vertex)) many_labels += label_extents(vertex).size();
    }
    constexpr std::size_t all_of_many_labels = 150'000;  // looking at a plan takes longer, the more they are
    tries_ = std::min(tries_, all_of_many_labels / many_labels);
  }

  Plan run(SearchSpace::Choice choice, std::int64_t limit) {
    Plan plan = plan_of(graph_, space_, choice, sites_);
    SitePeak peak = peak_of(graph_, plan);
    while (peak.bytes > limit && improve(choice, plan, peak)) {
    }
    return plan;
  }

 private:
  bool improve(SearchSpace::Choice& choice, Plan& plan, SitePeak& peak) {
    const SearchSpace::Choice before = choice;
    const std::int64_t most = peak.bytes;
    for (const std::size_t v : held_most(peak)) {
      SearchSpace::Choice changed = before;
      for (changed[v] = 0; changed[v] < space_.candidates(v).size(); ++changed[v]) {
        if (changed[v] == before[v]) continue;
        if (tries_ == 0) return false;
        --tries_;
        Plan other = plan_of(graph_, space_, changed, sites_);
        SitePeak other_peak = peak_of(graph_, other);
        if (other_peak.bytes >= peak.bytes) continue;
        choice = changed;
        plan = std::move(other);
        peak = std::move(other_peak);
      }
    }
    return peak.bytes < most;
  }

  /// The vertex of the peak and those that have computed the largest tensors there.
  std::vector<std::size_t> held_most(const SitePeak& peak) const {
    constexpr std::size_t most = 4;
    std::vector<std::size_t> vertices{peak.vertex};
    for (const HeldTensor& held : peak.tensors) {
      const bool is_known = std::find(vertices.begin(), vertices.end(), held.vertex) != vertices.end();
      if (is_known || is_input(graph_.vertices[held.vertex])) continue;
      if (vertices.size() < most) vertices.push_back(held.vertex);
    }
    return vertices;
  }

  const EinGraph& graph_;
  const SearchSpace& space_;
  std::int64_t sites_;
  std::size_t tries_ = 0;
};

}  // namespace

std::string over_limit(const EinGraph& graph, const SitePeak& peak, std::int64_t limit) {
  if (peak.bytes <= limit) return "";
  const auto [needed, allowed] = bytes_texts(peak.bytes, limit);
  return fmt::format("{} needs {} on site {}, and the limit is {} a site", graph.vertices[peak.vertex].name, needed,
                     peak.site, allowed);
}

Planned within_memory(const EinGraph& graph, const PlanRequest& request, const std::vector<Plan>& others, Plan plan) {
  const SitePeak peak = peak_of(graph, plan);
  if (peak.bytes <= *request.memory) return plan;
  const double cost = costs_of(graph, plan, request.machine).of(request.cost);
  Plan spread = with_spread_inputs(graph, plan, *request.memory);
  std::vector<Plan> comparable;
  std::copy_if(others.begin(), others.end(), std::back_inserter(comparable), [&](const Plan& other) {
    return request.cost == CostKind::seconds || uses_all_sites(graph, other, request.machine);
  });
  constexpr double next_to_nothing = 1.01;  // dearer than what does not fit: a search is not worth its time
  if (peak_of(graph, spread).bytes <= *request.memory &&
      costs_of(graph, spread, request.machine).of(request.cost) <= next_to_nothing * cost) {
    Best near(graph, request);
    near.consider(spread);
    for (const Plan& other : comparable) near.consider(other);
    return near.found();
  }
  Best best(graph, request);
  const auto consider = [&](const Plan& found) {
    best.consider(found);
    best.consider(with_spread_inputs(graph, found, *request.memory));
    Plan in_pieces = found;
    reduce_as_received(graph, in_pieces);
    best.consider(in_pieces);
  };
  consider(plan);
  for (const Plan& other : comparable) consider(other);
  // What is held costs from next to nothing to all that counts, beside the cost of the plan that does not fit.
  constexpr std::array factors{0.01, 0.1, 1.0, 10.0, 1e6};
  const Candidates candidates = fitting(graph,
                                        site_candidates(graph, request.sites, request.machine, request.cost,
                                                        SampledCuts::usual_comparisons / factors.size()),
                                        *request.memory);
  const double even = (cost > 0 ? cost : 1) / static_cast<double>(peak.bytes);
  for (const double factor : factors) {
    const HoldingModel model(request.cost, request.machine, factor * even);
    const SearchSpace space(graph, model, candidates);
    SearchSpace::Choice choice = space.by_beam(few_steps_per_vertex(graph));
    space.improve(choice);
    consider(Descent(graph, space, request.sites).run(std::move(choice), *request.memory));
  }
  Planned found = best.found();
  if (Plan* const fits = std::get_if<Plan>(&found)) {
    const AllowedPlans is_allowed = [&](const Plan& other) { return peak_of(graph, other).bytes <= *request.memory; };
    *fits = polished_by_all(graph, *fits, request.machine, request.cost, is_allowed, changes_to_try(fits->sites));
  }
  return found;
}

}  // namespace einrel
