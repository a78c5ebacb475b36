#include "sql/program/names.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace einrel::sql {
namespace {

std::string between(char quote, std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    throw UserError(fmt::format("'{}' has a NUL byte, which no database takes; choose another name", printable(text)));
  std::string out(1, quote);
  for (const char c : text) {
    out += c;
    if (c == quote) out += c;
  }
  return out + quote;
}

}  // namespace

std::string quoted_name(std::string_view name) { return between('"', name); }

std::string literal(std::string_view text) { return between('\'', text); }

std::string comment(std::string_view text) {
  constexpr std::size_t most = 2000;
  return "-- " + printable(text, most);
}

std::string folded(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

TableNames::TableNames(const std::vector<std::string>& taken, std::size_t most_bytes) : most_bytes_(most_bytes) {
  for (const std::string& name : taken) taken_.insert(folded(name));
}

std::string TableNames::fresh(const std::string& name) {
  constexpr std::size_t room_for_number = 10;
  std::string begin = folded(name).starts_with("sqlite_") ? "t_" + name : name;
  if (begin.size() > most_bytes_) {
    std::size_t kept = most_bytes_ - room_for_number;
    while (kept > 0 && (static_cast<unsigned char>(begin[kept]) & 0xC0U) == 0x80U) --kept;  // whole characters
    begin.resize(kept);
  }
  std::string found = begin;
  for (int n = 2; !taken_.insert(folded(found)).second; ++n) found = fmt::format("{}_{}", begin, n);
  given_.push_back(found);
  return found;
}

}  // namespace einrel::sql
