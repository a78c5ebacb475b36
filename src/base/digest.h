#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace einrel {

/// 64 bits of what was added, one after the other: the same for the same, and almost surely others for anything else.
/// No secret keeps those who look for it from finding two things with the same bits. About 10 GB a second.
class Digest {
 public:
  /// All of these as one: their number counts, too.
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(std::int64_t number);

  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

/// That of one text.
std::uint64_t digest_of(std::string_view text);

}  // namespace einrel
