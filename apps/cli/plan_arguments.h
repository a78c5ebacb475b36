#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "einsum/check/check.h"
#include "exec/job/job.h"
#include "run/passes.h"
#include "run/run_request.h"
#include "tensor/inflate.h"

namespace einrel::cli {

/// What a command says of how a program is to run, as given.
struct PlanArguments {
  std::optional<std::string> sites;
  std::optional<std::string> machine;
  std::optional<std::string> memory;
  std::optional<std::string> cost;
  std::optional<std::string> batch;
  std::optional<std::string> plan_file;
  std::optional<std::string> planner;
  std::optional<std::string> spill;
  std::string threads;
  bool spmd = false;
  std::vector<std::string> placements;
  std::vector<std::string> skipped_passes;
  bool shows_passes = false;
};

/// Adds --memory, --cost, --plan, --skip-pass and --show-passes.
void add_cost_options(CLI::App& command, PlanArguments& arguments);
/// Besides, --sites and --machine.
void add_machine_options(CLI::App& command, PlanArguments& arguments);
inline constexpr const char* machine_usage =
    "what to plan for: a name (default: the calibrated one, else laptop; see einrel list machines) or a file, "
    "FILE.json";
/// Adds --batch, --placement and --spmd.
void add_planner_options(CLI::App& command, PlanArguments& arguments);
/// All of them.
void add_plan_options(CLI::App& command, PlanArguments& arguments);

/// Throws UserError for a planner that there is not, of vertices or of relations.
void check_planner(const std::string& name);
/// Whether the plan of relations is to be searched for: ia-rules, not table-1, which is taken where no planner is asked
/// for. Throws UserError for other planners.
bool wants_search(const std::vector<std::string>& planners);
/// Throws UserError for what is said of plans of vertices, which relations do not have: --plan, --cost, --batch,
/// --placement, --html.
void refuse_vertex_options(const PlanArguments& arguments, const std::optional<std::string>& html);

/// Throws UserError for a number of sites or threads, a cost or a size that there is not.
RunRequest request_of(const PlanArguments& arguments, const Job& job);

/// Throws UserError for an option that is wrong, or that contradicts another, whatever is to be planned.
void check_plan_options(const PlanArguments& arguments);

/// What is said of the passes of this program. Throws UserError for one that cannot be left out.
PassOptions pass_options(const PlanArguments& arguments, const CheckedProgram& checked = {});
/// Throws UserError for what is said of passes, which programs in the algebra do not take; of --show-passes, where
/// JSON is printed.
void check_pass_options(const PlanArguments& arguments, bool is_tra, bool json);

/// Where inputs are decompressed: under a limit of memory on disk, in the folder of --spill, where chunks go that it
/// has no room for.
InflateFolder inflate_folder(const PlanArguments& arguments);

}  // namespace einrel::cli
