#include "plan/search/limited_network.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <utility>

#include "plan/search/cost_network.h"
#include "plan/search/elimination.h"
#include "plan/search/usage_over_time.h"

namespace einrel {
namespace {

constexpr double impossible = std::numeric_limits<double>::infinity();

/// Differences below this part of a cost are indistinct_share.
constexpr double indistinct_share = 1e-12;

/// A variable's part in a pair.
struct PairOfVariable {
  std::size_t pair = 0;
  std::size_t other = 0;
  bool is_first = false;
};

/// A network with what is looked up often.
class IndexedNetwork {
 public:
  explicit IndexedNetwork(const LimitedNetwork& network) : network_(network), neighbours_(network.alone.size()) {
    for (std::size_t p = 0; p < network.pairs.size(); ++p) {
      const LimitedNetwork::Pair& pair = network.pairs[p];
      neighbours_[pair.a].push_back({p, pair.b, true});
      neighbours_[pair.b].push_back({p, pair.a, false});
    }
  }

  const LimitedNetwork& network() const { return network_; }
  std::size_t count() const { return neighbours_.size(); }
  std::size_t values_of(std::size_t v) const { return network_.alone[v].size(); }
  const std::vector<PairOfVariable>& neighbours(std::size_t v) const { return neighbours_[v]; }
  double usage(std::size_t v, std::size_t value) const { return network_.usages[v][value]; }

  double of_pair(const PairOfVariable& at, std::size_t v, std::size_t value, std::size_t other) const {
    const std::vector<double>& costs = network_.pairs[at.pair].costs;
    return at.is_first ? costs[value * values_of(at.other) + other] : costs[other * values_of(v) + value];
  }

 private:
  const LimitedNetwork& network_;
  std::vector<std::vector<PairOfVariable>> neighbours_;
};

/// What costs count as, so that sums of infinite ones tell fewer from more.
class FiniteCosts {
 public:
  explicit FiniteCosts(const LimitedNetwork& network) {
    const auto add = [&](const std::vector<double>& costs) {
      double most = 0;
      for (const double cost : costs) most = std::max(most, cost == impossible ? 0 : std::abs(cost));
      all_ += most;
    };
    for (const std::vector<double>& costs : network.alone) add(costs);
    for (const LimitedNetwork::Pair& pair : network.pairs) add(pair.costs);
  }
  double of(double cost) const { return std::min(cost, all_ + 1); }

 private:
  double all_ = 0;
};

/// One assignment and what it uses, changed step by step.
class LimitedState {
 public:
  LimitedState(const IndexedNetwork& index, const FiniteCosts& finite, const TimesThatCount& times,
               std::vector<std::size_t> values)
      : index_(index), finite_(finite), times_(times), usage_(times.count()), values_(std::move(values)) {
    for (std::size_t v = 0; v < values_.size(); ++v) use(v, index_.usage(v, values_[v]));
  }

  const std::vector<std::size_t>& values() const { return values_; }
  const UsageOverTime& usage() const { return usage_; }
  bool is_within() const { return usage_.most() <= index_.network().limit; }

  /// Of a variable with this value, beside the others.
  double cost(std::size_t v, std::size_t value) const {
    double sum = finite_.of(index_.network().alone[v][value]);
    for (const PairOfVariable& at : index_.neighbours(v))
      sum += finite_.of(index_.of_pair(at, v, value, values_[at.other]));
    return sum;
  }

  bool fits(std::size_t v, std::size_t value) const {
    const double more = index_.usage(v, value) - index_.usage(v, values_[v]);
    const std::optional<TimeRange>& range = times_.of(v);
    return more <= 0 || !range || usage_.most(*range) + more <= index_.network().limit;
  }

  void change(std::size_t v, std::size_t value) {
    if (value == values_[v]) return;
    use(v, index_.usage(v, value) - index_.usage(v, values_[v]));
    values_[v] = value;
  }

