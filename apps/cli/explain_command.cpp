#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>

#include "arguments.h"
#include "base/atomic_file.h"
#include "base/same_file.h"
#include "base/text.h"
#include "commands.h"
#include "einsum/expand.h"
#include "einsum/text/print_program.h"
#include "engine/compile.h"
#include "engine/plan_memory.h"
#include "engine/recompute.h"
#include "engine/report/algebra_text.h"
#include "engine/report/explain.h"
#include "engine/report/passes_text.h"
#include "engine/report/plan_text.h"
#include "engine/report/report_json.h"
#include "engine/stored_input.h"
#include "output.h"
#include "plan/default_planner.h"
#include "plan_arguments.h"
#include "program_input.h"
#include "tra/text/parse.h"
#include "viz/plan_html.h"

namespace einrel::cli {
namespace {

struct ProgramArguments {
  std::string program;
  std::vector<std::string> inputs;
  std::vector<std::string> dims;
};
struct CheckArguments : ProgramArguments {
  bool expand = false;
};
struct ExplainArguments : ProgramArguments {
  bool json = false;
  bool algebra = false;
  bool verbose = false;
  bool verify = false;
  std::vector<std::string> planners;
  std::vector<std::string> difference;
  std::optional<std::string> html;
  PlanArguments plan;
};

Detail detail_of(const ExplainArguments& arguments) { return arguments.verbose ? Detail::full : Detail::folded; }

CheckedProgram check_program(const ProgramArguments& arguments, const SourceText& source) {
  Environment environment{parse_dims(arguments.dims), {}};
  for (const auto& [name, file] : open_inputs(arguments.inputs, source)) environment.inputs[name] = describe(file);
  return parse_and_check(source, environment);
}

/// All that can be said of options without a program.
void check_options(const ProgramArguments& arguments) {
  check_inputs(arguments.inputs);
  parse_dims(arguments.dims);
}

void check_options(const ExplainArguments& arguments) {
  check_options(static_cast<const ProgramArguments&>(arguments));
  check_pass_options(arguments.plan, is_tra(arguments.program), arguments.json);
  plan_request(request_of(arguments.plan, {}));
  for (const std::vector<std::string>& names : {arguments.planners, arguments.difference}) {
    for (const std::string& name : names) check_planner(name);
  }
  if (arguments.verify && std::count(arguments.planners.begin(), arguments.planners.end(), "kcut") == 0)
    throw UserError("--verify compares the cuts of planner kcut with the best of all; add --planner kcut");
  if (!arguments.html) return;
  check_replaceable(*arguments.html);
  std::vector<std::string> read = paths_of(arguments.inputs);
  for (const auto& file : {arguments.plan.plan_file, arguments.plan.machine}) read.push_back(file.value_or(""));
  read.push_back(arguments.program);
  refuse_same_file({*arguments.html}, read, "name another file");
}

/// What is said of plans of vertices; relations have none.
void refuse_plan_options(const ExplainArguments& arguments) {
  refuse_vertex_options(arguments.plan, arguments.html);
  const std::array<std::pair<const char*, bool>, 3> given{
      {{"--diff", !arguments.difference.empty()},
       {"--verify", arguments.verify},
       {"--algebra", arguments.algebra && is_tra(arguments.program)}}};
  for (const auto& [option, is_given] : given) {
    if (is_given)
      throw UserError(fmt::format("{} is for plans of a .ein program's vertices: see einrel list planners", option));
  }
}

void refuse_extents(const ProgramArguments& arguments) {
  if (!arguments.inputs.empty() || !arguments.dims.empty())
    throw UserError("--in and --dim are for .ein programs; a .tra program says its extents itself");
}

void explain_tra(const ExplainArguments& arguments) {
  refuse_plan_options(arguments);
  refuse_extents(arguments);
  const std::int64_t sites = plan_request(request_of(arguments.plan, {})).sites;
  const bool search = wants_search(arguments.planners);
  const SourceText source = read_program(arguments.program);
  ParsedTra parsed = parse_tra(source);
  const AlgebraFacts facts = facts_of(plan_algebra(std::move(parsed.program), sites, parsed.layouts, search));
  if (arguments.json)
    print(fmt::format("{}\n", explain_json(source.name(), facts)));
  else
    print(fmt::format("{}\n{}", printable(source.name()), algebra_text(facts)));
}

/// What the TRA and the IA say of a program, without a plan of its vertices.
void explain_relations(const ExplainArguments& arguments, const Compiled& compiled, const SourceText& source) {
  refuse_plan_options(arguments);
  const std::int64_t sites = plan_request(request_of(arguments.plan, {})).sites;
  const AlgebraPlan plan = plan_algebra(compiled, sites, wants_search(arguments.planners));
  const AlgebraFacts facts = facts_of(plan);
  if (arguments.json) return print(fmt::format("{}\n", explain_json(compiled, facts)));
  print(fmt::format("{}{}", explain_text(compiled, source, detail_of(arguments)), algebra_text(facts)));
  if (arguments.plan.shows_passes) print(passes_text(compiled, tasks_of(plan, {})));
}

void explain_plans(const ExplainArguments& arguments, Compiled compiled, const SourceText& source) {
  std::vector<std::string> planners = arguments.planners;
  if (planners.empty()) planners = arguments.difference;
  if (planners.empty() && !arguments.plan.plan_file) planners = {default_planner};
  if (arguments.json && !arguments.difference.empty())
    throw UserError("--diff is text; with --json, compare the plans of both: --planner A --planner B");
  const RunRequest asked = request_of(arguments.plan, {});
  std::optional<Plan> given = given_plan(asked, compiled);
  const PlanRequest request = plan_request(asked, given ? std::optional(given->sites) : std::nullopt);
  if (!given && arguments.plan.memory) {
    if (std::optional<Compiled> recomputed = recomputed_on_sites(compiled, request)) compiled = *std::move(recomputed);
  }
  PlanComparison comparison = compare_plans(compiled, std::move(given), planners, request);
  if (arguments.verify) verify_cuts(compiled, comparison);
  check_fits(compiled, comparison.plans.front(), request, source);
  if (arguments.html || arguments.json) {
    const std::string json = plans_json(compiled, comparison, request);
    if (arguments.html) write_text(*arguments.html, plans_html(json));
    if (arguments.json) return print(fmt::format("{}\n", json));
  }
  if (arguments.html) return print(fmt::format("{}: the plan, for a browser\n", printable(*arguments.html)));
  std::string text = plans_text(compiled, comparison, request, source, detail_of(arguments));
  if (!arguments.difference.empty()) {
    const auto plan_by = [&](const std::string& name) {
      const auto known = std::find_if(comparison.plans.begin(), comparison.plans.end(), [&](const PlanReport& report) {
        return report.plan.planner == name && !arguments.plan.plan_file;
      });
      return known == comparison.plans.end() ? plan_with(compiled, name, request) : *known;
    };
    text += plan_difference_text(compiled, plan_by(arguments.difference.front()), plan_by(arguments.difference.back()));
  }
  if (arguments.algebra) text += algebra_text(facts_of(algebra_of(compiled.graph, comparison.plans.front().plan)));
  if (arguments.plan.shows_passes) text += passes_text(compiled, tasks_of(compiled, comparison.plans.front().plan, {}));
  print(text);
}

void explain_program(const ExplainArguments& arguments) {
  check_options(arguments);
  if (is_tra(arguments.program)) return explain_tra(arguments);
  const SourceText source = read_program(arguments.program);
  CheckedProgram checked = check_program(arguments, source);
  const Compiled compiled = compile(arguments.program, require_graph(checked, source, std::nullopt), {},
                                    checked.initial, pass_options(arguments.plan, checked));
  const bool relations = std::any_of(arguments.planners.begin(), arguments.planners.end(), plans_relations);
  RunRequest asked = request_of(arguments.plan, {});
  const bool is_on_one = plan_request(asked).sites == 1;
  asked.sites.reset();
  const bool plain = arguments.planners.empty() && arguments.difference.empty() && !arguments.html &&
                     !arguments.algebra && is_on_one && !asks_for_plan(asked, {});
  if (plain && !arguments.json) {
    print(explain_text(compiled, source, detail_of(arguments)));
    if (arguments.plan.shows_passes) print(passes_text(compiled, whole_tasks(compiled)));
    return;
  }
  return relations || plain ? explain_relations(arguments, compiled, source)
                            : explain_plans(arguments, compiled, source);
}

void check_only(const CheckArguments& arguments) {
  const SourceText source = read_program(arguments.program);
  if (is_tra(arguments.program)) {
    refuse_extents(arguments);
    if (arguments.expand) throw UserError("--expand is for programs in .ein files: a .tra file has nothing to expand");
    parse_tra(source);
    return print(fmt::format("{}: no errors\n", printable(source.name())));
  }
  check_options(arguments);
  const CheckedProgram checked = check_program(arguments, source);
  if (arguments.expand) {
    if (!checked.graph)
      throw UserError(fmt::format("--expand needs all extents, but nothing gives: {}; add --dim or --in",
                                  join_some(checked.unknown_extents, ", ")));
    build::Program program = expanded(checked);
    return print(einrel::print(program));
  }
  const std::size_t open = checked.unknown_extents.size();
  std::string hint;
  if (open > 0)
    hint = fmt::format("; the data must give {}: {}", open == 1 ? "one extent" : fmt::format("{} extents", open),
                       join_some(checked.unknown_extents, ", "));
  print(fmt::format("{}: no errors{}\n", printable(source.name()), hint));
}

template <class Arguments>
std::shared_ptr<Arguments> add_arguments(CLI::App& command, const char* takes) {
  auto arguments = std::make_shared<Arguments>();
  command.add_option("PROGRAM", arguments->program, takes)->required();
  command.add_option("--in", arguments->inputs, "NAME=FILE: take extents from a file")->allow_extra_args(false);
  command.add_option("--dim", arguments->dims, "LABEL=N: set the extent of a label")->allow_extra_args(false);
  return arguments;
}

}  // namespace

void add_explain_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("explain", "show how a program is computed, without running it");
  auto arguments =
      add_arguments<ExplainArguments>(*command, "a .ein file, a .tra file, or - for a .ein on standard input");
  command->add_flag("--json", arguments->json, "print one JSON object instead of text");
  add_plan_options(*command, arguments->plan);
  command
      ->add_option("--planner", arguments->planners,
                   "how to plan (default eindecomp; see einrel list planners); several times: side by side")
      ->allow_extra_args(false);
  command->add_option("--diff", arguments->difference, "two planners: where their plans differ, and what that costs")
      ->expected(2);
  command->add_option("--html", arguments->html, "FILE: write the plans as one page for a browser")
      ->allow_extra_args(false);
  command->add_flag("--verbose", arguments->verbose,
                    "show every vertex by itself: its kernel, and the next best way to cut it");
  command->add_flag("--verify", arguments->verify,
                    "of planner kcut: compare its cuts with the best of all cuts at once");
  command->add_flag("--algebra", arguments->algebra, "also show the plan in both algebras");
  command->callback([arguments] { explain_program(*arguments); });
}

void add_check_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("check", "report every error of a program");
  auto arguments =
      add_arguments<CheckArguments>(*command, "a .ein file, a .tra file, or - for a .ein on standard input");
  command->add_flag("--expand", arguments->expand, "print the program without macros and gradients: what they come to");
  command->callback([arguments] { check_only(*arguments); });
}

}  // namespace einrel::cli
