#include "export/python_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace einrel {
namespace {

const std::set<std::string>& python_words() {
  static const std::set<std::string> words{"False", "None",   "True",   "and",      "as",     "assert", "async",
                                           "await", "break",  "class",  "continue", "def",    "del",    "elif",
                                           "else",  "except", "for",    "from",     "global", "if",     "import",
                                           "in",    "is",     "lambda", "nonlocal", "not",    "or",     "pass",
                                           "raise", "return", "try",    "while",    "with",   "yield"};
  return words;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_separator(char c) { return c == '_' || c == '.' || c == '/'; }

}  // namespace

PythonNames::PythonNames(std::set<std::string> taken) : taken_(std::move(taken)) {}

std::string PythonNames::unused(std::string_view wanted) {
  std::string name;
  for (const char c : wanted) name += is_letter(c) || is_digit(c) ? c : '_';
  if (name.empty() || is_digit(name.front())) name.insert(0, 1, '_');
  std::string found = name;
  for (int i = 1; python_words().count(found) != 0 || !taken_.insert(found).second; ++i)
    found = i == 1 ? name + "_" : fmt::format("{}_{}", name, i);
  return found;
}

std::string without_number(const std::vector<std::string>& names) {
  const std::string& first = names.front();
  std::size_t prefix = first.size();
  std::size_t suffix = first.size();
  std::size_t least = first.size();
  for (const std::string& name : names) {
    const auto ahead = std::mismatch(first.begin(), first.end(), name.begin(), name.end()).first;
    const auto behind = std::mismatch(first.rbegin(), first.rend(), name.rbegin(), name.rend()).first;
    prefix = std::min(prefix, static_cast<std::size_t>(ahead - first.begin()));
    suffix = std::min(suffix, static_cast<std::size_t>(behind - first.rbegin()));
    least = std::min(least, name.size());
  }
  if (prefix == first.size() && least == first.size()) return first;
  suffix = std::min(suffix, least - prefix);
  while (prefix > 0 && is_digit(first[prefix - 1])) --prefix;
  while (suffix > 0 && is_digit(first[first.size() - suffix])) --suffix;
  for (const std::string& name : names) {
    const std::string number = name.substr(prefix, name.size() - prefix - suffix);
    if (number.empty() || !std::all_of(number.begin(), number.end(), is_digit)) return first;
  }
  std::string begin = first.substr(0, prefix);
  const std::string end = first.substr(first.size() - suffix);
  if (!begin.empty() && is_separator(begin.back()) && (end.empty() || is_separator(end.front()))) begin.pop_back();
  return begin.empty() && end.empty() ? first : begin + end;
}

std::string python_text(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

std::string python_tuple(const std::vector<std::string>& items) {
  return fmt::format("({}{})", fmt::join(items, ", "), items.size() == 1 ? "," : "");
}

std::string python_number(double number, std::string_view module) {
  if (std::isnan(number)) return fmt::format("{}.nan", module);
  if (std::isinf(number)) return fmt::format("{}{}.inf", number > 0 ? "" : "-", module);
  const std::string text = fmt::format("{}", number);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

}  // namespace einrel
