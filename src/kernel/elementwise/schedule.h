#pragma once

#include <vector>

#include "kernel/elementwise/lanes.h"

namespace einrel {

/// How the loops of a nest are walked: in blocks over some of them, for every position of the others.
struct Schedule {
  enum class Kind : std::uint8_t {
    map,      ///< lanes are results; nothing is reduced
    results,  ///< lanes are results, each with its own reduction
    rows,     ///< lanes are results and, inside of them, one loop that is reduced: a block reduces whole rows
    columns,  ///< lanes are a loop that is reduced and, inside of it, a short loop of results
    fold,     ///< lanes are all that is reduced, for one result at a time
  };
  Kind kind = Kind::map;
  std::vector<Loop> lanes;          ///< the last one innermost
  std::vector<Loop> outer_results;  ///< none but for columns and fold, which finish one position of them after another
  std::vector<Loop> outer_reduced;
  std::int64_t results_together =
      1;               ///< under way at once: of several blocks where reading goes on from one to the next
  double seconds = 0;  ///< modelled, on one thread

  /// Whether the reductions of one position of outer_results are finished before the next begins.
  bool is_by_result() const { return kind == Kind::columns || kind == Kind::fold; }
};

/// The cheapest for blocks of at most so many lanes.
Schedule choose_schedule(const KernelSpec& spec, const LoopNest& nest, std::int64_t most_lanes);

}  // namespace einrel
