#include "base/digest.h"

#include <array>
#include <bit>
#include <cstring>

namespace einrel {
namespace {

// Odd numbers without a pattern in their bits: those of xxHash.
constexpr std::uint64_t first_factor = 0x9E3779B185EBCA87ULL;
constexpr std::uint64_t second_factor = 0xC2B2AE3D27D4EB4FULL;

/// Every bit of both decides about half of the bits of the result.
std::uint64_t mixed(std::uint64_t value, std::uint64_t word) {
  constexpr int half = 31;
  return std::rotl(value + word * second_factor, half) * first_factor;
}

/// Several words at a time: what becomes of one does not wait for the others.
using Words = std::array<std::uint64_t, 4>;

void add_words(const std::byte* from, std::size_t bytes, Words& lanes) {
  Words words{};
  std::memcpy(words.data(), from, bytes);
  for (std::size_t i = 0; i < lanes.size(); ++i) lanes[i] = mixed(lanes[i], words[i]);
}

}  // namespace

void Digest::add(std::span<const std::byte> bytes) {
  Words lanes{value_, value_ ^ first_factor, value_ ^ second_factor, ~value_};
  std::size_t at = 0;
  for (; bytes.size() - at >= sizeof(Words); at += sizeof(Words)) add_words(bytes.data() + at, sizeof(Words), lanes);
  if (at < bytes.size()) add_words(bytes.data() + at, bytes.size() - at, lanes);
  std::uint64_t value = mixed(value_, bytes.size());
  constexpr unsigned upper = 29;
  for (const std::uint64_t lane : lanes) value = mixed(value, lane ^ (lane >> upper));
  value_ = value ^ (value >> upper);
}

void Digest::add(std::int64_t number) { add(std::as_bytes(std::span(&number, 1))); }

std::uint64_t digest_of(std::string_view text) {
  Digest digest;
  digest.add(text);
  return digest.value();
}

}  // namespace einrel
