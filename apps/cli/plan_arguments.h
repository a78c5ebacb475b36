#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/choose_plan.h"
#include "engine/compile.h"
#include "exec/starpu/job.h"
#include "plan/planner.h"

namespace einrel::cli {

/// What a command says of plans, as given.
struct PlanArguments {
  std::optional<std::string> sites;
  std::optional<std::string> machine;
  std::optional<std::string> memory;
  std::optional<std::string> cost;
  std::optional<std::string> batch;
  std::optional<std::string> plan_file;

  bool any() const { return sites || machine || memory || cost || batch || plan_file; }
};

/// Adds --sites, --machine, --memory, --cost and --plan.
void add_machine_options(CLI::App& command, PlanArguments& arguments);
/// Besides, --batch.
void add_plan_options(CLI::App& command, PlanArguments& arguments);

/// table-1 and ia-rules plan relations, not vertices.
bool plans_relations(const std::string& planner);

/// Throws UserError for a planner that there is not, of vertices or of relations.
void check_planner(const std::string& name);
/// Whether the plan of relations is to be searched for: ia-rules, not table-1, which is taken where no planner is asked
/// for. Throws UserError for other planners.
bool wants_search(const std::vector<std::string>& planners);
/// Throws UserError for what is said of plans of vertices, which relations do not have: --plan, --cost, --batch,
/// --html.
void refuse_vertex_options(const PlanArguments& arguments, const std::optional<std::string>& html);

/// The number of sites asked for: without --sites, those of the machine, 1 without that.
std::int64_t sites_of(const PlanArguments& arguments);

/// The SIZE of --memory; nothing without it, and where there is to be no limit. Throws UserError for what is no size.
std::optional<std::int64_t> limit_of(const PlanArguments& arguments);

/// `decided`: the number of sites where it is not the one asked for, but that of a job or a plan. Throws UserError for
/// a machine, a cost or a size that there is not.
PlanRequest request_of(const PlanArguments& arguments, std::optional<std::int64_t> decided = std::nullopt);

/// Throws UserError for an option that is wrong, or that contradicts another, whatever is to be planned.
void check_plan_options(const PlanArguments& arguments, const std::optional<std::string>& planner,
                        const std::optional<std::string>& spill);

/// The plan of --plan, which decides on the sites. Throws UserError where --sites says something else.
std::optional<Plan> plan_from_file(const PlanArguments& arguments, const Compiled& compiled);

/// The limit of a run: without --memory a process on its own has none, since what --machine has is a site's.
std::optional<std::int64_t> limit_of(const PlanArguments& arguments, const PlanRequest& request, const Job& job);

/// What a run of this program by a plan asks for, on the ranks of a job or in this process; without threads and
/// --spill. Throws UserError as the two above.
RunRequest run_request(const PlanArguments& arguments, const std::optional<std::string>& planner,
                       const Compiled& compiled, const Job& job);

}  // namespace einrel::cli
