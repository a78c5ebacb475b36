#include "plan/search/elimination.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

namespace einrel {
namespace {

constexpr double forbidden = std::numeric_limits<double>::infinity();

/// The values of some variables, in row-major order.
class Odometer {
 public:
  Odometer(const std::vector<std::size_t>& variables, const std::vector<std::size_t>& domains)
      : variables_(variables), domains_(domains) {}

  /// Puts the first combination into `values`.
  void start(std::vector<std::size_t>& values) const {
    for (const std::size_t variable : variables_) values[variable] = 0;
  }
  /// The next one; false after the last.
  bool advance(std::vector<std::size_t>& values) const {
    for (std::size_t i = variables_.size(); i-- > 0;) {
      if (++values[variables_[i]] < domains_[variables_[i]]) return true;
      values[variables_[i]] = 0;
    }
    return false;
  }

 private:
  const std::vector<std::size_t>& variables_;
  const std::vector<std::size_t>& domains_;
};

double cost_at(const CostTable& table, const std::vector<std::size_t>& domains,
               const std::vector<std::size_t>& values) {
  std::size_t at = 0;
  for (const std::size_t variable : table.variables) at = at * domains[variable] + values[variable];
  return table.costs[at];
}

class Elimination {
 public:
  Elimination(const std::vector<std::size_t>& domains, std::vector<CostTable> tables, std::size_t most_entries)
      : domains_(domains), most_entries_(most_entries), mine_(domains.size()), values_(domains.size(), 0) {
    for (CostTable& table : tables) add(std::move(table));
  }

  Assignment run(const std::vector<std::size_t>& order) {
    Assignment result{std::vector<std::size_t>(domains_.size(), 0)};
    std::vector<bool> is_done(domains_.size(), false);
    for (const std::size_t variable : order) {
      while (!is_done[variable] && entries(variable) > static_cast<double>(most_entries_)) {
        result.is_least = false;
        const std::size_t tangled = most_tables(variable);
        fix(tangled);
        is_done[tangled] = true;
      }
      if (!is_done[variable]) eliminate(variable);
      is_done[variable] = true;
    }
    result.cost = constant_;
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      std::size_t at = 0;
      for (const std::size_t neighbour : step->given) at = at * domains_[neighbour] + result.values[neighbour];
      result.values[step->variable] = step->best[at];
    }
    return result;
  }

 private:
  /// The best value of a variable for each combination of its neighbours' values.
  struct Step {
    std::size_t variable = 0;
    std::vector<std::size_t> given;
    std::vector<std::size_t> best;
  };

  void add(CostTable table) {
    if (table.variables.empty()) {
      constant_ += table.costs.front();
      return;
    }
    for (const std::size_t variable : table.variables) mine_[variable].push_back(tables_.size());
    tables_.push_back(std::move(table));
  }

  /// Those that share a table with a variable, ascending.
  std::vector<std::size_t> neighbours(std::size_t variable) const {
    std::vector<std::size_t> others;
    for (const std::size_t t : mine_[variable]) {
      for (const std::size_t other : tables_[t].variables) {
        if (other != variable) others.push_back(other);
      }
    }
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    return others;
  }

  double entries(std::size_t variable) const {
    auto product = static_cast<double>(domains_[variable]);
    for (const std::size_t neighbour : neighbours(variable)) product *= static_cast<double>(domains_[neighbour]);
    return product;
  }

  /// That with most tables, of a variable and its neighbours.
  std::size_t most_tables(std::size_t variable) const {
    std::vector<std::size_t> all = neighbours(variable);
    all.push_back(variable);
    return *std::max_element(all.begin(), all.end(),
                             [&](std::size_t a, std::size_t b) { return mine_[a].size() < mine_[b].size(); });
  }

