#include "plan/search/dominance.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "einsum/graph/vertex_facts.h"
#include "plan/placed_inputs.h"

namespace einrel {
namespace {

/// Of a candidate, whatever the plan of the other vertices: what it costs, less what consumers save.
struct CostRange {
  double least = 0;
  double most = 0;
};

class Dominance {
 public:
  Dominance(const EinGraph& graph, const CostModel& model, std::int64_t sites, const std::vector<Plan>& starts)
      : graph_(graph), model_(model), sites_(sites), readers_(graph.vertices.size(), 0) {
    for (const Plan& start : starts) {
      for (const VertexPlan& vertex : start.vertices) grids_of_starts_.insert(vertex.grid);
    }
    for (const Vertex& vertex : graph.vertices) {
      for (const VertexId input : vertex.inputs) ++readers_[input.index];
    }
  }

  void leave_out_dominated(std::size_t v, std::vector<VertexPlan>& candidates) const {
    std::vector<CostRange> costs;
    costs.reserve(candidates.size());
    // Plans of several vertices that profit from each other, and how sites are numbered, are worth less than that.
    constexpr double margin = 1.25;
    double enough = std::numeric_limits<double>::infinity();
    for (const VertexPlan& plan : candidates) {
      costs.push_back(range(v, plan, margin * enough));
      enough = std::min(enough, costs.back().most);
    }
    std::size_t left = 0;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      const bool is_dominated = costs[c].least > margin * enough;
      if (is_dominated && !grids_of_starts_.contains(candidates[c].grid)) continue;
      if (left < c) candidates[left] = std::move(candidates[c]);
      ++left;
    }
    candidates.resize(left);
  }

 private:
  /// Operands are not looked at where it costs more than `too_much` without them.
  CostRange range(std::size_t v, const VertexPlan& plan, double too_much) const {
    const Vertex& vertex = graph_.vertices[v];
    const double own = model_.of_vertex(graph_, v, plan);
    CostRange cost{own, own};
    if (readers_[v] > 0) cost.least -= readers_[v] * model_.of_misplacing(vertex, result_layout(vertex, plan), sites_);
    if (cost.least > too_much) return {cost.least, std::numeric_limits<double>::infinity()};
    for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
      const VertexId input = vertex.inputs[o];
      const Layout need = needed_layout(vertex, o, graph_[input].bound, plan);
      const double best = of_operand(graph_[input], need);
      cost.least += best / readers_[input.index];
      const bool lies_anywhere = lies_freely(graph_[input]) && readers_[input.index] == 1;
      cost.most += best + (lies_anywhere ? 0 : model_.of_misplacing(graph_[input], need, sites_));
    }
    return cost;
  }

  /// At least, but for what lies on several sites when it is made.
  double of_operand(const Vertex& tensor, const Layout& need) const {
    const std::optional<VertexPlan> given = given_plan(tensor);
    if (!given) return model_.of_input(tensor, need);
    return model_.of_moves(tensor, {result_layout(tensor, *given)}, {need}).front();
  }

  const EinGraph& graph_;
  const CostModel& model_;
  std::int64_t sites_;
  std::vector<double> readers_;  ///< per vertex, operands that read it
  std::set<PartitionVector> grids_of_starts_;
};

}  // namespace

Candidates undominated(const EinGraph& graph, const CostModel& model, std::int64_t sites, Candidates all,
                       const std::vector<Plan>& starts) {
  return
      [dominance = Dominance(graph, model, sites, starts), all = std::move(all)](const Vertex& vertex, std::size_t v) {
        std::vector<VertexPlan> candidates = all(vertex, v);
        if (!is_input(vertex)) dominance.leave_out_dominated(v, candidates);
        return candidates;
      };
}

}  // namespace einrel