  /// To the cheapest value that fits; whether that is another one.
  bool improve(std::size_t v) {
    double least = cost(v, values_[v]);
    least -= indistinct_share * std::abs(least);
    std::optional<std::size_t> best;
    for (std::size_t value = 0; value < index_.values_of(v); ++value) {
      if (value == values_[v]) continue;
      const double other = cost(v, value);
      if (other >= least || !fits(v, value)) continue;
      least = other;
      best = value;
    }
    if (best) change(v, *best);
    return best.has_value();
  }

  /// These variables, and those beside what changes, until impossible becomes cheaper by itself.
  void improve_all(std::vector<std::size_t> queue) {
    std::vector<bool> waits(values_.size(), false);
    for (const std::size_t v : queue) waits[v] = true;
    for (std::size_t at = 0; at < queue.size(); ++at) {
      const std::size_t v = queue[at];
      waits[v] = false;
      if (!improve(v)) continue;
      for (const PairOfVariable& of : index_.neighbours(v)) {
        if (waits[of.other]) continue;
        waits[of.other] = true;
        queue.push_back(of.other);
      }
    }
  }

  /// Changes values at the times that use too much, those first that cost least for what they save. The variables that
  /// changed; nothing where that does not help.
  std::optional<std::vector<std::size_t>> bring_within() {
    std::vector<std::size_t> changed;
    while (!is_within()) {
      const std::size_t before = changed.size();
      save_at(usage_.when_most(), changed);
      if (changed.size() == before) return std::nullopt;
    }
    return changed;
  }

 private:
  struct Saving {
    double price = 0;  ///< of each that is used less
    std::size_t variable = 0;
    std::size_t value = 0;
  };

  void use(std::size_t v, double more) {
    if (const std::optional<TimeRange>& range = times_.of(v); range && more != 0) usage_.add(*range, more);
  }

  std::optional<Saving> cheapest_saving(std::size_t v, double wanted) const {
    const double now = cost(v, values_[v]);
    std::optional<Saving> best;
    for (std::size_t value = 0; value < index_.values_of(v); ++value) {
      const double less = index_.usage(v, values_[v]) - index_.usage(v, value);
      if (less <= 0) continue;
      const double price = (cost(v, value) - now) / std::min(less, wanted);
      if (!best || price < best->price) best = Saving{price, v, value};
    }
    return best;
  }

  void save_at(std::size_t time, std::vector<std::size_t>& changed) {
    const auto excess = [&] { return usage_.at(time) - index_.network().limit; };
    std::vector<Saving> savings;
    for (std::size_t v = 0; v < values_.size(); ++v) {
      const std::optional<TimeRange>& range = times_.of(v);
      if (!range || time < range->first || time > range->last) continue;
      if (const auto saving = cheapest_saving(v, excess())) savings.push_back(*saving);
    }
    std::stable_sort(savings.begin(), savings.end(),
                     [](const Saving& a, const Saving& b) { return a.price < b.price; });
    for (const Saving& saving : savings) {
      if (excess() <= 0) break;
      // What others beside it have become may have made it dearer, or another value better.
      const auto again = cheapest_saving(saving.variable, excess());
      if (!again) continue;
      change(again->variable, again->value);
      changed.push_back(again->variable);
    }
  }

