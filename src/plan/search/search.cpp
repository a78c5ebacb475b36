#include "plan/search/search.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "einsum/graph/vertex_facts.h"
#include "plan/search/search_tables.h"

namespace einrel {

using search::Edge;
using search::Tables;
using search::VertexClass;

namespace {

/// Costs of one vertex's candidates beside a choice for all others.
class Neighbourhood {
 public:
  Neighbourhood(const Tables& tables, const search::Choice& choice) : t_(tables), choice_(choice) {}

  /// Of every candidate of v.
  std::vector<double> costs(std::size_t v) const {
    const VertexClass& own = t_.of_class(v);
    std::vector<double> per_result(own.results.size(), 0);
    for (const std::size_t e : first_of_each_need(v)) {
      const std::size_t need = t_.need_at(t_.edges[e], choice_);
      for (std::size_t r = 0; r < per_result.size(); ++r) per_result[r] += (*t_.edges[e].table)(r, need);
    }
    std::vector<std::vector<double>> operands;
    for (const std::size_t e : t_.edges_to[v]) operands.push_back(operand_costs(e));
    std::vector<double> costs(own.candidates.size());
    for (std::size_t c = 0; c < costs.size(); ++c) {
      costs[c] = own.costs[c] + per_result[own.result_of[c]];
      for (std::size_t s = 0; s < operands.size(); ++s) costs[c] += operands[s][own.sources[s].need_of[c]];
    }
    return costs;
  }

  /// The edges from v that differ in what they need.
  std::vector<std::size_t> first_of_each_need(std::size_t v) const {
    if (!sends_once()) return t_.edges_from[v];
    std::vector<std::size_t> chosen;
    std::unordered_set<std::size_t> known;
    for (const std::size_t e : t_.edges_from[v]) {
      if (known.insert(chosen_need(e)).second) chosen.push_back(e);
    }
    return chosen;
  }

  /// Says that v is about to take another candidate than it has in the choice.
  void note_change(std::size_t v, std::size_t candidate) {
    for (const std::size_t e : t_.edges_to[v]) {
      const auto taken = taken_.find(t_.edges[e].producer);
      if (taken == taken_.end()) continue;
      --taken->second[chosen_need(e)];
      ++taken->second[t_.need_id(t_.edges[e], candidate)];
    }
  }

 private:
  /// Per need; nothing for what another consumer needs in the same way.
  std::vector<double> operand_costs(std::size_t e) const {
    const Edge& edge = t_.edges[e];
    std::vector<double> costs(edge.table->needs, 0);
    for (std::size_t need = 0; need < costs.size(); ++need) {
      costs[need] = (*edge.table)(t_.result_at(edge.producer, choice_), need);
    }
    if (!sends_once()) return costs;
    const Taken& taken = taken_from(edge.producer);
    const std::vector<std::size_t>& ids = t_.source_of(edge).ids;
    for (std::size_t need = 0; need < costs.size(); ++need) {
      const auto count = taken.find(ids[need]);
      const std::size_t own = ids[need] == chosen_need(e) ? 1 : 0;
      if (count != taken.end() && count->second > own) costs[need] = 0;
    }
    return costs;
  }

  /// How many consumers of a producer take what, by the ids of needs.
  using Taken = std::unordered_map<std::size_t, std::size_t>;

  /// Counted once: a tensor may have as many consumers as the graph has vertices.
  const Taken& taken_from(std::size_t producer) const {
    const auto [at, is_new] = taken_.try_emplace(producer);
    if (is_new) {
      for (const std::size_t e : t_.edges_from[producer]) ++at->second[chosen_need(e)];
    }
    return at->second;
  }

  std::size_t chosen_need(std::size_t e) const { return t_.need_id(t_.edges[e], choice_[t_.edges[e].consumer]); }

  bool sends_once() const { return t_.model.sends_once(); }

  const Tables& t_;
  const search::Choice& choice_;
  mutable std::unordered_map<std::size_t, Taken> taken_;  // by producer
};

}  // namespace

SearchSpace::SearchSpace(const EinGraph& graph, const CostModel& model, const Candidates& candidates)
    : tables_(std::make_unique<Tables>(graph, model, candidates)) {}
SearchSpace::~SearchSpace() = default;

bool SearchSpace::leave_out(const std::function<bool(const VertexPlan&)>& is_left_out) {
  bool found = false;
  for (const auto& alike : tables_->classes) {
    for (std::size_t c = 0; c < alike->candidates.size(); ++c) {
      if (!is_left_out(alike->candidates[c])) continue;
      alike->costs[c] = std::numeric_limits<double>::infinity();
      found = true;
    }
  }
  return found;
}

SearchSpace::Choice SearchSpace::by_beam(std::size_t most_steps) const {
  return search::plan_with_beam(*tables_, most_steps);
}

SearchSpace::Choice SearchSpace::by_paths(bool charges) const { return search::plan_paths(*tables_, charges); }

void SearchSpace::improve(Choice& choice) const {
  constexpr int most_sweeps = 20;
  const std::size_t count = choice.size();
  Neighbourhood beside(*tables_, choice);
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool gained = false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t v = sweep % 2 == 0 ? i : count - 1 - i;
      if (tables_->of_class(v).candidates.size() == 1) continue;
      const std::vector<double> costs = beside.costs(v);
      const auto best = static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
      constexpr double rounding = 1e-12;
      if (costs[best] >= costs[choice[v]] * (1 - rounding)) continue;
      beside.note_change(v, best);
      choice[v] = best;
      gained = true;
    }
    if (!gained) break;
  }
  search::plan_paths_again(*tables_, choice, [&](const Choice& changed) { return cost(changed); });
}

double SearchSpace::cost(const Choice& choice) const {
  double cost = 0;
  const Neighbourhood beside(*tables_, choice);
  for (std::size_t v = 0; v < choice.size(); ++v) {
    cost += tables_->of_class(v).costs[choice[v]];
    for (const std::size_t e : beside.first_of_each_need(v)) cost += tables_->edge_cost(tables_->edges[e], choice);
  }
  return cost;
}

std::optional<SearchSpace::Choice> SearchSpace::choice_of(const Plan& plan) const {
  Choice choice;
  for (std::size_t v = 0; v < plan.vertices.size(); ++v) {
    const std::vector<VertexPlan>& candidates = tables_->of_class(v).candidates;
    const auto same = std::find_if(candidates.begin(), candidates.end(), [&](const VertexPlan& candidate) {
      return is_cut_alike(candidate, plan.vertices[v]);
    });
    if (same == candidates.end() && tables_->is_input(v)) {
      choice.push_back(0);
      continue;
    }
    if (same == candidates.end()) return std::nullopt;
    choice.push_back(static_cast<std::size_t>(same - candidates.begin()));
  }
  return choice;
}

const std::vector<VertexPlan>& SearchSpace::candidates(std::size_t vertex) const {
  return tables_->of_class(vertex).candidates;
}

}  // namespace einrel
