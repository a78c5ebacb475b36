#include "plan/search/elimination.h"

#include <algorithm>
#include <optional>
#include <set>
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
      : domains_(domains), most_entries_(most_entries), neighbours_(domains.size()), mine_(domains.size()) {
    for (CostTable& table : tables) add(std::move(table));
    for (std::size_t v = 0; v < domains.size(); ++v) left_.insert(v);
  }

  Assignment run() {
    Assignment result{std::vector<std::size_t>(domains_.size(), 0)};
    while (!left_.empty()) {
      const std::size_t variable = next();
      if (entries(variable) <= static_cast<double>(most_entries_)) {
        eliminate(variable);
      } else {
        result.is_least = false;
        fix(most_neighbours());
      }
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
    for (const std::size_t a : table.variables) {
      mine_[a].insert(tables_.size());
      for (const std::size_t b : table.variables) {
        if (a != b) neighbours_[a].insert(b);
      }
    }
    tables_.push_back(std::move(table));
  }

  double entries(std::size_t variable) const {
    auto product = static_cast<double>(domains_[variable]);
    for (const std::size_t neighbour : neighbours_[variable]) product *= static_cast<double>(domains_[neighbour]);
    return product;
  }

  /// Pairs of neighbours that are none of each other yet.
  std::size_t fill(std::size_t variable) const {
    std::size_t missing = 0;
    const std::set<std::size_t>& around = neighbours_[variable];
    for (auto a = around.begin(); a != around.end(); ++a) {
      for (auto b = std::next(a); b != around.end(); ++b) missing += 1 - neighbours_[*a].count(*b);
    }
    return missing;
  }

  std::size_t next() const {
    std::optional<std::pair<std::size_t, std::size_t>> least;
    std::size_t best = *left_.begin();
    for (const std::size_t variable : left_) {
      const std::pair rank(fill(variable), neighbours_[variable].size());
      if (least && !(rank < *least)) continue;
      least = rank;
      best = variable;
      if (rank.first == 0 && rank.second <= 1) break;
    }
    return best;
  }

  std::size_t most_neighbours() const {
    return *std::max_element(left_.begin(), left_.end(), [&](std::size_t a, std::size_t b) {
      return neighbours_[a].size() < neighbours_[b].size();
    });
  }

  /// The tables of a variable, which leave the rest.
  std::vector<CostTable> take_tables(std::size_t variable) {
    std::vector<CostTable> taken;
    for (const std::size_t t : std::set<std::size_t>(mine_[variable])) {
      for (const std::size_t other : tables_[t].variables) mine_[other].erase(t);
      taken.push_back(std::move(tables_[t]));
    }
    left_.erase(variable);
    for (const std::size_t neighbour : neighbours_[variable]) neighbours_[neighbour].erase(variable);
    return taken;
  }

  void eliminate(std::size_t variable) {
    const std::vector<std::size_t> given(neighbours_[variable].begin(), neighbours_[variable].end());
    const std::vector<CostTable> tables = take_tables(variable);
    Step step{variable, given, {}};
    CostTable rest{given, {}};
    const Odometer odometer(step.given, domains_);
    std::vector<std::size_t> values(domains_.size(), 0);
    odometer.start(values);
    do {
      double least = forbidden;
      std::size_t best = 0;
      for (values[variable] = 0; values[variable] < domains_[variable]; ++values[variable]) {
        double cost = 0;
        for (const CostTable& table : tables) cost += cost_at(table, domains_, values);
        if (cost < least) {
          least = cost;
          best = values[variable];
        }
      }
      values[variable] = 0;
      rest.costs.push_back(least);
      step.best.push_back(best);
    } while (odometer.advance(values));
    steps_.push_back(std::move(step));
    add(std::move(rest));
  }

  /// Gives a variable the value for which the sum of its tables' least entries is least.
  void fix(std::size_t variable) {
    const std::vector<CostTable> tables = take_tables(variable);
    std::vector<double> bounds(domains_[variable], 0);
    std::vector<std::size_t> values(domains_.size(), 0);
    for (const CostTable& table : tables) {
      std::vector<double> least(bounds.size(), forbidden);
      const Odometer odometer(table.variables, domains_);
      odometer.start(values);
      do {
        double& at = least[values[variable]];
        at = std::min(at, cost_at(table, domains_, values));
      } while (odometer.advance(values));
      for (std::size_t value = 0; value < bounds.size(); ++value) bounds[value] += least[value];
    }
    const auto best = static_cast<std::size_t>(std::min_element(bounds.begin(), bounds.end()) - bounds.begin());
    neighbours_[variable].clear();
    for (const CostTable& table : tables) add(at_value(table, variable, best));
    steps_.push_back({variable, {}, {best}});
  }

  /// A table where one of its variables has that value.
  CostTable at_value(const CostTable& table, std::size_t variable, std::size_t value) const {
    CostTable rest;
    for (const std::size_t other : table.variables) {
      if (other != variable) rest.variables.push_back(other);
    }
    std::vector<std::size_t> values(domains_.size(), 0);
    values[variable] = value;
    const Odometer odometer(rest.variables, domains_);
    odometer.start(values);
    do {
      rest.costs.push_back(cost_at(table, domains_, values));
    } while (odometer.advance(values));
    return rest;
  }

  const std::vector<std::size_t>& domains_;
  std::size_t most_entries_;
  std::vector<CostTable> tables_;
  std::vector<std::set<std::size_t>> neighbours_;
  std::vector<std::set<std::size_t>> mine_;  ///< per variable its tables
  std::set<std::size_t> left_;
  std::vector<Step> steps_;
  double constant_ = 0;
};

}  // namespace

Assignment least_assignment(const std::vector<std::size_t>& domains, std::vector<CostTable> tables,
                            std::size_t most_entries) {
  return Elimination(domains, std::move(tables), most_entries).run();
}

}  // namespace einrel