  const IndexedNetwork& index_;
  const FiniteCosts& finite_;
  const TimesThatCount& times_;
  UsageOverTime usage_;
  std::vector<std::size_t> values_;
};

std::vector<std::size_t> all_below(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

/// Prices of what is used at each time, and what the cost network says with them.
class PricedNetwork {
 public:
  PricedNetwork(const IndexedNetwork& index, const TimesThatCount& times, double most_cost)
      : index_(index),
        times_(times),
        prices_(times.count(), 0),
        sums_(times.count() + 1, 0),
        network_(network_of(index, most_cost)) {}

  /// What all assignments within the limit cost at least.
  double at_least() const {
    double sum = network_.at_least();
    for (const double price : prices_) {
      if (price > 0) sum -= price * index_.network().limit;
    }
    return sum;
  }
  void pass() { network_.pass(); }
  std::vector<std::size_t> likely() const { return network_.likely(); }
  /// What a value costs by what it uses.
  double price(std::size_t v, std::size_t value) const { return price(times_.of(v)) * index_.usage(v, value); }

  /// Makes dearer what is used at times when it is more than the limit, by so much for each that it is more, and
  /// cheaper at the others.
  void charge(const UsageOverTime& usage, double step, double limit) {
    std::vector<double> prices;
    for (std::size_t time = 0; time < prices_.size(); ++time)
      prices.push_back(std::max(0.0, prices_[time] + step * (usage.at(time) - limit)));
    set(std::move(prices));
  }
  void take_prices(const PricedNetwork& from) { set(from.prices_); }

  /// The squared length of the step's direction.
  double slope(const UsageOverTime& usage, double limit) const {
    double sum = 0;
    for (std::size_t time = 0; time < prices_.size(); ++time) {
      const double over = usage.at(time) - limit;
      if (over > 0 || prices_[time] > 0) sum += over * over;
    }
    return sum;
  }

 private:
  void set(std::vector<double> prices) {
    const std::vector<double> before = std::exchange(sums_, {0});
    prices_ = std::move(prices);
    for (const double price : prices_) sums_.push_back(sums_.back() + price);
    for (std::size_t v = 0; v < index_.count(); ++v) {
      const std::optional<TimeRange>& range = times_.of(v);
      if (!range) continue;
      const double more = price(range) - (before[range->last + 1] - before[range->first]);
      if (more == 0) continue;
      std::vector<double> costs;
      for (const double used : index_.network().usages[v]) costs.push_back(more * used);
      network_.charge(v, costs);
    }
  }

  double price(const std::optional<TimeRange>& range) const {
    return !range ? 0 : sums_[range->last + 1] - sums_[range->first];
  }

  static CostNetwork network_of(const IndexedNetwork& index, double most_cost) {
    std::vector<std::vector<double>> alone = index.network().alone;
    for (std::vector<double>& costs : alone) {
      for (double& cost : costs) cost = std::min(cost, most_cost);
    }
    std::vector<CostNetwork::Factor> factors;
    for (const LimitedNetwork::Pair& pair : index.network().pairs) factors.push_back(factor_of(index, pair, most_cost));
    return {std::move(alone), std::move(factors)};
  }

  static CostNetwork::Factor factor_of(const IndexedNetwork& index, const LimitedNetwork::Pair& pair,
                                       double most_cost) {
    const std::size_t rows = index.values_of(pair.a);
    const std::size_t columns = index.values_of(pair.b);
    const bool is_turned = pair.a > pair.b;
    std::vector<double> costs(pair.costs.size());
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c)
        costs[is_turned ? c * rows + r : r * columns + c] = std::min(pair.costs[r * columns + c], most_cost);
    }
    CostNetwork::Factor factor{{pair.a, pair.b}, {all_below(rows), all_below(columns)}, {rows, columns}, nullptr};
    if (is_turned) {
      std::swap(factor.variables[0], factor.variables[1]);
      std::swap(factor.classes[0], factor.classes[1]);
      std::swap(factor.counts[0], factor.counts[1]);
    }
    factor.costs = std::make_shared<const std::vector<double>>(std::move(costs));
    return factor;
  }

  const IndexedNetwork& index_;
  const TimesThatCount& times_;
  std::vector<double> prices_;  ///< per time
  std::vector<double> sums_;    ///< of all before each time
  CostNetwork network_;
};

/// Some variables, and an order in which eliminating them makes small tables.
struct SearchedPart {
  std::vector<std::size_t> variables;
  std::vector<std::size_t> order;  ///< places in `variables`; impossible where min-fill is to find it
};

class LimitedSearch {
 public:
  LimitedSearch(const LimitedNetwork& network, const std::function<bool()>& goes_on,
                const std::function<void(const LimitedFound&)>& tell)
      : index_(network), finite_(network), times_(network.lives), goes_on_(goes_on), tell_(tell) {}

