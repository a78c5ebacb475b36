#include "einsum/passes/gradient/adjoint.h"

#include <algorithm>
#include <utility>

#include "einsum/passes/gradient/arithmetic.h"

namespace einrel::gradient {

using build::Formula;

namespace {

/// What is not taken by everybody, behind the sides that are.
std::vector<Side> rest_of(const std::vector<Side>& sides, std::size_t common) {
  return {sides.begin() + static_cast<std::ptrdiff_t>(common), sides.end()};
}

/// Whether one of the two is always taken.
bool are_opposite(const std::vector<Side>& a, const std::vector<Side>& b) {
  return a.size() == 1 && b.size() == 1 && a[0].condition == b[0].condition && a[0].holds != b[0].holds;
}

}  // namespace

Formula truth(bool value) { return build::cast(DType::boolean, build::whole_number(value ? 1 : 0)); }

void GuardedAdjoint::only_on(Side side) {
  constexpr std::size_t most_sides = 16;  // so that copies stay cheap, however deep a program is nested
  sides.push_back(std::move(side));
  if (sides.size() > most_sides) sides = {{taken(sides), true}};
}

Formula only_on(const std::vector<Side>& sides, const Formula& value) {
  Formula formula = value;
  for (auto side = sides.rbegin(); side != sides.rend(); ++side) {
    if (number_of(formula) == 0) break;
    formula = side->holds ? where(side->condition, formula, build::number(0))
                          : where(side->condition, build::number(0), formula);
  }
  return formula;
}

Formula formula_of(const GuardedAdjoint& adjoint) { return only_on(adjoint.sides, adjoint.value); }

Formula taken(const std::vector<Side>& sides) {
  std::optional<Formula> all;
  for (auto side = sides.rbegin(); side != sides.rend(); ++side) {
    if (side->holds) {
      all = all ? where(side->condition, *all, truth(false)) : side->condition;
    } else {
      all = where(side->condition, truth(false), all ? *all : truth(true));
    }
  }
  return *all;
}

GuardedAdjoint together(const GuardedAdjoint& a, const GuardedAdjoint& b) {
  const auto [first, second] = std::mismatch(a.sides.begin(), a.sides.end(), b.sides.begin(), b.sides.end());
  const auto common = static_cast<std::size_t>(first - a.sides.begin());
  const std::vector<Side> of_a = rest_of(a.sides, common);
  const std::vector<Side> of_b = rest_of(b.sides, common);
  GuardedAdjoint result{sum(only_on(of_a, a.value), only_on(of_b, b.value)), {a.sides.begin(), first}};
  if (of_a.empty() || of_b.empty() || are_opposite(of_a, of_b)) return result;
  result.only_on({where(taken(of_a), truth(true), taken(of_b)), true});
  return result;
}

}  // namespace einrel::gradient
