#pragma once

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace einrel {

/// Names of one Python function: each that is asked for is an identifier, no word of the language, and new.
class PythonNames {
 public:
  /// None of these is given.
  explicit PythonNames(std::set<std::string> taken);
  /// `wanted` where that can be, else with `_`, `_2`, ... behind it; other characters become `_`.
  std::string unused(std::string_view wanted);

 private:
  std::set<std::string> taken_;
};

/// What names have in common that differ by one number: "W" of "W_1" and "W_12"; else the first.
std::string without_number(const std::vector<std::string>& names);

/// 'X', "it's": as Python writes the text.
std::string python_text(std::string_view text);
/// "()", "(3,)", "(3, 4)"
std::string python_tuple(const std::vector<std::string>& items);
/// "(3, 4)" of numbers.
template <class Number>
std::string numbers_tuple(const std::vector<Number>& numbers) {
  std::vector<std::string> items;
  for (const Number number : numbers) items.push_back(fmt::format("{}", number));
  return python_tuple(items);
}
/// As Python writes it; infinities and NaN as a module has them: "jnp.inf".
std::string python_number(double number, std::string_view module);

}  // namespace einrel