  LimitedFound run() {
    std::vector<std::size_t> sparing(index_.count(), 0);
    for (std::size_t v = 0; v < index_.count(); ++v) {
      const std::vector<double>& usages = index_.network().usages[v];
      sparing[v] = static_cast<std::size_t>(std::min_element(usages.begin(), usages.end()) - usages.begin());
    }
    found_.at_least = -impossible;
    consider(sparing);
    priced_ = std::make_unique<PricedNetwork>(index_, times_, finite_.of(impossible));
    bool is_capped = false;
    for (std::size_t round = 0; goes_on_() && !is_proven(); ++round) {
      if (!is_capped && found_.best) {  // pairs that cost more than all of it are as good as forbidden
        auto capped = std::make_unique<PricedNetwork>(index_, times_, found_.best->cost);
        capped->take_prices(*priced_);
        priced_ = std::move(capped);
        is_capped = round > 0;
      }
      raise_bound();
      if (!known_.empty()) improve_parts();
    }
    return found_;
  }

 private:
  /// Brings an assignment within the limit and improves it; whether it is the best by then.
  bool consider(std::vector<std::size_t> values) {
    LimitedState assigned(index_, finite_, times_, std::move(values));
    if (!assigned.bring_within()) return false;
    assigned.improve_all(all_below(index_.count()));
    return take(assigned.values());
  }

  /// What is impossible counts, too, so that fewer such pairs are better than more.
  double finite_cost(const std::vector<std::size_t>& values) const {
    const LimitedNetwork& network = index_.network();
    double sum = 0;
    for (std::size_t v = 0; v < values.size(); ++v) sum += finite_.of(network.alone[v][values[v]]);
    for (const LimitedNetwork::Pair& pair : network.pairs)
      sum += finite_.of(pair.costs[values[pair.a] * index_.values_of(pair.b) + values[pair.b]]);
    return sum;
  }

  /// Of values that are within the limit.
  bool take(const std::vector<std::size_t>& values) {
    const double finite = finite_cost(values);
    if (finite >= least_) return false;
    least_ = finite;
    known_ = values;
    if (cost_of(index_.network(), values) == impossible) return true;
    found_.best = LimitedAssignment{values, finite};
    if (tell_) tell_(found_);
    return true;
  }

  bool is_proven() const { return found_.best && found_.at_least >= found_.best->cost; }

  /// Some steps, the shorter the longer the bound has not risen; none where they are next to nothing.
  void raise_bound() {
    const int steps = found_.best ? 10 : 2;  // what goes together is sooner found by improving parts
    constexpr int passes = 4;                // until what prices change is spread
    constexpr int in_vain = 4;
    constexpr double little = 1e-5;
    constexpr double next_to_nothing = 1e-3;
    for (int step = 0; step < steps && scale_ > next_to_nothing && goes_on_() && !is_proven(); ++step) {
      for (int pass = 0; pass < passes && goes_on_(); ++pass) priced_->pass();
      const double bound = priced_->at_least();
      if (bound > highest_ + little * std::abs(highest_)) {
        without_ = 0;
      } else if (++without_ % in_vain == 0) {
        scale_ *= 0.7;
      }
      highest_ = std::max(highest_, bound);
      found_.at_least = found_.best ? std::min(highest_, found_.best->cost) : highest_;
      const LimitedState likely(index_, finite_, times_, priced_->likely());
      consider(likely.values());
      // As long as nothing is known, prices aim at less than the limit: what they make likely is seldom within it.
      const double aim = (found_.best ? 1 : 0.97) * index_.network().limit;
      const double slope = priced_->slope(likely.usage(), aim);
      if (slope == 0) continue;
      const double gap = found_.best ? found_.best->cost - bound : 0.1 * std::abs(bound) + 1;
      priced_->charge(likely.usage(), scale_ * std::max(gap, 1e-6 * std::abs(bound)) / slope, aim);
    }
  }

