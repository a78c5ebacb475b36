#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace einrel {

/// The same bytes in the opposite order.
template <class Number>
Number byte_swapped(Number value) {
  auto bytes = std::bit_cast<std::array<std::byte, sizeof(Number)>>(value);
  std::reverse(bytes.begin(), bytes.end());
  return std::bit_cast<Number>(bytes);
}

/// The number stored at `from` (aligned or not) in the given byte order.
template <class Number>
Number load_number(const std::byte* from, std::endian order) {
  Number value;
  std::memcpy(&value, from, sizeof(Number));
  return order == std::endian::native ? value : byte_swapped(value);
}

/// Appends the number's bytes in the given order.
template <class Number>
void append_number(std::string& to, Number value, std::endian order) {
  if (order != std::endian::native) value = byte_swapped(value);
  const auto bytes = std::bit_cast<std::array<char, sizeof(Number)>>(value);
  to.append(bytes.data(), bytes.size());
}

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> as_byte_span(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace einrel
