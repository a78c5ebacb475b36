#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace einrel {
namespace {

/// The first and the last of code points that are not shown as they are.
struct Unprintable {
  std::uint32_t first;
  std::uint32_t last;
};
constexpr std::array unprintable{
    Unprintable{0x00, 0x1F},        // controls, the ends of lines among them
    Unprintable{0x7F, 0x9F},        // DEL, and the controls of ISO 6429 as single characters
    Unprintable{0xAD, 0xAD},        // a hyphen that is not seen
    Unprintable{0x061C, 0x061C},    // a mark of direction
    Unprintable{0x180E, 0x180E},    // a separator without width
    Unprintable{0x200B, 0x200F},    // without width; marks of direction
    Unprintable{0x2028, 0x202E},    // ends of lines and paragraphs; embeddings and overrides of direction
    Unprintable{0x2060, 0x206F},    // joiners, operators that are not seen, isolates
    Unprintable{0xFEFF, 0xFEFF},    // the mark of byte order
    Unprintable{0xFFF9, 0xFFFB},    // annotations
    Unprintable{0xE0000, 0xE007F},  // tags
};

/// Of one well-formed character.
std::uint32_t code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(character[i])); };
  if (character.size() == 1) return byte(0);
  std::uint32_t code = byte(0) & (0x7FU >> character.size());
  for (std::size_t i = 1; i < character.size(); ++i) code = (code << 6U) | (byte(i) & 0x3FU);
  return code;
}

void append_printable(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const std::string_view character = bytes.substr(0, std::max<std::size_t>(utf8_length(bytes), 1));
    if (is_printable(character)) {
      out += character;
    } else {
      for (const char byte : character) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
    bytes.remove_prefix(character.size());
  }
}

/// Three digits and a unit, each a thousand of the one before.
std::string in_units(double value, std::initializer_list<const char*> units) {
  const char* const* unit = units.begin();
  for (; value >= 999.5 && unit + 1 != units.end(); ++unit) value /= 1000;
  return fmt::format("{:.3g} {}", value, *unit);
}

}  // namespace

std::size_t utf8_length(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned>(static_cast<unsigned char>(bytes[i])); };
  const unsigned lead = byte(0);
  if (lead < 0x80U) return 1;
  const std::size_t length = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : 2;
  if (lead < 0xC2U || lead > 0xF4U || bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  const bool overlong = (lead == 0xE0U && byte(1) < 0xA0U) || (lead == 0xF0U && byte(1) < 0x90U);
  const bool surrogate = lead == 0xEDU && byte(1) > 0x9FU;
  const bool beyond = lead == 0xF4U && byte(1) > 0x8FU;
  return overlong || surrogate || beyond ? 0 : length;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = utf8_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

bool is_printable(std::string_view character) {
  if (utf8_length(character) != character.size()) return false;
  const std::uint32_t code = code_point(character);
  return std::none_of(unprintable.begin(), unprintable.end(),
                      [&](const Unprintable& range) { return range.first <= code && code <= range.last; });
}

std::string printable(std::string_view name, std::size_t most) {
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80U; };
  std::string out;
  if (name.size() <= most) {
    append_printable(out, name);
    return out;
  }
  // No character is cut in two. Where the bytes are no UTF-8, each is escaped by itself.
  constexpr std::size_t longest = 4;
  std::size_t begin = (most + 1) / 2;
  std::size_t end = name.size() - most / 2;
  for (std::size_t i = 1; i < longest && begin < end && continues(begin); ++i) ++begin;
  for (std::size_t i = 1; i < longest && begin < end && end < name.size() && continues(end); ++i) --end;
  append_printable(out, name.substr(0, begin));
  if (begin < end) out += "…";
  append_printable(out, name.substr(end));
  return out;
}

std::string bytes_text(double bytes) {
  if (bytes < 999.5) return fmt::format("{:.0f} B", bytes);
  return in_units(bytes, {"B", "kB", "MB", "GB", "TB", "PB", "EB"});
}

std::string bytes_text(std::int64_t bytes) { return bytes_text(static_cast<double>(bytes)); }

std::pair<std::string, std::string> bytes_texts(std::int64_t one, std::int64_t other) {
  std::pair texts{bytes_text(one), bytes_text(other)};
  if (one == other || texts.first != texts.second) return texts;
  return {fmt::format("{} B", one), fmt::format("{} B", other)};
}

std::string seconds_text(double seconds) { return in_units(seconds * 1e9, {"ns", "us", "ms", "s"}); }

std::string flops_text(double flops) {
  return in_units(flops, {"flop", "kflop", "Mflop", "Gflop", "Tflop", "Pflop", "Eflop"});
}

std::string floats_text(double floats) {
  return floats < 1e6 ? fmt::format("{:.0f} floats", floats) : fmt::format("{:.3g} floats", floats);
}

std::string counted(std::size_t count, std::string_view singular, std::string_view plural) {
  if (count == 1) return fmt::format("1 {}", singular);
  return plural.empty() ? fmt::format("{} {}s", count, singular) : fmt::format("{} {}", count, plural);
}

}  // namespace einrel
