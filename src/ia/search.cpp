#include "ia/search.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <set>

#include "ia/rules/rewrite.h"

namespace einrel {
namespace {

struct Candidate {
  IaPlan plan;
  PlanCost cost;
  bool crowded = false;  ///< too much of the work is on one site
  std::size_t parent = 0;
  const Rule* rule = nullptr;
  IaId at;
  IaId by;
};

/// Outputs are named alike in every plan, so their ids identify a plan.
std::vector<std::size_t> identity(const IaPlan& plan) {
  std::vector<std::size_t> ids;
  for (const IaOutput& output : plan) ids.push_back(output.id.index);
  return ids;
}

class Search {
 public:
  Search(IaStore& store, const IaPlan& start, const SearchBudget& budget)
      : store_(store), most_plans_(budget.plans), most_tuples_(store.tuples() + budget.tuples) {
    const PlanCost cost = cost_of(store, start);
    const double share = cost.work / static_cast<double>(store.sites());
    most_work_ = std::max(2 * share, cost.busiest);
    tidy(admit({start, cost, false, 0, nullptr, {}, {}}));
  }

  Derivation run() {
    while (!waiting_.empty() && !is_spent()) {
      const std::size_t next = waiting_.top();
      waiting_.pop();
      const std::size_t best_before = best_;
      expand(next);
      if (best_ != best_before) {
        postponed_.push_back(std::move(waiting_));
        waiting_ = Queue{Later{this}};
        waiting_.push(best_);
      }
      while (waiting_.empty() && !postponed_.empty()) {
        waiting_ = std::move(postponed_.back());
        postponed_.pop_back();
      }
    }
    Derivation derivation{candidates_[0].plan, candidates_[0].cost, {}, seen_.size(), waiting_.empty() && !is_spent()};
    for (std::size_t at = best_; at != 0; at = candidates_[at].parent) {
      const Candidate& step = candidates_[at];
      derivation.steps.push_back({step.rule, step.at, step.by, step.plan, step.cost});
    }
    std::reverse(derivation.steps.begin(), derivation.steps.end());
    return derivation;
  }

 private:
  /// The new candidate, nullopt when its plan was seen before.
  std::optional<std::size_t> admit(Candidate candidate) {
    if (!seen_.insert(identity(candidate.plan)).second) return std::nullopt;
    candidate.crowded = candidate.cost.busiest > most_work_ * (1 + 1e-9);
    candidates_.push_back(std::move(candidate));
    const std::size_t added = candidates_.size() - 1;
    if (cheaper(added, best_)) best_ = added;
    return added;
  }

  void expand(std::size_t from) {
    const IaPlan plan = candidates_[from].plan;
    for (const IaId at : nodes_of(store_, plan)) {
      for (const Rule& rule : all_rules()) {
        if (rule.search != SearchUse::tried) continue;
        for (const Alternative& changed : apply(rule, store_, plan, at).alternatives) {
          if (is_spent()) return;
          tidy(admit({changed.plan, cost_of(store_, changed.plan), false, from, &rule, at, changed.by}));
        }
      }
    }
  }

  /// Takes needless movement out of a new candidate, step by step; each step is a candidate of its own, the last one is
  /// what the search goes on from.
  void tidy(std::optional<std::size_t> candidate) {
    while (candidate) {
      waiting_.push(*candidate);
      std::optional<Candidate> tidier = tidied_once(*candidate);
      candidate = tidier ? admit(std::move(*tidier)) : std::nullopt;
    }
  }

  std::optional<Candidate> tidied_once(std::size_t from) {
    const IaPlan plan = candidates_[from].plan;
    for (const IaId at : nodes_of(store_, plan)) {
      for (const Rule& rule : all_rules()) {
        if (rule.search != SearchUse::always) continue;
        const std::vector<Alternative> changed = apply(rule, store_, plan, at).alternatives;
        if (changed.empty()) continue;
        const Alternative& first = changed.front();
        return Candidate{first.plan, cost_of(store_, first.plan), false, from, &rule, at, first.by};
      }
    }
    return std::nullopt;
  }

  bool cheaper(std::size_t a, std::size_t b) const {
    if (candidates_[a].crowded != candidates_[b].crowded) return !candidates_[a].crowded;
    if (candidates_[a].cost.moved != candidates_[b].cost.moved)
      return candidates_[a].cost.moved < candidates_[b].cost.moved;
    if (candidates_[a].cost.busiest != candidates_[b].cost.busiest)
      return candidates_[a].cost.busiest < candidates_[b].cost.busiest;
    return a < b;
  }

  bool is_spent() const { return seen_.size() >= most_plans_ || store_.tuples() >= most_tuples_; }

  struct Later {
    const Search* search;
    bool operator()(std::size_t a, std::size_t b) const { return search->cheaper(b, a); }
  };

  IaStore& store_;
  std::size_t most_plans_;
  std::size_t most_tuples_;
  double most_work_ = 0;
  std::vector<Candidate> candidates_;
  std::set<std::vector<std::size_t>> seen_;
  using Queue = std::priority_queue<std::size_t, std::vector<std::size_t>, Later>;
  Queue waiting_{Later{this}};
  std::vector<Queue> postponed_;  ///< what was waiting when a better plan was found
  std::size_t best_ = 0;
};

}  // namespace

Derivation cheapest_plan(IaStore& store, const IaPlan& start, const SearchBudget& budget) {
  return Search(store, start, budget).run();
}

}  // namespace einrel
