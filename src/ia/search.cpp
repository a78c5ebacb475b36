#include "ia/search.h"

#include <algorithm>
#include <array>
#include <optional>
#include <queue>
#include <set>

#include "ia/rules/rewrite.h"

namespace einrel {
namespace {

struct Candidate {
  IaPlan plan;
  PlanCost cost;
  int crowding = 0;  ///< 1: a site has over twice its share of the work; 2: also more than in the first plan
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
    most_work_ = {2 * cost.even_share, std::max(2 * cost.even_share, cost.busiest)};
    tidy(admit({start, cost, 0, 0, nullptr, {}, {}}));
  }

  Derivation run() {
    while (!waiting_.empty() && !is_spent() && (candidates_[best_].cost.moved > 0 || candidates_[best_].crowding > 0)) {
      const std::size_t next = waiting_.top();
      waiting_.pop();
      const std::size_t best_before = best_;
      if (!expand(next)) waiting_.push(next);
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
    constexpr double rounding = 1 + 1e-9;
    for (const double most : most_work_) candidate.crowding += candidate.cost.busiest > most * rounding ? 1 : 0;
    candidates_.push_back(std::move(candidate));
    const std::size_t added = candidates_.size() - 1;
    if (cheaper(added, best_)) best_ = added;
    return added;
  }

  /// Tries every rule at every place, until a better plan than all before comes out of it. Whether everything was
  /// tried.
  bool expand(std::size_t from) {
    const IaPlan plan = candidates_[from].plan;
    const std::size_t best_before = best_;
    for (const IaId at : nodes_of(store_, plan)) {
      for (const ApplicableRule& found : applicable_rules(store_, plan, at, SearchUse::tried)) {
        for (const Alternative& changed : found.alternatives)
          tidy(admit({changed.plan, cost_of(store_, changed.plan), 0, from, found.rule, at, changed.by}));
        if (best_ != best_before || is_spent()) return false;
      }
    }
    return true;
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
      const std::vector<ApplicableRule> found = applicable_rules(store_, plan, at, SearchUse::always);
      if (found.empty()) continue;
      const Alternative& first = found.front().alternatives.front();
      return Candidate{first.plan, cost_of(store_, first.plan), 0, from, found.front().rule, at, first.by};
    }
    return std::nullopt;
  }

  bool cheaper(std::size_t a, std::size_t b) const {
    if (candidates_[a].crowding != candidates_[b].crowding) return candidates_[a].crowding < candidates_[b].crowding;
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
  std::array<double, 2> most_work_{};  ///< of one site before a plan counts as crowded, and as more so
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
