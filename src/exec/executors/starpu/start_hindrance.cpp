#include "exec/executors/starpu/start_hindrance.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace einrel {
namespace {

std::string absent(const SeenJob& seen) {
  int rank = 0;
  while (seen.ranks.count(rank) != 0) ++rank;
  if (seen.count == seen.count_here) return fmt::format("rank {} was not there", rank);
  return fmt::format("one of the {} ranks of this machine was not there", *seen.count_here);
}

}  // namespace

std::string StartHindrance::look(const SeenJob& seen, std::chrono::steady_clock::time_point now) {
  const auto stopped =
      std::find_if(seen.ranks.begin(), seen.ranks.end(), [](const auto& rank) { return rank.second.is_stopped; });
  if (stopped != seen.ranks.end()) {
    if (!lasts(fmt::format("{}", stopped->first), timeout_, seen, now)) return "";
    return fmt::format("rank {} (process {}) made no progress for {:.0f} s: it is stopped by a signal", stopped->first,
                       stopped->second.process, timeout_);
  }
  sees_others_ =
      sees_others_ || seen.sees_starter ||
      std::any_of(seen.ranks.begin(), seen.ranks.end(), [&](const auto& rank) { return rank.first != seen.own; });
  if (!seen.count_here || std::ssize(seen.ranks) >= *seen.count_here || !sees_others_) {
    what_.clear();
    return "";
  }
  constexpr double least = 10;  // it may be about to begin
  const double patience = std::max(timeout_, least);
  if (!lasts("absent", patience, seen, now)) return "";
  return fmt::format("{} for {:.0f} s: it has ended, or was given another command", absent(seen), patience);
}

/// Whether the same has lasted for so long. The lowest rank that is there says so, and others a little later if it does
/// not.
bool StartHindrance::lasts(std::string what, double patience, const SeenJob& seen,
                           std::chrono::steady_clock::time_point now) {
  if (what != what_) {
    what_ = std::move(what);
    since_ = now;
  }
  const auto lowest =
      std::find_if(seen.ranks.begin(), seen.ranks.end(), [](const auto& rank) { return !rank.second.is_stopped; });
  const bool is_lowest = lowest != seen.ranks.end() && seen.own == lowest->first;
  return now - since_ > std::chrono::duration<double>(patience / 2 + (is_lowest ? 0 : 1));
}

}  // namespace einrel
