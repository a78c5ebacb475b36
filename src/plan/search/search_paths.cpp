#include <algorithm>
#include <limits>

#include "einsum/graph/vertex_facts.h"
#include "plan/search/search_tables.h"

namespace einrel::search {
namespace {

constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

/// Plans paths, or a whole forest, by dynamic programming.
class PathPlanner {
 public:
  PathPlanner(const Tables& tables, bool charges)
      : t_(tables),
        charges_(charges),
        choice_(t_.graph.vertices.size(), 0),
        is_planned_(t_.graph.vertices.size()),
        is_together_(t_.graph.vertices.size()),
        best_(t_.graph.vertices.size()) {
    for (std::size_t v = 0; v < is_planned_.size(); ++v) {
      is_planned_[v] = t_.is_input(v) && !t_.is_shared_input(v);
    }
  }

  Choice run() {
    if (is_forest()) {
      std::vector<std::size_t> all;
      for (std::size_t v = 0; v < is_planned_.size(); ++v) {
        if (!t_.is_input(v)) all.push_back(v);
      }
      plan_together(all);
    }
    for (Paths paths = longest_paths(); !paths.empty(); paths = longest_paths()) {
      for (const std::vector<std::size_t>& path : paths) plan_together(path);
    }
    return std::move(choice_);
  }

  /// Plans paths of a choice again, each beside what the others have, as long as that gains anything. A vertex alone is
  /// no path: it has the best candidate beside the others.
  void plan_again(Choice& choice, const std::function<double(const Choice&)>& cost) {
    Paths paths;
    for (Paths longest = longest_paths(); !longest.empty(); longest = longest_paths()) {
      for (std::vector<std::size_t>& path : longest) {
        for (const std::size_t v : path) is_planned_[v] = true;
        if (path.size() > 1) paths.push_back(std::move(path));
      }
    }
    double least = cost(choice);
    for (bool gained = true; gained;) {
      gained = false;
      for (const std::vector<std::size_t>& path : paths) {
        choice_ = choice;
        for (const std::size_t v : path) is_planned_[v] = false;
        plan_together(path);
        if (choice_ == choice) continue;
        std::swap(choice, choice_);
        const double now = cost(choice);
        constexpr double rounding = 1e-9;
        if (now < least * (1 - rounding)) {
          least = now;
          gained = true;
        } else {
          std::swap(choice, choice_);
        }
      }
    }
  }

 private:
  /// The cheapest candidate for one layout of a result.
  struct Entry {
    double cost = infinity;
    std::size_t candidate = 0;
  };

  bool is_forest() const {
    for (std::size_t v = 0; v < is_planned_.size(); ++v) {
      if (!t_.is_input(v) && t_.edges_from[v].size() > 1) return false;
    }
    return true;
  }

  using Paths = std::vector<std::vector<std::size_t>>;

  /// The longest of the paths of vertices that are not planned yet, each the producer of the next: those that do not
  /// touch each other, so that many short ones are found at once; none when all vertices are planned.
  Paths longest_paths() const {
    std::vector<std::size_t> length(is_planned_.size(), 0);
    std::vector<std::size_t> before(is_planned_.size(), nobody);
    std::size_t longest = 0;
    for (std::size_t v = 0; v < length.size(); ++v) {
      if (is_planned_[v] || t_.is_input(v)) continue;
      for (const std::size_t e : t_.edges_to[v]) {
        const std::size_t producer = t_.edges[e].producer;
        if (length[producer] < std::max<std::size_t>(length[v], 1)) continue;
        length[v] = length[producer];
        before[v] = producer;
      }
      longest = std::max(longest, ++length[v]);
    }
    Paths paths;
    std::vector<bool> is_taken(length.size(), false);
    for (std::size_t end = 0; longest > 0 && end < length.size(); ++end) {
      if (length[end] != longest) continue;
      std::vector<std::size_t> path;
      for (std::size_t at = end; at != nobody && !is_taken[at]; at = before[at]) path.push_back(at);
      if (path.size() < longest) break;  // another one may lead here
      for (const std::size_t v : path) is_taken[v] = true;
      paths.emplace_back(path.rbegin(), path.rend());
    }
    return paths;
  }

  /// Producers first, each with at most one consumer among them.
  void plan_together(const std::vector<std::size_t>& vertices) {
    for (const std::size_t v : vertices) is_together_[v] = true;
    for (const std::size_t v : vertices) fill(v);
    for (std::size_t i = vertices.size(); i-- > 0;) {
      const std::size_t v = vertices[i];
      // Its consumer, if it has one here, has chosen already.
      const auto is_consumer = [&](std::size_t e) { return is_together_[t_.edges[e].consumer]; };
      const auto edge = std::find_if(t_.edges_from[v].begin(), t_.edges_from[v].end(), is_consumer);
      if (edge == t_.edges_from[v].end()) {
        choice_[v] = cheapest(v, nullptr, 0).candidate;
      } else {
        choice_[v] = cheapest(v, &t_.edges[*edge], t_.need_at(t_.edges[*edge], choice_)).candidate;
      }
    }
    for (const std::size_t v : vertices) {
      is_together_[v] = false;
      is_planned_[v] = true;
    }
    for (const std::size_t v : vertices) {
      for (const std::size_t e : t_.edges_to[v]) {
        if (!is_planned_[t_.edges[e].producer]) lay_out(t_.edges[e].producer);
      }
    }
  }