  /// The tables of a variable, which leave the rest.
  std::vector<CostTable> take_tables(std::size_t variable) {
    std::vector<CostTable> taken;
    const std::vector<std::size_t> numbers = mine_[variable];
    for (const std::size_t t : numbers) {
      for (const std::size_t other : tables_[t].variables) {
        std::vector<std::size_t>& of_other = mine_[other];
        of_other.erase(std::find(of_other.begin(), of_other.end(), t));
      }
      taken.push_back(std::move(tables_[t]));
    }
    return taken;
  }

  void eliminate(std::size_t variable) {
    Step step{variable, neighbours(variable), {}};
    const std::vector<CostTable> tables = take_tables(variable);
    CostTable rest{step.given, {}};
    const Odometer odometer(step.given, domains_);
    odometer.start(values_);
    do {
      double least = forbidden;
      std::size_t best = 0;
      for (values_[variable] = 0; values_[variable] < domains_[variable]; ++values_[variable]) {
        double cost = 0;
        for (const CostTable& table : tables) cost += cost_at(table, domains_, values_);
        if (cost < least) {
          least = cost;
          best = values_[variable];
        }
      }
      values_[variable] = 0;
      rest.costs.push_back(least);
      step.best.push_back(best);
    } while (odometer.advance(values_));
    steps_.push_back(std::move(step));
    add(std::move(rest));
  }

  /// Gives a variable the value for which the sum of its tables' least entries is least.
  void fix(std::size_t variable) {
    const std::vector<CostTable> tables = take_tables(variable);
    std::vector<double> bounds(domains_[variable], 0);
    for (const CostTable& table : tables) {
      std::vector<double> least(bounds.size(), forbidden);
      const Odometer odometer(table.variables, domains_);
      odometer.start(values_);
      do {
        double& at = least[values_[variable]];
        at = std::min(at, cost_at(table, domains_, values_));
      } while (odometer.advance(values_));
      for (std::size_t value = 0; value < bounds.size(); ++value) bounds[value] += least[value];
    }
    const auto best = static_cast<std::size_t>(std::min_element(bounds.begin(), bounds.end()) - bounds.begin());
    for (const CostTable& table : tables) add(at_value(table, variable, best));
    steps_.push_back({variable, {}, {best}});
  }

  /// A table where one of its variables has that value.
  CostTable at_value(const CostTable& table, std::size_t variable, std::size_t value) {
    CostTable rest;
    for (const std::size_t other : table.variables) {
      if (other != variable) rest.variables.push_back(other);
    }
    const Odometer odometer(rest.variables, domains_);
    odometer.start(values_);
    values_[variable] = value;
    do {
      rest.costs.push_back(cost_at(table, domains_, values_));
    } while (odometer.advance(values_));
    return rest;
  }

  const std::vector<std::size_t>& domains_;
  std::size_t most_entries_;
  std::vector<CostTable> tables_;
  std::vector<std::vector<std::size_t>> mine_;  ///< per variable its tables
  std::vector<Step> steps_;
  std::vector<std::size_t> values_;  ///< while tables are walked through
  double constant_ = 0;
};

/// Some of the variables, a bit for each: programs have tensors that hundreds of others depend on.
class Variables {
 public:
  explicit Variables(std::size_t most) : words_((most + bits - 1) / bits) {}

  void add(std::size_t variable) { words_[variable / bits] |= bit_of(variable); }
  void remove(std::size_t variable) { words_[variable / bits] &= ~bit_of(variable); }
  void add_all(const Variables& others) {
    for (std::size_t w = 0; w < words_.size(); ++w) words_[w] |= others.words_[w];
  }
  std::size_t count_shared(const Variables& others) const {
    std::size_t count = 0;
    for (std::size_t w = 0; w < words_.size(); ++w)
      count += static_cast<std::size_t>(std::popcount(words_[w] & others.words_[w]));
    return count;
  }
  /// Ascending.
  std::vector<std::size_t> all() const {
    std::vector<std::size_t> all;
    for (std::size_t w = 0; w < words_.size(); ++w) {
      for (std::uint64_t left = words_[w]; left != 0; left &= left - 1)
        all.push_back(w * bits + static_cast<std::size_t>(std::countr_zero(left)));
    }
    return all;
  }

