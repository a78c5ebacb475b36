#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "exec/job/job.h"
#include "plan/placed_inputs.h"
#include "plan/planners/plan_request.h"
#include "run/compile.h"

namespace einrel {

/// What --memory says: bytes, or that there is no limit.
struct MemoryLimit {
  std::optional<std::int64_t> bytes;
  bool operator==(const MemoryLimit&) const = default;
};

/// A plan in the file that explain --json wrote.
struct PlanFile {
  std::string path;
  bool operator==(const PlanFile&) const = default;
};

/// The same as text, and what messages call it.
struct PlanText {
  std::string json;
  std::string called;
  bool operator==(const PlanText&) const = default;
};

/// How a program is to run, as every front door is told it. What is left out follows from the rest, in a job also from
/// its ranks: `choose` (choose_plan.h) says how it does run.
struct RunRequest {
  std::optional<std::string> planner = {};  ///< without it eindecomp, where anything asks for a plan
  std::optional<std::int64_t> sites = {};
  std::optional<CostKind> cost = {};
  std::optional<std::string> machine = {};                     ///< a name or a file
  std::optional<MemoryLimit> memory = {};                      ///< of a rank, or of this process with all sites
  std::optional<std::string> batch = {};                       ///< PlanRequest::batch
  bool spmd = false;                                           ///< PlanRequest::spmd
  std::optional<std::variant<PlanFile, PlanText>> given = {};  ///< instead of a planner's
  /// How many steps it is planned for: inputs but `fed`, those that are new in each, stay where the first brings them
  /// (plan/staying_inputs.h), unless chunks may have to come and go.
  std::int64_t steps = 1;
  std::set<std::string> fed = {};
  GivenPlacements placements = {};        ///< inputs that lie somewhere already (plan/placed_inputs.h)
  std::optional<std::string> spill = {};  ///< folder for chunks that `memory` has no room for
  /// It is not to run, but EXPLAIN says how it would: for one site as in this process, for more as on a rank each.
  /// Tasks are made as far as they are few.
  bool explains = false;
  std::vector<std::string> compared = {};  ///< planners whose plans EXPLAIN shows beside
  std::size_t threads = 1;
  bool operator==(const RunRequest&) const = default;
};

/// Whether they plan relations, not vertices: table-1 and ia-rules.
bool plans_relations(const std::string& planner);

/// Whether anything does; else a program runs by itself: on one site, where nothing is cut.
bool asks_for_plan(const RunRequest& request, const Job& job);

/// The program as it is planned for several steps and for so many sites, of which some hold inputs already; nothing
/// where that is as it is given. `comes_and_goes`: chunks may have to. Throws UserError for a name in `fed` that is
/// none of an input, and for `placements` that cannot be; those of inputs that nothing reads say nothing.
std::optional<Compiled> planned_with_inputs(const Compiled& compiled, const RunRequest& request, std::int64_t sites,
                                            bool comes_and_goes);

/// Throws UserError for a plan that was given and has inputs lie otherwise than this program says.
void check_placements(const EinGraph& graph, const Plan& given);

/// The plan that is given, if any, which decides on the sites. Throws UserError where it is none of this program, or
/// for other sites than those asked for.
std::optional<Plan> given_plan(const RunRequest& request, const Compiled& compiled);

/// What a planner is asked for. `decided`: the number of sites where it is not the one asked for, but that of a job or
/// a plan; without both, that of the machine. A machine that somebody chose limits memory where nothing else does.
/// Throws UserError for a machine that there is not.
PlanRequest plan_request(const RunRequest& request, std::optional<std::int64_t> decided = std::nullopt);

/// The same for a run. A process on its own has no limit but the one asked for, since a machine's is that of a site; in
/// a job a rank is a site.
PlanRequest plan_request(const RunRequest& request, const Job& job, std::optional<std::int64_t> decided = std::nullopt);

}  // namespace einrel
