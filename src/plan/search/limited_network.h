#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace einrel {

/// Variables of which each takes one of some values, for least cost, where values use something of which there is a
/// limit at every time: as strategies of operators use the memory of a device while results are alive.
struct LimitedNetwork {
  /// What two variables cost together: row-major, a's values first; infinite where they do not go together.
  struct Pair {
    std::size_t a = 0;
    std::size_t b = 0;  ///< another one
    std::vector<double> costs;
  };
  /// A variable uses what its value does at times from `from` to before `until`.
  struct Life {
    std::size_t from = 0;
    std::size_t until = 0;
  };
  std::vector<std::vector<double>> alone;  ///< per variable, by value; infinite where it must not be
  std::vector<Pair> pairs;
  std::vector<Life> lives;                  ///< per variable
  std::vector<std::vector<double>> usages;  ///< per variable, by value: 0 or more
  double limit = 0;                         ///< infinite where there is none
};

/// Values of all variables that go together and stay within the limit.
struct LimitedAssignment {
  std::vector<std::size_t> values;
  double cost = 0;
};

/// What is known after some time.
struct LimitedFound {
  std::optional<LimitedAssignment> best;
  double at_least = 0;  ///< no assignment within the limit costs less
};

/// Sum of all costs; infinite where values do not go together.
double cost_of(const LimitedNetwork& network, const std::vector<std::size_t>& values);
/// The most that is used at any time.
double most_used(const LimitedNetwork& network, const std::vector<std::size_t>& values);

/// Searches as long as `goes_on` and says what it has found: `tell` is told of all that is better. The bound is that of
/// the cost network (cost_network.h), to which the limit is added with a price for each time, made by subgradient steps
/// (Held, Karp, The traveling-salesman problem and minimum spanning trees: part II, 1971); the assignments that it
/// takes for likely are brought within the limit and improved: one variable at a time, and many that make a forest, or
/// lie close together, at once, exactly, beside all others as they are (elimination.h). Takes the same steps each time.
LimitedFound least_within_limit(const LimitedNetwork& network, const std::function<bool()>& goes_on,
                                const std::function<void(const LimitedFound&)>& tell = {});

}  // namespace einrel
