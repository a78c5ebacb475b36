#include "train/finite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace einrel {
namespace {

constexpr const char* remedy =
    "take smaller steps, as adam(0.0001) in place of adam(0.001), or scale the samples, as X[b,f] / 255";

std::optional<double> first_not_finite(const Tensor& tensor) {
  const Tensor elements = tensor.row_major();
  return first_not_finite(elements.dtype(), elements.data(), elements.count());
}

}  // namespace

std::optional<double> first_not_finite(DType dtype, const std::byte* elements, std::int64_t count) {
  return with_stored_type(dtype, [&]<class Stored>() -> std::optional<double> {
    const auto at = [&](std::int64_t i) {
      Stored element;
      std::memcpy(&element, elements + i * static_cast<std::int64_t>(sizeof(Stored)), sizeof(Stored));
      return widen(element);
    };
    if constexpr (std::is_floating_point_v<decltype(at(0))>) {
      bool is_found = false;  // a loop without a way out is one of vectors
      for (std::int64_t i = 0; i < count; ++i) is_found |= !std::isfinite(at(i));
      for (std::int64_t i = 0; is_found && i < count; ++i) {
        if (!std::isfinite(at(i))) return at(i);
      }
    }
    return std::nullopt;
  });
}

void check_losses(const std::vector<std::string>& losses, const std::vector<std::string>& names,
                  const std::vector<double>& values, std::int64_t step) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i]) || std::find(losses.begin(), losses.end(), names[i]) == losses.end()) continue;
    throw RunError(fmt::format("at step {} the loss '{}' is {}: training has diverged\n  help: {}", step, names[i],
                               std::isnan(values[i]) ? "not a number" : "infinite", remedy));
  }
}

FiniteStates::FiniteStates(const StateParts& first) {
  for (const auto& [name, part] : first) {
    if (first_not_finite(part)) others_.insert(name);
  }
}

void FiniteStates::check(const StateParts& now, std::int64_t steps_done) const {
  for (const auto& [name, part] : now) {
    if (others_.count(name) != 0) continue;
    const std::optional<double> bad = first_not_finite(part);
    if (!bad) continue;
    throw RunError(fmt::format("after {} the state '{}' has an element that is {}: training has diverged\n  help: {}",
                               counted(static_cast<std::size_t>(steps_done), "step"), name,
                               std::isnan(*bad) ? "not a number" : "infinite", remedy));
  }
}

}  // namespace einrel
