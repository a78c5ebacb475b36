#include "plan/search/cost_network.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace einrel {
namespace {

constexpr double any = std::numeric_limits<double>::infinity();

double least(const std::vector<double>& costs, const std::vector<std::size_t>& values) {
  double found = any;
  for (const std::size_t value : values) found = std::min(found, costs[value]);
  return found;
}

/// The classes of a variable that have values, and what these have cost until now at least.
struct LeftClasses {
  std::vector<std::size_t> classes;
  std::vector<double> costs;
};

LeftClasses left_classes(const std::vector<std::size_t>& classes, std::size_t count, const std::vector<double>& costs,
                         const std::vector<std::size_t>& values) {
  std::vector<double> of_class(count, any);
  for (const std::size_t value : values) {
    double& known = of_class[classes[value]];
    known = std::min(known, costs[value]);
  }
  LeftClasses left;
  for (std::size_t c = 0; c < count; ++c) {
    if (of_class[c] == any) continue;
    left.classes.push_back(c);
    left.costs.push_back(of_class[c]);
  }
  return left;
}

}  // namespace

CostNetwork::CostNetwork(std::vector<std::vector<double>> alone, std::vector<Factor> factors)
    : alone_(std::move(alone)),
      factors_(std::move(factors)),
      moved_(factors_.size()),
      after_others_(alone_.size()),
      before_others_(alone_.size()),
      left_(alone_.size()) {
  for (std::size_t v = 0; v < alone_.size(); ++v) {
    left_[v].resize(alone_[v].size());
    std::iota(left_[v].begin(), left_[v].end(), std::size_t{0});
  }
  for (std::size_t f = 0; f < factors_.size(); ++f) {
    const std::vector<std::size_t>& variables = factors_[f].variables;
    for (std::size_t at = 0; at < variables.size(); ++at) {
      moved_[f].emplace_back(alone_[variables[at]].size(), 0);
      if (at > 0) after_others_[variables[at]].push_back({f, at});
      if (at + 1 < variables.size()) before_others_[variables[at]].push_back({f, at});
    }
  }
}

/// By value of one of its variables, what a factor costs at least, with what was moved; of values that are left.
std::vector<double> CostNetwork::least_of_factor(Place place) const {
  const Factor& factor = factors_[place.factor];
  const std::size_t count = factor.variables.size();
  std::vector<LeftClasses> left;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t v = factor.variables[i];
    left.push_back(left_classes(factor.classes[i], factor.counts[i], moved_[place.factor][i], left_[v]));
    if (left.back().classes.empty()) return std::vector<double>(alone_[factor.variables[place.at]].size(), any);
    if (i == place.at) std::fill(left[i].costs.begin(), left[i].costs.end(), 0);
  }
  std::vector<std::size_t> steps(count, 1);  // in the table
  for (std::size_t i = count - 1; i-- > 0;) steps[i] = steps[i + 1] * factor.counts[i + 1];
  std::vector<double> of_class(factor.counts[place.at], any);
  std::vector<std::size_t> at(count, 0);
  const std::size_t last = count - 1;
  do {
    std::size_t row = 0;
    double sum = 0;
    for (std::size_t i = 0; i < last; ++i) {
      row += steps[i] * left[i].classes[at[i]];
      sum += left[i].costs[at[i]];
    }
    for (std::size_t c = 0; c < left[last].classes.size(); ++c) {
      const double cost = (*factor.costs)[row + left[last].classes[c]] + sum + left[last].costs[c];
      double& known = of_class[left[place.at].classes[place.at == last ? c : at[place.at]]];
      known = std::min(known, cost);
    }
    std::size_t i = last;
    while (i > 0 && ++at[i - 1] == left[i - 1].classes.size()) at[--i] = 0;
    if (i == 0) break;
  } while (true);
  std::vector<double> found(alone_[factor.variables[place.at]].size(), any);
  for (const std::size_t value : left_[factor.variables[place.at]])
    found[value] = of_class[factor.classes[place.at][value]] + moved_[place.factor][place.at][value];
  return found;
}