  /// Some steps that find the best values of many variables at once, beside those of all others.
  void improve_parts() {
    LimitedState now(index_, finite_, times_, known_);
    constexpr std::array<double, 5> shares_of_prices{1, 0, 0.5, 2, 4};
    constexpr std::size_t forests_every = 40;
    constexpr std::size_t steps = 200;
    for (const std::size_t last = part_ + steps; part_ < last && goes_on_(); ++part_) {
      const SearchedPart part = part_ % forests_every == 0 ? forest() : near(part_);
      const std::vector<std::size_t> before = now.values();
      put_best(part, shares_of_prices[part_ / 3 % shares_of_prices.size()], now);
      std::vector<std::size_t> changed;
      for (const std::size_t v : part.variables) {
        if (now.values()[v] != before[v]) changed.push_back(v);
      }
      if (changed.empty()) continue;
      const auto others = now.bring_within();
      if (others) {
        changed.insert(changed.end(), others->begin(), others->end());
        now.improve_all(changed);
        if (take(now.values())) continue;
      }
      if (others && cost_of(index_.network(), now.values()) <= found_.best->cost)
        continue;  // as good: go on from there
      for (std::size_t v = 0; v < index_.count(); ++v) now.change(v, known_[v]);
    }
  }

  void put_best(const SearchedPart& part, double share_of_prices, LimitedState& now) {
    place_.assign(index_.count(), none_of_them);
    std::vector<std::size_t> domains;
    for (std::size_t i = 0; i < part.variables.size(); ++i) {
      place_[part.variables[i]] = i;
      domains.push_back(index_.values_of(part.variables[i]));
    }
    std::vector<CostTable> tables;
    std::vector<std::vector<std::size_t>> scopes;
    for (std::size_t i = 0; i < part.variables.size(); ++i) {
      const std::size_t v = part.variables[i];
      CostTable own{{i}, {}};
      for (std::size_t value = 0; value < domains[i]; ++value)
        own.costs.push_back(finite_.of(index_.network().alone[v][value]) + share_of_prices * priced_->price(v, value));
      for (const PairOfVariable& at : index_.neighbours(v)) add_pair(at, v, now, own, tables);
      tables.push_back(std::move(own));
    }
    for (const CostTable& table : tables) scopes.push_back(table.variables);
    const std::vector<std::size_t> order = part.order.empty() ? min_fill_order(domains.size(), scopes) : part.order;
    constexpr std::size_t most_entries = std::size_t{1} << 17U;
    const Assignment best = least_assignment(domains, std::move(tables), order, most_entries);
    for (std::size_t i = 0; i < part.variables.size(); ++i) now.change(part.variables[i], best.values[i]);
  }

  /// With a neighbour that is not among them, a pair is part of what a variable costs alone.
  void add_pair(const PairOfVariable& at, std::size_t v, const LimitedState& now, CostTable& own,
                std::vector<CostTable>& tables) {
    const std::size_t other = place_[at.other];
    if (other == none_of_them) {
      for (std::size_t value = 0; value < own.costs.size(); ++value)
        own.costs[value] += finite_.of(index_.of_pair(at, v, value, now.values()[at.other]));
      return;
    }
    if (!at.is_first) return;  // once
    CostTable table{{place_[v], other}, index_.network().pairs[at.pair].costs};
    for (double& cost : table.costs) cost = finite_.of(cost);
    tables.push_back(std::move(table));
  }

  /// Variables in a random order, without those that would close a circle.
  SearchedPart forest() {
    std::vector<std::size_t> order = all_below(index_.count());
    std::shuffle(order.begin(), order.end(), random_);
    std::vector<std::size_t> tree = all_below(index_.count());
    const auto root = [&](std::size_t v) {
      while (tree[v] != v) v = tree[v] = tree[tree[v]];
      return v;
    };
    std::vector<bool> is_in(index_.count(), false);
    SearchedPart part;
    std::vector<std::size_t> roots;
    for (const std::size_t v : order) {
      roots.clear();
      for (const PairOfVariable& at : index_.neighbours(v)) {
        if (is_in[at.other]) roots.push_back(root(at.other));
      }
      std::sort(roots.begin(), roots.end());
      if (std::adjacent_find(roots.begin(), roots.end()) != roots.end()) continue;
      for (const std::size_t other : roots) tree[other] = v;
      is_in[v] = true;
      part.variables.push_back(v);
    }
    set_leaves_first(is_in, part);
    return part;
  }

