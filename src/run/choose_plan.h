#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/source.h"
#include "run/algebra_facts.h"
#include "run/compare_plans.h"
#include "run/kernels.h"
#include "run/run_request.h"
#include "run/session.h"
#include "tra/text/parse.h"

namespace einrel {

/// A program in the language, compiled, or one in the algebra.
using AnyProgram = std::variant<Compiled, ParsedTra>;

/// By a plan of a program's vertices, and what it was asked for.
struct ByPlan {
  PlanRequest request;
  PlanReport plan;
  bool is_given = false;                  ///< it stays as it is, whatever there is of memory
  std::vector<PlanReport> others = {};    ///< RunRequest::compared
  std::vector<PlanRefusal> refused = {};  ///< planners that have none
};

/// By a plan of relations.
struct ByRelations {
  AlgebraFacts facts;
  std::vector<std::int64_t> bytes;  ///< per operation of the plan, that it delivers to all sites together
};

/// On one site, where nothing is cut.
struct ByItself {};

/// How a program is going to run.
struct Chosen {
  PlannedTasks tasks;       ///< none of what is only explained where they are many
  std::size_t threads = 1;  ///< that compute: fewer than asked for if chunks are too small, or StarPU has no more
  RunMemory memory = {};
  std::int64_t most_bytes = any_bytes;  ///< that arrays take at a time, of a rank
  std::variant<ByItself, ByPlan, ByRelations> how = {};
  /// The program instead of the one that was given, where some of its tensors are computed again (recompute.h), or
  /// inputs stay for several steps or lie somewhere already (planned_with_inputs).
  std::optional<Compiled> planned = std::nullopt;

  RunResources resources() const { return {threads, memory, most_bytes}; }
  /// The program that runs, of the one that this was chosen for.
  const Compiled& program(const Compiled& given) const { return planned ? *planned : given; }
};

/// What reports say of how a program runs.
struct ChosenFigures {
  std::optional<std::string> planner;  ///< whose plan it follows; of what runs by itself none
  std::int64_t sites = 1;
  double seconds = 0;     ///< that planning took
  std::int64_t peak = 0;  ///< bytes: what a site holds at most or, by itself, a run with its inputs
};
ChosenFigures figures_of(const Chosen& chosen);

/// A program that may have states, and how its steps run.
struct StepsChosen {
  const Compiled* program;  ///< none of one in the algebra, which has no states
  const RunRequest& request;
  const Chosen& chosen;
};

/// How a program runs, within the limit that there is: in one process, where not everything fits at once, by a plan
/// that is so fine that chunks can come and go; in a job by one whose ranks hold less, or, where they may spill, work
/// on less at a time. Throws UserError for a plan that is none of this program, and where nothing fits, naming the
/// vertex, its need and the limit; `source` is what messages quote.
Chosen choose(const Compiled& compiled, const RunRequest& request, const SourceText& source, const Job& job);

/// How another program runs that takes the states of these steps, or gives them: on the same ranks, or as many sites of
/// this process, by a plan that has states where that of the steps has them, so that their bits are the same; or within
/// their limit of memory of this process; else by itself. Throws as `choose` does.
Chosen choose_beside(const StepsChosen& steps, const Compiled& compiled, const SourceText& source, const Job& job);

/// The same; the tasks of one in the algebra are cut as it says: chunks come and go where they do not fit within the
/// limit. Its outputs are tensors (run/tra_program.h), unless it is only explained.
Chosen choose(const AnyProgram& program, const RunRequest& request, const SourceText& source, const Job& job);

/// Whether tasks that run one after the other stay within so many bytes of a process.
bool fits_in_order(const PlannedTasks& tasks, std::int64_t limit, std::size_t threads);

/// Throws RunError, naming need, vertex and what is there, when a process that is in no job has less memory left than
/// forecast_memory says: all sites' chunks are in it. What spills always has. `in_place` tells of an input whether it
/// is there already (mapped from its file, say) and costs nothing more; `limit` is how the user limits memory, as in
/// "--memory SIZE".
void check_room(const Chosen& chosen, const Job& job, const LayoutBindings& layouts,
                const std::function<bool(const StoredRelation&)>& in_place, std::string_view limit);

}  // namespace einrel