double CostNetwork::at_least() const {
  double sum = 0;
  for (std::size_t v = 0; v < alone_.size(); ++v) sum += least(alone_[v], left_[v]);
  for (std::size_t f = 0; f < factors_.size(); ++f)
    sum += least(least_of_factor({f, 0}), left_[factors_[f].variables[0]]);
  return sum;
}

/// Takes all that factors with variables on the way cost for a value in any case, and hands on its share to those with
/// variables behind.
void CostNetwork::visit(std::size_t variable, const std::vector<Place>& from, const std::vector<Place>& to) {
  std::vector<double>& alone = alone_[variable];
  for (const Place& place : from) {
    const std::vector<double> costs = least_of_factor(place);
    std::vector<double>& moved = moved_[place.factor][place.at];
    for (const std::size_t value : left_[variable]) {
      alone[value] += costs[value];
      moved[value] -= costs[value];
    }
  }
  if (to.empty()) return;
  const double share = 1 / static_cast<double>(std::max(from.size(), to.size()));
  for (const std::size_t value : left_[variable]) {
    const double each = share * alone[value];
    for (const Place& place : to) moved_[place.factor][place.at][value] += each;
    alone[value] -= static_cast<double>(to.size()) * each;
  }
}

void CostNetwork::pass() {
  for (std::size_t v = 0; v < alone_.size(); ++v) visit(v, after_others_[v], before_others_[v]);
  for (std::size_t v = alone_.size(); v-- > 0;) visit(v, before_others_[v], after_others_[v]);
}

void CostNetwork::charge(std::size_t variable, const std::vector<double>& more) {
  for (std::size_t value = 0; value < more.size(); ++value) alone_[variable][value] += more[value];
}

std::vector<std::size_t> CostNetwork::likely() const {
  CostNetwork rest = *this;
  std::vector<std::size_t> values;
  for (std::size_t v = 0; v < alone_.size(); ++v) {
    std::vector<double> costs = alone_[v];
    const auto add = [&](const Place& place) {
      const std::vector<double> of_factor = rest.least_of_factor(place);
      for (const std::size_t value : left_[v]) costs[value] += of_factor[value];
    };
    for (const Place& place : after_others_[v]) add(place);
    for (const Place& place : before_others_[v]) {
      if (place.at == 0) add(place);
    }
    const auto best = std::min_element(left_[v].begin(), left_[v].end(),
                                       [&](std::size_t a, std::size_t b) { return costs[a] < costs[b]; });
    values.push_back(*best);
    rest.left_[v] = {*best};
  }
  return values;
}

std::size_t CostNetwork::leave_out(double enough) {
  std::vector<std::vector<double>> beyond(alone_.size());  // by value, above the least of what the bound is made of
  const auto add = [&](std::size_t v, const std::vector<double>& costs) {
    const double lowest = least(costs, left_[v]);
    for (const std::size_t value : left_[v]) beyond[v][value] += costs[value] - lowest;
    return lowest;
  };
  double sum = 0;
  for (std::size_t v = 0; v < alone_.size(); ++v) {
    beyond[v].assign(alone_[v].size(), 0);
    sum += add(v, alone_[v]);
  }
  for (std::size_t f = 0; f < factors_.size(); ++f) {
    double of_factor = 0;
    for (std::size_t at = 0; at < factors_[f].variables.size(); ++at)
      of_factor = add(factors_[f].variables[at], least_of_factor({f, at}));
    sum += of_factor;
  }
  std::size_t count = 0;
  for (std::size_t v = 0; v < alone_.size(); ++v)
    count += std::erase_if(left_[v], [&](std::size_t value) { return sum + beyond[v][value] >= enough; });
  return count;
}

}  // namespace einrel
