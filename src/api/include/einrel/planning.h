/// @file
/// What plans are made by, and for.
#pragma once

#include <einrel/ranks.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace einrel::api {

/// A way to plan, for RunOptions::planner and ExplainOptions::planners.
struct PlannerInfo {
  std::string name;     ///< by which it is asked for
  std::string summary;  ///< one line
};

/// All of them, the default one first.
std::vector<PlannerInfo> planners();

/// Measures this machine in a few seconds and keeps the figures in the user's folder for settings, as `einrel
/// calibrate` does: plans for which no machine is named are made for it from then on. With several `ranks` all of them
/// have to call it, and it measures what lies between them, too. On so many threads, or all. Returns what was measured,
/// for people to read. Throws UserError when there is no such folder or the file in it is damaged, RunError when it
/// cannot be written.
std::string calibrate(std::optional<std::size_t> threads = {}, const std::optional<Ranks>& ranks = {});

}  // namespace einrel::api
