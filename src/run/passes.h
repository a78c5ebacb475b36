#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "einsum/graph/pass_record.h"

namespace einrel {

struct Compiled;

/// What changes how a program is computed, but not what it computes.
struct Pass {
  std::string_view name;
  std::string_view summary;
  bool is_optional = false;  ///< a program is right without it
  /// The graph as the pass makes it, of those that `compile` runs. Others run where more is known: gradient and
  /// minimize while a program is checked, since later statements read what they make, recompute and fusion when it is
  /// known how the program runs.
  EinGraph (*run)(const EinGraph& graph, Compiled& compiled) = nullptr;
};

/// All there are, in the order in which they run.
const std::vector<Pass>& all_passes();

inline constexpr std::string_view recompute_pass = "recompute";
inline constexpr std::string_view fusion_pass = "fusion";

/// Optional passes that are left out, by name.
using SkippedPasses = std::set<std::string, std::less<>>;

/// Throws UserError for a name that no pass has, and for a pass that must run, with those that may be left out.
SkippedPasses skipped_passes(const std::vector<std::string>& names);

/// What is said of the passes of one program.
struct PassOptions {
  SkippedPasses skipped = {};
  bool are_told = false;                  ///< PassRecord::changes are wanted
  std::vector<PassRecord> checking = {};  ///< CheckedProgram::passes, to begin Compiled::passes with
};

/// What a pass made of a graph, a line for each vertex that is new ("+"), other than before ("~") or gone ("-"), and
/// none where nothing changed. O(size of both).
std::vector<std::string> changes_between(const EinGraph& before, const EinGraph& after);

}  // namespace einrel