  void set_leaves_first(const std::vector<bool>& is_in, SearchedPart& part) const {
    std::vector<std::size_t> place(index_.count(), none_of_them);
    for (std::size_t i = 0; i < part.variables.size(); ++i) place[part.variables[i]] = i;
    std::vector<bool> is_reached(index_.count(), false);
    for (const std::size_t first : part.variables) {
      if (is_reached[first]) continue;
      is_reached[first] = true;
      std::size_t next = part.order.size();
      part.order.push_back(place[first]);
      for (; next < part.order.size(); ++next) {
        for (const PairOfVariable& at : index_.neighbours(part.variables[part.order[next]])) {
          if (!is_in[at.other] || is_reached[at.other]) continue;
          is_reached[at.other] = true;
          part.order.push_back(place[at.other]);
        }
      }
    }
    std::reverse(part.order.begin(), part.order.end());
  }

  /// Those that lie closest to a random one.
  SearchedPart near(std::size_t round) {
    constexpr std::array<std::size_t, 3> sizes{16, 40, 100};
    SearchedPart part;
    std::vector<bool> is_in(index_.count(), false);
    part.variables.push_back(seed());
    is_in[part.variables.front()] = true;
    const std::size_t most = sizes[round % sizes.size()];
    for (std::size_t at = 0; at < part.variables.size(); ++at) {
      for (const PairOfVariable& of : index_.neighbours(part.variables[at])) {
        if (is_in[of.other] || part.variables.size() >= most) continue;
        is_in[of.other] = true;
        part.variables.push_back(of.other);
      }
    }
    return part;
  }

  /// One of those that do not go together, as long as there are such; else any.
  std::size_t seed() {
    std::vector<std::size_t> wrong;
    const LimitedNetwork& network = index_.network();
    for (std::size_t v = 0; !found_.best && v < index_.count(); ++v) {
      if (network.alone[v][known_[v]] == impossible) wrong.push_back(v);
    }
    for (std::size_t p = 0; !found_.best && p < network.pairs.size(); ++p) {
      const LimitedNetwork::Pair& pair = network.pairs[p];
      if (pair.costs[known_[pair.a] * index_.values_of(pair.b) + known_[pair.b]] == impossible) wrong.push_back(pair.a);
    }
    return wrong.empty() ? random_() % index_.count() : wrong[random_() % wrong.size()];
  }

  static constexpr std::size_t none_of_them = std::numeric_limits<std::size_t>::max();

  IndexedNetwork index_;
  FiniteCosts finite_;
  TimesThatCount times_;
  const std::function<bool()>& goes_on_;
  const std::function<void(const LimitedFound&)>& tell_;
  LimitedFound found_;
  std::vector<std::size_t> known_;  ///< the best within the limit; impossible as long as none is found
  double least_ = impossible;       ///< its cost, with what is impossible
  std::unique_ptr<PricedNetwork> priced_;
  double scale_ = 1;  ///< of the steps of prices
  double highest_ = -impossible;
  int without_ = 0;       ///< steps since the bound last rose
  std::size_t part_ = 0;  ///< how many were put
  std::vector<std::size_t> place_;
  std::mt19937_64 random_{1};
};

}  // namespace

double cost_of(const LimitedNetwork& network, const std::vector<std::size_t>& values) {
  double sum = 0;
  for (std::size_t v = 0; v < values.size(); ++v) sum += network.alone[v][values[v]];
  for (const LimitedNetwork::Pair& pair : network.pairs)
    sum += pair.costs[values[pair.a] * network.alone[pair.b].size() + values[pair.b]];
  return sum;
}

double most_used(const LimitedNetwork& network, const std::vector<std::size_t>& values) {
  const TimesThatCount times(network.lives);
  UsageOverTime usage(times.count());
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (const std::optional<TimeRange>& range = times.of(v)) usage.add(*range, network.usages[v][values[v]]);
  }
  return usage.most();
}

LimitedFound least_within_limit(const LimitedNetwork& network, const std::function<bool()>& goes_on,
                                const std::function<void(const LimitedFound&)>& tell) {
  return LimitedSearch(network, goes_on, tell).run();
}

}  // namespace einrel