 private:
  static constexpr std::size_t bits = 64;
  static std::uint64_t bit_of(std::size_t variable) { return std::uint64_t{1} << variable % bits; }

  std::vector<std::uint64_t> words_;
};

/// Variables by what their elimination would do.
class MinFill {
 public:
  MinFill(std::size_t variables, const std::vector<std::vector<std::size_t>>& scopes)
      : neighbours_(variables, Variables(variables)), ranks_(variables) {
    for (const std::vector<std::size_t>& scope : scopes) connect(scope);
    for (std::size_t v = 0; v < variables; ++v) by_rank_.insert(ranks_[v] = rank_of(v));
  }

  std::vector<std::size_t> order() {
    std::vector<std::size_t> order;
    while (!by_rank_.empty()) {
      const std::size_t variable = std::get<2>(*by_rank_.begin());
      by_rank_.erase(by_rank_.begin());
      order.push_back(variable);
      const std::vector<std::size_t> around = neighbours_[variable].all();
      for (const std::size_t neighbour : around) neighbours_[neighbour].remove(variable);
      connect(around);
      rank_around(around);
    }
    return order;
  }

 private:
  /// New pairs of neighbours, neighbours, the variable.
  using Rank = std::tuple<std::size_t, std::size_t, std::size_t>;

  Rank rank_of(std::size_t variable) const {
    const Variables& around = neighbours_[variable];
    const std::vector<std::size_t> each = around.all();
    std::size_t known = 0;  // pairs of neighbours that are neighbours, from both ends
    for (const std::size_t neighbour : each) known += around.count_shared(neighbours_[neighbour]);
    return {(each.size() * each.size() - each.size() - known) / 2, each.size(), variable};
  }

  void connect(const std::vector<std::size_t>& scope) {
    Variables all(neighbours_.size());
    for (const std::size_t variable : scope) all.add(variable);
    for (const std::size_t variable : scope) {
      neighbours_[variable].add_all(all);
      neighbours_[variable].remove(variable);
    }
  }

  /// After the neighbours of these have changed.
  void rank_around(const std::vector<std::size_t>& changed) {
    Variables around(neighbours_.size());
    for (const std::size_t variable : changed) {
      around.add(variable);
      around.add_all(neighbours_[variable]);
    }
    for (const std::size_t variable : around.all()) {
      by_rank_.erase(ranks_[variable]);
      by_rank_.insert(ranks_[variable] = rank_of(variable));
    }
  }

  std::vector<Variables> neighbours_;
  std::vector<Rank> ranks_;
  std::set<Rank> by_rank_;  ///< of the variables that are left
};

}  // namespace

std::vector<std::size_t> min_fill_order(std::size_t variables, const std::vector<std::vector<std::size_t>>& scopes) {
  return MinFill(variables, scopes).order();
}

double largest_table(const std::vector<std::size_t>& domains, const std::vector<std::vector<std::size_t>>& scopes,
                     const std::vector<std::size_t>& order) {
  std::vector<std::set<std::size_t>> neighbours(domains.size());
  const auto connect = [&](const auto& scope) {
    for (const std::size_t a : scope) {
      for (const std::size_t b : scope) {
        if (a != b) neighbours[a].insert(b);
      }
    }
  };
  for (const std::vector<std::size_t>& scope : scopes) connect(scope);
  double most = 0;
  for (const std::size_t variable : order) {
    auto entries = static_cast<double>(domains[variable]);
    const std::set<std::size_t> around = std::move(neighbours[variable]);
    for (const std::size_t neighbour : around) {
      entries *= static_cast<double>(domains[neighbour]);
      neighbours[neighbour].erase(variable);
    }
    connect(around);
    most = std::max(most, entries);
  }
  return most;
}

Assignment least_assignment(const std::vector<std::size_t>& domains, std::vector<CostTable> tables,
                            const std::vector<std::size_t>& order, std::size_t most_entries) {
  return Elimination(domains, std::move(tables), most_entries).run(order);
}

}  // namespace einrel
