#include "einsum/expr/random_number.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

namespace einrel {
namespace {

/// 53 bits of two words.
std::uint64_t bits_of(std::uint32_t high, std::uint32_t low) {
  return (static_cast<std::uint64_t>(high) << 32U | low) >> 11U;
}

}  // namespace

double random_number(RandomFunction function, const RandomPlace& place, bool is_single) {
  const auto low = [](std::int64_t number) { return static_cast<std::uint32_t>(static_cast<std::uint64_t>(number)); };
  const auto high = [](std::int64_t number) {
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(number) >> 32U);
  };
  const r123::Philox4x32::ctr_type counter{
      {low(place.position), high(place.position), low(place.iteration), place.stream}};
  const r123::Philox4x32::key_type key{{low(place.seed), high(place.seed)}};
  const r123::Philox4x32::ctr_type words = r123::Philox4x32()(counter, key);
  const std::uint64_t first = bits_of(words[0], words[1]);
  if (function == RandomFunction::uniform)
    return is_single ? static_cast<double>(first >> 29U) * 0x1p-24 : static_cast<double>(first) * 0x1p-53;
  const double above_zero = (static_cast<double>(first) + 0.5) * 0x1p-53;
  const double angle = 2 * std::numbers::pi * static_cast<double>(bits_of(words[2], words[3])) * 0x1p-53;
  return std::sqrt(-2 * std::log(above_zero)) * std::cos(angle);
}

std::uint32_t stream_of(std::string_view name) {
  std::uint32_t hash = 2166136261U;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace einrel
