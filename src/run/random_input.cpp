#include "run/random_input.h"

#include "tensor/convert.h"
#include "tensor/rows.h"

namespace einrel {
namespace {

/// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection that spreads every bit over the word.
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

/// FNV-1a.
std::uint64_t hash_name(const std::string& name) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  return hash;
}

template <class Stored>
Stored from_bits(std::uint64_t bits) {
  if constexpr (std::is_same_v<Stored, Bool8>) {
    return {static_cast<std::uint8_t>(bits >> 63U)};
  } else if constexpr (std::is_integral_v<Stored>) {
    return static_cast<Stored>(static_cast<std::int64_t>((bits >> 32U) % 17) - 8);
  } else {
    // An odd multiple of 2^-24: never 0 or +-1, and exact in f32.
    const auto odd = static_cast<double>(2 * (bits >> 40U) + 1);
    return narrow<Stored>(odd * 0x1p-24 - 1.0);
  }
}

}  // namespace

void fill_random(std::uint64_t seed, const std::string& name, DType dtype, const Shape& shape,
                 const std::vector<std::int64_t>& begin, const Shape& bound, std::byte* to) {
  const std::uint64_t stream = mix(mix(seed + 0x9E3779B97F4A7C15ULL) ^ hash_name(name));
  const Strides strides = row_major_strides(shape);
  const std::int64_t first = offset_of(begin, strides);
  with_stored_type(dtype, [&]<class Stored>() {
    for_each_row(bound, strides, [&](std::int64_t offset, std::int64_t count, std::int64_t stride) {
      for (std::int64_t i = 0; i < count; ++i, to += sizeof(Stored)) {
        const auto position = static_cast<std::uint64_t>(first + offset + i * stride);
        const auto value = from_bits<Stored>(mix(stream + position * 0x9E3779B97F4A7C15ULL));
        std::memcpy(to, &value, sizeof(Stored));
      }
    });
  });
}

Tensor random_tensor(std::uint64_t seed, const std::string& name, DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  fill_random(seed, name, dtype, shape, std::vector<std::int64_t>(shape.size(), 0), shape, tensor.mutable_data());
  return tensor;
}

}  // namespace einrel
