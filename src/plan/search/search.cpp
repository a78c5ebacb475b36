#include "plan/search/search.h"

#include <algorithm>
#include <limits>

#include "einsum/vertex_facts.h"
#include "plan/search/search_tables.h"

namespace einrel {

using search::Edge;
using search::Needs;
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
    std::vector<std::size_t> chosen;
    for (const std::size_t e : t_.edges_from[v]) {
      const Needs& needs = t_.needs(t_.edges[e], t_.need_at(t_.edges[e], choice_));
      const bool is_known = std::any_of(chosen.begin(), chosen.end(), [&](std::size_t other) {
        return t_.needs(t_.edges[other], t_.need_at(t_.edges[other], choice_)) == needs;
      });
      if (!is_known || !sends_once()) chosen.push_back(e);
    }
    return chosen;
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
    for (const std::size_t other : t_.edges_from[edge.producer]) {
      if (other == e) continue;
      const Needs& taken = t_.needs(t_.edges[other], t_.need_at(t_.edges[other], choice_));
      const std::vector<Needs>& own = t_.of_class(edge.consumer).sources[edge.source].needs;
      const auto same = std::find(own.begin(), own.end(), taken);
      if (same != own.end()) costs[static_cast<std::size_t>(same - own.begin())] = 0;
    }
    return costs;
  }

  bool sends_once() const { return t_.model.sends_once(); }

  const Tables& t_;
  const search::Choice& choice_;
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
  const Neighbourhood beside(*tables_, choice);
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool gained = false;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t v = sweep % 2 == 0 ? i : count - 1 - i;
      if (tables_->of_class(v).candidates.size() == 1) continue;
      const std::vector<double> costs = beside.costs(v);
      const auto best = static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
      constexpr double rounding = 1e-12;
      if (costs[best] >= costs[choice[v]] * (1 - rounding)) continue;
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

std::vector<double> SearchSpace::costs_beside(const Choice& choice, std::size_t vertex) const {
  return Neighbourhood(*tables_, choice).costs(vertex);
}

std::vector<SearchSpace::Term> SearchSpace::terms_beside(const Choice& choice, std::size_t vertex,
                                                         std::size_t candidate) const {
  const Tables& t = *tables_;
  Choice changed = choice;
  changed[vertex] = candidate;
  std::vector<Term> terms{{vertex, vertex, t.of_class(vertex).costs[candidate]}};
  for (const std::size_t e : t.edges_to[vertex]) {
    terms.push_back({t.edges[e].producer, vertex, t.edge_cost(t.edges[e], changed)});
  }
  for (const std::size_t e : t.edges_from[vertex]) {
    terms.push_back({vertex, t.edges[e].consumer, t.edge_cost(t.edges[e], changed)});
  }
  return terms;
}

}  // namespace einrel
