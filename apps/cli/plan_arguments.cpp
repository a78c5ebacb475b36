#include "plan_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "arguments.h"
#include "base/error.h"
#include "base/text.h"
#include "base/unnamed_file.h"
#include "plan/planners/planner.h"
#include "plan/planners/schemes.h"

namespace einrel::cli {
namespace {

CostKind parse_cost(const std::string& given) {
  std::vector<std::string> names;
  for (const CostKind kind : all_cost_kinds) {
    if (name_of(kind) == given) return kind;
    names.emplace_back(name_of(kind));
  }
  throw UserError(fmt::format("--cost {}: the costs are {}", printable(given), fmt::join(names, ", ")));
}

}  // namespace

bool wants_search(const std::vector<std::string>& planners) {
  if (planners.empty()) return false;
  if (planners.size() > 1 || !plans_relations(planners.front())) {
    throw UserError(fmt::format("the planners of relations are table-1 and ia-rules, one at a time; not {}",
                                printable(fmt::format("{}", fmt::join(planners, ", ")))));
  }
  return planners.front() == "ia-rules";
}

void refuse_vertex_options(const PlanArguments& arguments, const std::optional<std::string>& html) {
  const std::array<std::pair<const char*, bool>, 6> given{{{"--html", html.has_value()},
                                                           {"--placement", !arguments.placements.empty()},
                                                           {"--spmd", arguments.spmd},
                                                           {"--plan", arguments.plan_file.has_value()},
                                                           {"--cost", arguments.cost.has_value()},
                                                           {"--batch", arguments.batch.has_value()}}};
  for (const auto& [option, is_given] : given) {
    if (is_given)
      throw UserError(fmt::format("{} is for plans of a .ein program's vertices: see einrel list planners", option));
  }
}

void check_planner(const std::string& name) {
  if (name == "formats")
    throw UserError("formats plans for a database, where there are no sites: einrel sql PROGRAM.ein --explain");
  if (plans_relations(name)) return;
  if (is_product_of_schemes(name)) {  // of which there are none of relations
    planner_named(name);
    return;
  }
  try {
    planner_named(name);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}, and of relations table-1 and ia-rules", error.what()));
  }
}

void add_cost_options(CLI::App& command, PlanArguments& arguments) {
  command.add_option("--cost", arguments.cost, "what eindecomp makes least: seconds (default), bytes, floats or bound");
  command
      .add_option(
          "--memory", arguments.memory,
          "SIZE: the most that a site may hold, as in 16GB (10^9 bytes each) or 512MiB (2^20), or none (default: what "
          "--machine has)")
      ->allow_extra_args(false);
  command.add_option("--plan", arguments.plan_file, "FILE: a plan that explain --json wrote")->allow_extra_args(false);
  command
      .add_option("--skip-pass", arguments.skipped_passes,
                  "NAME: leave out a pass that a program is right without; several times (see einrel list passes)")
      ->allow_extra_args(false);
  command.add_flag("--show-passes", arguments.shows_passes,
                   "show what each pass made of the program, and how long that took");
}

void add_machine_options(CLI::App& command, PlanArguments& arguments) {
  add_cost_options(command, arguments);
  command.add_option("--sites", arguments.sites, "the number of sites to plan for (default: of the machine, else 1)");
  command.add_option("--machine", arguments.machine, machine_usage)->allow_extra_args(false);
}

PassOptions pass_options(const PlanArguments& arguments, const CheckedProgram& checked) {
  return {skipped_passes(arguments.skipped_passes), arguments.shows_passes, checked.passes};
}

void check_pass_options(const PlanArguments& arguments, bool is_tra, bool json) {
  pass_options(arguments);
  if (is_tra && (arguments.shows_passes || !arguments.skipped_passes.empty()))
    throw UserError("--show-passes and --skip-pass are for .ein programs: one in the algebra runs as it is written");
  if (arguments.shows_passes && json) throw UserError("--show-passes prints text; leave out --json");
}

void add_planner_options(CLI::App& command, PlanArguments& arguments) {
  command.add_option("--batch", arguments.batch, "LABEL: what planner data cuts")->allow_extra_args(false);
  command
      .add_option(
          "--placement", arguments.placements,
          "NAME=LABEL:SITES,...: where an input lies already, along labels or dimensions, as in X=b:4,f:2; with "
          "copies:2 twice; X=whole on site 0; several times")
      ->allow_extra_args(false);
  command.add_flag("--spmd", arguments.spmd, "only plans that one program over a mesh of all sites says, as in JAX");
}

void add_plan_options(CLI::App& command, PlanArguments& arguments) {
  add_machine_options(command, arguments);
  add_planner_options(command, arguments);
}

RunRequest request_of(const PlanArguments& arguments, const Job& job) {
  RunRequest request;
  request.planner = arguments.planner;
  if (arguments.sites) request.sites = parse_sites(*arguments.sites);
  if (arguments.cost) request.cost = parse_cost(*arguments.cost);
  request.machine = arguments.machine;
  if (arguments.memory) request.memory = MemoryLimit{parse_memory(*arguments.memory)};
  request.batch = arguments.batch;
  request.placements = parse_placements(arguments.placements);
  request.spmd = arguments.spmd;
  if (arguments.plan_file) request.given = PlanFile{*arguments.plan_file};
  request.spill = arguments.spill;
  request.threads = threads_of(arguments.threads, job);
  return request;
}

void check_plan_options(const PlanArguments& arguments) {
  const RunRequest request = request_of(arguments, {});
  plan_request(request);
  if (request.planner) check_planner(*request.planner);
  if (request.given && (request.planner || request.cost || request.batch || request.spmd)) {
    throw UserError("--planner, --cost, --batch and --spmd choose a plan, and --plan brings one; leave them out");
  }
  if (request.spill && !inflate_folder(arguments)) {
    throw UserError(
        fmt::format("--spill needs --memory SIZE: without a limit nothing goes to disk, and compressed files are "
                    "decompressed into memory\n  help: add --memory, how much may stay there, or leave out --spill {}",
                    printable(*request.spill)));
  }
  if (request.spill) const UnnamedFile can_be_made(*request.spill);
}

InflateFolder inflate_folder(const PlanArguments& arguments) {
  if (!arguments.memory || !parse_memory(*arguments.memory)) return std::nullopt;
  return arguments.spill.value_or(temporary_folder());
}

}  // namespace einrel::cli
