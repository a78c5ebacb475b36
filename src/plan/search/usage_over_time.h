#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "plan/search/limited_network.h"

namespace einrel {

/// Times from `first` to `last`, both included.
struct TimeRange {
  std::size_t first = 0;
  std::size_t last = 0;
};

/// The times at which most can be used: of all that are followed by others at which the same variables are alive, and
/// more, none.
class TimesThatCount {
 public:
  explicit TimesThatCount(const std::vector<LimitedNetwork::Life>& lives) {
    std::map<std::size_t, bool>
        ends_after;  // by time at which something begins, whether something ends before the next
    for (const LimitedNetwork::Life& life : lives) {
      if (life.from < life.until) ends_after[life.from] = false;
    }
    for (const LimitedNetwork::Life& life : lives) {
      if (life.from < life.until) std::prev(ends_after.upper_bound(life.until - 1))->second |= true;
    }
    std::map<std::size_t, std::size_t> numbers;  // by time
    for (const auto& [time, ends] : ends_after) {
      if (ends) numbers.emplace(time, numbers.size());
    }
    count_ = numbers.size();
    for (const LimitedNetwork::Life& life : lives) {
      if (life.from >= life.until) {
        ranges_.emplace_back();
        continue;
      }
      const std::size_t first = numbers.lower_bound(life.from)->second;
      const std::size_t last = std::prev(numbers.upper_bound(life.until - 1))->second;
      ranges_.emplace_back(TimeRange{first, last});
    }
  }

  std::size_t count() const { return count_; }
  /// When a variable is alive; nothing where it never is.
  const std::optional<TimeRange>& of(std::size_t variable) const { return ranges_[variable]; }

 private:
  std::size_t count_ = 0;
  std::vector<std::optional<TimeRange>> ranges_;
};

/// A number for each time: a range of them grows, and the largest of a range is found, in O(log(times)).
class UsageOverTime {
 public:
  explicit UsageOverTime(std::size_t times) : times_(times) {
    while (leaves_ < times) leaves_ *= 2;
    added_.assign(2 * leaves_, 0);
    most_.assign(2 * leaves_, 0);
  }

  void add(const TimeRange& range, double more) { add(1, 0, leaves_ - 1, range, more); }
  double most(const TimeRange& range) const { return most(1, 0, leaves_ - 1, range); }
  /// Of all times; 0 where there are none.
  double most() const { return times_ == 0 ? 0 : most({0, times_ - 1}); }
  double at(std::size_t time) const {
    double sum = 0;
    for (std::size_t node = leaves_ + time; node > 0; node /= 2) sum += added_[node];
    return sum;
  }
  /// A time at which most is used; there has to be one.
  std::size_t when_most() const {
    std::size_t best = 0;
    for (std::size_t node = 1; node < leaves_;) {
      node *= 2;
      const bool is_right = most_[node + 1] > most_[node] && leftmost(node + 1) < times_;
      if (is_right) ++node;
      best = node;
    }
    return leaves_ == 1 ? 0 : best - leaves_;
  }

 private:
  // NOLINTBEGIN(misc-no-recursion): over a tree as deep as the logarithm of the times
  std::size_t leftmost(std::size_t node) const {
    while (node < leaves_) node *= 2;
    return node - leaves_;
  }

  void add(std::size_t node, std::size_t low, std::size_t high, const TimeRange& range, double more) {
    if (range.last < low || high < range.first) return;
    if (range.first <= low && high <= range.last) {
      added_[node] += more;
      most_[node] += more;
      return;
    }
    const std::size_t middle = (low + high) / 2;
    add(2 * node, low, middle, range, more);
    add(2 * node + 1, middle + 1, high, range, more);
    most_[node] = added_[node] + std::max(most_[2 * node], most_[2 * node + 1]);
  }

  double most(std::size_t node, std::size_t low, std::size_t high, const TimeRange& range) const {
    if (range.first <= low && high <= range.last) return most_[node];
    const std::size_t middle = (low + high) / 2;
    if (range.last <= middle) return added_[node] + most(2 * node, low, middle, range);
    if (range.first > middle) return added_[node] + most(2 * node + 1, middle + 1, high, range);
    return added_[node] + std::max(most(2 * node, low, middle, range), most(2 * node + 1, middle + 1, high, range));
  }
  // NOLINTEND(misc-no-recursion)

  std::size_t times_;
  std::size_t leaves_ = 1;
  std::vector<double> added_;  ///< per node of a tree: to all below it
  std::vector<double> most_;   ///< below it, with what was added to it
};

}  // namespace einrel
