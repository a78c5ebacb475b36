#include "plan_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#include "arguments.h"
#include "base/error.h"
#include "base/text.h"
#include "base/unnamed_file.h"
#include "engine/plan_file.h"
#include "machine/machines.h"
#include "plan/default_planner.h"
#include "plan/planners/schemes.h"

namespace einrel::cli {
namespace {

Machine machine_of(const PlanArguments& arguments, std::optional<std::int64_t> sites) {
  return arguments.machine ? einrel::machine_of(*arguments.machine, sites) : default_machine(sites);
}

CostKind parse_cost(const std::string& given) {
  std::vector<std::string> names;
  for (const CostKind kind : all_cost_kinds) {
    if (name_of(kind) == given) return kind;
    names.emplace_back(name_of(kind));
  }
  throw UserError(fmt::format("--cost {}: the costs are {}", printable(given), fmt::join(names, ", ")));
}

}  // namespace

bool plans_relations(const std::string& planner) { return planner == "table-1" || planner == "ia-rules"; }

bool wants_search(const std::vector<std::string>& planners) {
  if (planners.empty()) return false;
  if (planners.size() > 1 || !plans_relations(planners.front())) {
    throw UserError(fmt::format("the planners of relations are table-1 and ia-rules, one at a time; not {}",
                                printable(fmt::format("{}", fmt::join(planners, ", ")))));
  }
  return planners.front() == "ia-rules";
}

void refuse_vertex_options(const PlanArguments& arguments, const std::optional<std::string>& html) {
  const std::array<std::pair<const char*, bool>, 4> given{{{"--html", html.has_value()},
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

void add_machine_options(CLI::App& command, PlanArguments& arguments) {
  command.add_option("--sites", arguments.sites, "the number of sites to plan for (default: of the machine, else 1)");
  command.add_option("--cost", arguments.cost, "what eindecomp makes least: seconds (default), bytes, floats or bound");
  command
      .add_option("--machine", arguments.machine,
                  "what to plan for: a name (default: the calibrated one, else laptop; see einrel list machines) or a "
                  "file, FILE.json")
      ->allow_extra_args(false);
  command
      .add_option(
          "--memory", arguments.memory,
          "SIZE: the most that a site may hold, as in 16GB (10^9 bytes each) or 512MiB (2^20), or none (default: what "
          "--machine has)")
      ->allow_extra_args(false);
  command.add_option("--plan", arguments.plan_file, "FILE: a plan that explain --json wrote")->allow_extra_args(false);
}

void add_plan_options(CLI::App& command, PlanArguments& arguments) {
  add_machine_options(command, arguments);
  command.add_option("--batch", arguments.batch, "LABEL: what planner data cuts")->allow_extra_args(false);
}

std::int64_t sites_of(const PlanArguments& arguments) {
  return arguments.sites ? parse_sites(*arguments.sites) : machine_of(arguments, std::nullopt).sites;
}

std::optional<std::int64_t> limit_of(const PlanArguments& arguments) {
  return arguments.memory ? parse_memory(*arguments.memory) : std::nullopt;
}

PlanRequest request_of(const PlanArguments& arguments, std::optional<std::int64_t> decided) {
  PlanRequest request;
  request.sites = decided ? *decided : sites_of(arguments);
  request.machine = machine_of(arguments, request.sites);
  request.cost = parse_cost(arguments.cost.value_or("seconds"));
  request.batch = arguments.batch;
  if (arguments.memory) {
    request.memory = limit_of(arguments);
  } else if (arguments.machine) {  // somebody chose it
    request.memory = request.machine.memory;
  }
  return request;
}

void check_plan_options(const PlanArguments& arguments, const std::optional<std::string>& planner,
                        const std::optional<std::string>& spill) {
  request_of(arguments);
  if (planner) check_planner(*planner);
  if (arguments.plan_file && (planner || arguments.cost || arguments.batch))
    throw UserError("--planner, --cost and --batch choose a plan, and --plan brings one; leave them out");
  if (spill && !limit_of(arguments)) {
    throw UserError(
        fmt::format("--spill needs --memory SIZE: without a limit nothing goes to disk, and compressed files are "
                    "decompressed into memory\n  help: add --memory, how much may stay there, or leave out --spill {}",
                    printable(*spill)));
  }
  if (spill) const UnnamedFile can_be_made(*spill);
}

std::optional<Plan> plan_from_file(const PlanArguments& arguments, const Compiled& compiled) {
  if (!arguments.plan_file) return std::nullopt;
  Plan plan = read_plan(*arguments.plan_file, compiled);
  if (arguments.sites && sites_of(arguments) != plan.sites) {
    throw UserError(fmt::format("--sites {}, but {} is a plan for {}", sites_of(arguments),
                                printable(*arguments.plan_file), plan.sites));
  }
  return plan;
}

std::optional<std::int64_t> limit_of(const PlanArguments& arguments, const PlanRequest& request, const Job& job) {
  return arguments.memory || job.is_started ? request.memory : std::nullopt;
}

RunRequest run_request(const PlanArguments& arguments, const std::optional<std::string>& planner,
                       const Compiled& compiled, const Job& job) {
  std::optional<Plan> given = plan_from_file(arguments, compiled);
  std::optional<std::int64_t> decided;
  if (given) {
    decided = given->sites;
  } else if (!arguments.sites && job.is_started) {
    decided = job.ranks;
  }
  RunRequest request{
      .plan = request_of(arguments, decided), .planner = planner.value_or(default_planner), .given = std::move(given)};
  request.plan.memory = limit_of(arguments, request.plan, job);
  return request;
}

}  // namespace einrel::cli
