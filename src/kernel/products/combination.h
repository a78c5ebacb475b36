#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace einrel::contraction {

/// What is computed of each pair of operand values. All are symmetric: join(x, y) = join(y, x).
enum class Join : std::uint8_t { multiply, add, square_difference, absolute_difference, maximum, minimum };

/// What is computed of all joined values of one output element.
enum class Reduce : std::uint8_t { sum, max, min };

/// Z = reduce over the inner loops of join(A, B).
struct Combination {
  Join join = Join::multiply;
  Reduce reduce = Reduce::sum;
  bool operator==(const Combination&) const = default;
};

/// Those that have kernels. The others come apart (a sum of sums, a maximum of maxima) or mean little (the least
/// squared difference): blocks compute them.
inline constexpr std::array kernel_combinations{
    Combination{Join::multiply, Reduce::sum},
    Combination{Join::multiply, Reduce::max},
    Combination{Join::multiply, Reduce::min},
    Combination{Join::add, Reduce::max},
    Combination{Join::add, Reduce::min},
    Combination{Join::square_difference, Reduce::sum},
    Combination{Join::absolute_difference, Reduce::sum},
    Combination{Join::absolute_difference, Reduce::max},
    Combination{Join::maximum, Reduce::sum},
    Combination{Join::maximum, Reduce::min},
    Combination{Join::minimum, Reduce::sum},
    Combination{Join::minimum, Reduce::max},
};

/// Calls `use` with the join and the reduction as template arguments; false where the combination has no kernels.
template <class Use>
constexpr bool with_combination(Combination combination, Use use) {
  const auto takes = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
    constexpr Combination one = kernel_combinations[i];
    if (combination != one) return false;
    use.template operator()<one.join, one.reduce>();
    return true;
  };
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return (takes(std::integral_constant<std::size_t, i>()) || ...);
  }
  (std::make_index_sequence<kernel_combinations.size()>());
}

constexpr bool has_kernels(Combination combination) {
  return with_combination(combination, []<Join, Reduce>() {});
}

}  // namespace einrel::contraction
