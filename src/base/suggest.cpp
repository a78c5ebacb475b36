#include "base/suggest.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace einrel {
namespace {

/// Names longer than this are not compared: the cost is quadratic and nobody misspells them slightly.
constexpr std::size_t max_length = 64;

/// The wrong case is no mistake worth a point.
bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

/// Optimal string alignment distance.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return cost[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = at(i - 1, j - 1) + (same_letter(a[i - 1], b[j - 1]) ? 0U : 1U);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replace});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

}  // namespace

std::string nearest_name(std::string_view wrong, const std::vector<std::string>& known) {
  if (wrong.size() > max_length) return "";
  const std::size_t limit = std::max<std::size_t>(1, wrong.size() / 3);
  std::string best;
  std::size_t best_distance = limit + 1;
  for (const std::string& name : known) {
    const std::size_t longer = std::max(name.size(), wrong.size());
    const std::size_t shorter = std::min(name.size(), wrong.size());
    if (longer - shorter >= best_distance || name.size() > max_length) continue;
    const std::size_t distance = edit_distance(wrong, name);
    // A distance as long as the word itself would "correct" x to any other one-letter name.
    if (distance < best_distance && distance < longer) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view wrong, const std::vector<std::string>& known) {
  const std::string near = nearest_name(wrong, known);
  return near.empty() ? "" : "did you mean '" + printable(near) + "'?";
}

}  // namespace einrel
