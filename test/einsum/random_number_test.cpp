#include "einsum/expr/random_number.h"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace einrel {
namespace {

/// Words of Philox 4x32-10, as this program is compiled.
std::array<std::uint32_t, 4> words(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  const r123::Philox4x32::ctr_type made =
      r123::Philox4x32()({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
  return {made[0], made[1], made[2], made[3]};
}

// The vectors that Random123 publishes (kat_vectors).
TEST(RandomNumber, IsOfPhiloxAsPublished) {
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(words({0, 0, 0, 0}, {0, 0}),
            (std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(words({ones, ones, ones, ones}, {ones, ones}),
            (std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(words({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<std::uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomNumber, IsMadeOfTheWordsAtItsPlace) {
  // Counter 0, key 0: 0x6627e8d5 e169c58d | bc57ac4c 9b00dbd8.
  const RandomPlace first{0, 0, 0, 0};
  EXPECT_EQ(random_number(RandomFunction::uniform, first, false),
            static_cast<double>(0x6627e8d5e169c58dULL >> 11U) * std::pow(2.0, -53));
  EXPECT_EQ(random_number(RandomFunction::uniform, first, true), static_cast<double>(0x6627e8U) * std::pow(2.0, -24));
  const double u = (static_cast<double>(0x6627e8d5e169c58dULL >> 11U) + 0.5) * std::pow(2.0, -53);
  const double v = static_cast<double>(0xbc57ac4c9b00dbd8ULL >> 11U) * std::pow(2.0, -53);
  EXPECT_NEAR(random_number(RandomFunction::normal, first, false), std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v),
              1e-15);
  // Position low and high, iteration, stream are the counter's words; the seed is the key.
  const RandomPlace other{0x299f31d0a4093822, static_cast<std::int64_t>(0x85a308d3243f6a88ULL), 0x13198a2e, 0x03707344};
  EXPECT_EQ(random_number(RandomFunction::uniform, other, true), static_cast<double>(0xd16cfeU) * std::pow(2.0, -24));
}

TEST(RandomNumber, IsAnotherAtEachPlace) {
  std::set<double> seen;
  for (const std::int64_t seed : {0, 1, -1}) {
    for (const std::int64_t position : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1} << 40}) {
      for (const std::int64_t iteration : {0, 1}) {
        for (const std::string_view name : {"W", "V"})
          seen.insert(random_number(RandomFunction::uniform, {seed, position, iteration, stream_of(name)}, false));
      }
    }
  }
  EXPECT_EQ(seen.size(), 36);
}

/// Mean, deviation, and the share below x.
TEST(RandomNumber, HasItsDistribution) {
  constexpr int count = 200000;
  for (const RandomFunction function : {RandomFunction::uniform, RandomFunction::normal}) {
    double sum = 0;
    double squares = 0;
    int low = 0;
    for (int i = 0; i < count; ++i) {
      const double number = random_number(function, {7, i, 0, 1}, false);
      sum += number;
      squares += number * number;
      low += number < 0.25 ? 1 : 0;
    }
    const bool is_uniform = function == RandomFunction::uniform;
    const double mean = is_uniform ? 0.5 : 0;
    const double variance = is_uniform ? 1.0 / 12 : 1;
    const double below = is_uniform ? 0.25 : 0.5 * std::erfc(-0.25 / std::sqrt(2.0));
    // Five deviations of what so many numbers give.
    EXPECT_NEAR(sum / count, mean, 5 * std::sqrt(variance / count));
    EXPECT_NEAR(squares / count - mean * mean, variance, 5 * 1.5 * variance / std::sqrt(count) + 5e-3);
    EXPECT_NEAR(static_cast<double>(low) / count, below, 5 * 0.5 / std::sqrt(count));
  }
}

TEST(RandomNumber, HasStreamsByName) {
  EXPECT_EQ(stream_of(""), 2166136261U);  // FNV-1a as published
  EXPECT_EQ(stream_of("a"), 0xe40c292cU);
  EXPECT_EQ(stream_of("foobar"), 0xbf9cf968U);
}

}  // namespace
}  // namespace einrel
