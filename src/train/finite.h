#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace einrel {

/// The first of some elements, one behind the other, that is infinite or not a number; integers never are. O(count).
std::optional<double> first_not_finite(DType dtype, const std::byte* elements, std::int64_t count);

/// Throws RunError, naming step and scalar, where one of `losses` is among `names` and its value is not finite: what is
/// learnt from it would not be, either.
void check_losses(const std::vector<std::string>& losses, const std::vector<std::string>& names,
                  const std::vector<double>& values, std::int64_t step);

/// What this process has of states, by name, maybe in several parts.
using StateParts = std::vector<std::pair<std::string, Tensor>>;

/// Looks whether states are still finite, those that were when training began.
class FiniteStates {
 public:
  /// O(elements), as `check`.
  explicit FiniteStates(const StateParts& first);
  /// Throws RunError, naming the state, for one that is not finite after so many steps.
  void check(const StateParts& now, std::int64_t steps_done) const;

 private:
  std::set<std::string> others_;  ///< the least number so far begins as infinity, say
};

}  // namespace einrel