  /// A shared input, as its consumers want it that are planned.
  void lay_out(std::size_t input) {
    std::vector<double> costs(t_.of_class(input).results.size(), 0);
    for (const std::size_t e : t_.edges_from[input]) {
      const Edge& edge = t_.edges[e];
      if (!is_planned_[edge.consumer]) continue;
      const std::size_t need = t_.need_at(edge, choice_);
      for (std::size_t r = 0; r < costs.size(); ++r) costs[r] += (*edge.table)(r, need);
    }
    choice_[input] = static_cast<std::size_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    is_planned_[input] = true;
  }

  /// To compute v, and to bring its result to where a consumer needs it.
  Entry cheapest(std::size_t v, const Edge* edge, std::size_t need) const {
    Entry best;
    for (std::size_t result = 0; result < best_[v].size(); ++result) {
      const Entry& entry = best_[v][result];
      const double cost = entry.cost + (edge == nullptr ? 0 : (*edge->table)(result, need));
      if (cost < best.cost) best = {cost, entry.candidate};
    }
    return best;
  }

  void fill(std::size_t v) {
    const VertexClass& own = t_.of_class(v);
    best_[v].assign(own.results.size(), {});
    std::vector<std::vector<double>> operands;  // per source and need
    for (const std::size_t e : t_.edges_to[v]) operands.push_back(operand_costs(t_.edges[e]));
    for (std::size_t c = 0; c < own.candidates.size(); ++c) {
      double cost = own.costs[c];
      for (std::size_t s = 0; s < operands.size(); ++s) cost += operands[s][own.sources[s].need_of[c]];
      Entry& entry = best_[v][own.result_of[c]];
      if (cost < entry.cost) entry = {cost, c};
    }
    if (!charges_) return;
    for (const std::size_t e : t_.edges_from[v]) {
      const Edge& edge = t_.edges[e];
      if (!is_planned_[edge.consumer]) continue;
      for (std::size_t result = 0; result < best_[v].size(); ++result) {
        best_[v][result].cost += (*edge.table)(result, t_.need_at(edge, choice_));
      }
    }
  }

  /// Per need. Of producers that are neither planned nor planned together with it, nothing is known.
  std::vector<double> operand_costs(const Edge& edge) const {
    if (is_together_[edge.producer]) return costs_together(edge);
    std::vector<double> costs(edge.table->needs, 0);
    for (std::size_t need = 0; need < costs.size(); ++need) {
      if (t_.is_input(edge.producer) && !is_planned_[edge.producer]) {
        costs[need] = anywhere(edge, need);
      } else if (t_.is_input(edge.producer) || (charges_ && is_planned_[edge.producer])) {
        costs[need] = (*edge.table)(t_.result_at(edge.producer, choice_), need);
      }
    }
    return costs;
  }

  /// To compute the producer, too, in the way that is cheapest for each need. Goes through the table in its order.
  std::vector<double> costs_together(const Edge& edge) const {
    std::vector<double> costs(edge.table->needs, infinity);
    for (std::size_t result = 0; result < best_[edge.producer].size(); ++result) {
      const double computing = best_[edge.producer][result].cost;
      if (computing == infinity) continue;
      for (std::size_t need = 0; need < costs.size(); ++need) {
        costs[need] = std::min(costs[need], computing + (*edge.table)(result, need));
      }
    }
    return costs;
  }

  /// Of an input that lies where that is best.
  double anywhere(const Edge& edge, std::size_t need) const {
    double least = infinity;
    for (std::size_t r = 0; r < t_.of_class(edge.producer).results.size(); ++r) {
      least = std::min(least, (*edge.table)(r, need));
    }
    return least;
  }

  const Tables& t_;
  bool charges_;
  Choice choice_;
  std::vector<bool> is_planned_;
  std::vector<bool> is_together_;
  std::vector<std::vector<Entry>> best_;  // F(v, dZ)
};

}  // namespace

Choice plan_paths(const Tables& tables, bool charges) { return PathPlanner(tables, charges).run(); }

void plan_paths_again(const Tables& tables, Choice& choice, const std::function<double(const Choice&)>& cost) {
  PathPlanner(tables, true).plan_again(choice, cost);
}

}  // namespace einrel::search
