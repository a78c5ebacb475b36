#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "arguments.h"
#include "base/atomic_file.h"
#include "base/same_file.h"
#include "base/text.h"
#include "commands.h"
#include "einsum/check/expand.h"
#include "einsum/front/text/print_program.h"
#include "export/jax.h"
#include "export/torch.h"
#include "output.h"
#include "plan/planners/default_planner.h"
#include "plan_arguments.h"
#include "program_input.h"
#include "report/explain.h"
#include "report/passes_text.h"
#include "report/plan_text.h"
#include "report/report_json.h"
#include "report/sweep_report.h"
#include "report/trace.h"
#include "run/choose_plan.h"
#include "run/compile.h"
#include "run/simulated_run.h"
#include "run/stored_input.h"
#include "run/sweep.h"
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
  bool csv = false;
  std::vector<std::string> sites;
  std::vector<std::string> machines;
  std::vector<std::string> planners;
  std::vector<std::string> difference;
  std::optional<std::string> steps;
  std::vector<std::string> fed;
  std::optional<std::string> html;
  std::optional<std::string> jax;
  std::optional<std::string> torch;  ///< and for PyTorch
  bool simulate = false;
  std::vector<std::string> speeds;
  std::optional<std::string> trace;
  PlanArguments plan;  ///< with the number of sites, and the machine, where they are one
};

/// A program for another library that is written of the plan, where a file is named.
struct ExportedFile {
  const char* option;
  const std::optional<std::string>& path;
  const char* library;
  std::string (*source)(const Compiled&, const PlanReport&);
};

std::array<ExportedFile, 2> exported_files(const ExplainArguments& arguments) {
  return {{{"--jax", arguments.jax, "JAX", jax_source}, {"--torch", arguments.torch, "PyTorch", torch_source}}};
}

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

/// Whether files can be written, and are none that is read.
void check_written(const ExplainArguments& arguments) {
  std::vector<std::string> written;
  for (const std::optional<std::string>& file : {arguments.html, arguments.jax, arguments.torch, arguments.trace}) {
    if (file) written.push_back(*file);
  }
  if (written.empty()) return;
  for (const std::string& file : written) check_replaceable(file);
  std::vector<std::string> read = paths_of(arguments.inputs);
  read.push_back(arguments.plan.plan_file.value_or(""));
  read.insert(read.end(), arguments.machines.begin(), arguments.machines.end());
  read.push_back(arguments.program);
  refuse_same_file(written, read, "name another file");
}

/// Throws UserError for what is no number of steps, and for inputs that are new in each step of one.
RunRequest with_steps(RunRequest request, const ExplainArguments& arguments) {
  if (arguments.steps) request.steps = parse_times("--steps", *arguments.steps);
  request.fed = {arguments.fed.begin(), arguments.fed.end()};
  if (!request.fed.empty() && !arguments.steps)
    throw UserError("--feed says which inputs are new in each step; add --steps N");
  return request;
}

void check_options(const ExplainArguments& arguments) {
  check_options(static_cast<const ProgramArguments&>(arguments));
  check_pass_options(arguments.plan, is_tra(arguments.program), arguments.json);
  plan_request(with_steps(request_of(arguments.plan, {}), arguments));
  for (const std::vector<std::string>& names : {arguments.planners, arguments.difference}) {
    for (const std::string& name : names) check_planner(name);
  }
  if (arguments.verify && std::count(arguments.planners.begin(), arguments.planners.end(), "kcut") == 0)
    throw UserError("--verify compares the cuts of planner kcut with the best of all; add --planner kcut");
  for (const ExportedFile& file : exported_files(arguments)) {
    if (file.path && !arguments.plan.spmd && !arguments.plan.plan_file)
      throw UserError(fmt::format(
          "{} writes the program that all devices run: add --spmd, for plans that one program says", file.option));
  }
  parse_speeds(arguments.speeds);
  if (!arguments.simulate && !arguments.speeds.empty())
    throw UserError("--slow says how fast sites are while a run is simulated: add --simulate");
  if (!arguments.simulate && arguments.trace)
    throw UserError("--trace writes when every task ran: add --simulate, or run the program with einrel run --trace");
  check_written(arguments);
}

/// What is said of plans of vertices; relations have none.
void refuse_plan_options(const ExplainArguments& arguments) {
  refuse_vertex_options(arguments.plan, arguments.html);
  const std::array<std::pair<const char*, bool>, 5> given{
      {{"--diff", !arguments.difference.empty()},
       {"--simulate", arguments.simulate},
       {"--steps", arguments.steps.has_value()},
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

/// What is asked for, as `choose` takes it: the planner of the first plan, and those that are compared with it.
RunRequest request_of(const ExplainArguments& arguments) {
  RunRequest request = with_steps(request_of(arguments.plan, {}), arguments);
  request.explains = true;
  request.compared = arguments.planners.empty() ? arguments.difference : arguments.planners;
  if (request.given || request.compared.empty()) return request;
  request.planner = request.compared.front();
  request.compared.erase(request.compared.begin());
  return request;
}

/// Of plans of relations there is one, without what is said of vertices.
void check_relations(const ExplainArguments& arguments) {
  wants_search(arguments.planners);
  refuse_plan_options(arguments);
}

std::string difference_text(const ExplainArguments& arguments, const Explanation& explained) {
  if (arguments.difference.empty()) return "";
  const auto plan_by = [&](const std::string& name) {
    const std::vector<PlanReport>& plans = explained.comparison.plans;
    const auto known = std::find_if(plans.begin(), plans.end(), [&](const PlanReport& report) {
      return report.plan.planner == name && !arguments.plan.plan_file;
    });
    return known == plans.end() ? plan_with(*explained.compiled, name, explained.request) : *known;
  };
  return plan_difference_text(*explained.compiled, plan_by(arguments.difference.front()),
                              plan_by(arguments.difference.back()));
}

/// The program that SimGrid is in lies beside this one.
std::string simulator() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "einrel-simgrid"; }

void add_simulation(const ExplainArguments& arguments, const Chosen& chosen, Explanation& explained) {
  explained.simulated = simulate(*explained.compiled, chosen, explained.request.machine,
                                 {.speeds = parse_speeds(arguments.speeds), .program = simulator()});
  if (!arguments.trace) return;
  if (!explained.simulated->is_by_task)
    throw UserError("--trace writes when every task ran, and this plan has too many to make: plan for fewer sites");
  write_text(*arguments.trace, trace_json(chosen.tasks, explained.simulated->report));
}

void show(const ExplainArguments& arguments, const Explanation& explained, const SourceText& source) {
  const std::array<ExportedFile, 2> exported = exported_files(arguments);
  std::vector<std::pair<std::string, std::string>> texts;  // none is written where one is refused
  for (const ExportedFile& file : exported) {
    if (file.path) texts.emplace_back(*file.path, file.source(*explained.compiled, explained.plan()));
  }
  for (const auto& [path, text] : texts) write_text(path, text);
  if (arguments.html || arguments.json) {
    const std::string json = explanation_json(explained);
    if (arguments.html) write_text(*arguments.html, plans_html(json));
    if (arguments.json) return print(json + "\n");
  }
  if (arguments.html) return print(fmt::format("{}: the plan, for a browser\n", printable(*arguments.html)));
  if (!texts.empty()) {
    for (const ExportedFile& file : exported) {
      if (!file.path) continue;
      print(fmt::format("{}: the plan of {} as a program for {}\n", printable(*file.path),
                        printable(explained.plan().plan.planner), file.library));
    }
    return;
  }
  print(explanation_text(explained, source, arguments.verbose ? Detail::full : Detail::folded) +
        difference_text(arguments, explained));
}

AnyProgram explained_program(const ExplainArguments& arguments, const SourceText& source) {
  if (is_tra(arguments.program)) return parse_tra(source);
  CheckedProgram checked = check_program(arguments, source);
  return compile(arguments.program, require_graph(checked, source, std::nullopt), {}, checked.initial,
                 pass_options(arguments.plan, checked));
}

/// Numbers of sites or machines are compared where there are several.
bool is_sweep(const ExplainArguments& arguments) { return arguments.machines.size() > 1 || arguments.sites.size() > 1; }

/// What is shown of one plan, or of plans for one number of sites.
void check_sweep_options(const ExplainArguments& arguments) {
  const std::array<std::pair<const char*, bool>, 9> given{{{"--simulate", arguments.simulate},
                                                           {"--plan", arguments.plan.plan_file.has_value()},
                                                           {"--jax", arguments.jax.has_value()},
                                                           {"--torch", arguments.torch.has_value()},
                                                           {"--diff", !arguments.difference.empty()},
                                                           {"--verify", arguments.verify},
                                                           {"--algebra", arguments.algebra},
                                                           {"--verbose", arguments.verbose},
                                                           {"--show-passes", arguments.plan.shows_passes}}};
  for (const auto& [option, is_given] : given) {
    if (is_given)
      throw UserError(
          fmt::format("{} is for one number of sites of one machine, and here are several: leave it out", option));
  }
  if (arguments.json && arguments.csv) throw UserError("--json and --csv are two forms of one table: leave one out");
  for (const std::string& name : arguments.planners) {
    check_planner(name);
    if (plans_relations(name))
      throw UserError(
          fmt::format("planner {} plans relations; several numbers of sites are for plans of vertices", name));
  }
  if (is_tra(arguments.program))
    throw UserError("several numbers of sites or machines are for .ein programs: plans of relations are for one");
  check_options(static_cast<const ProgramArguments&>(arguments));
  check_written(arguments);
}

SweepRequest sweep_request(const ExplainArguments& arguments) {
  PlanArguments one = arguments.plan;
  one.sites = std::nullopt;
  SweepRequest wanted{with_steps(request_of(one, {}), arguments), {}, {}, arguments.planners};
  if (wanted.planners.empty()) wanted.planners.emplace_back(default_planner);
  for (const std::string& number : arguments.sites) wanted.sites.emplace_back(parse_sites(number));
  if (wanted.sites.empty()) wanted.sites.emplace_back();
  for (const std::string& machine : arguments.machines) wanted.machines.emplace_back(machine);
  if (wanted.machines.empty()) wanted.machines.emplace_back();
  return wanted;
}

void explain_sweep(const ExplainArguments& arguments) {
  check_sweep_options(arguments);
  const SweepRequest wanted = sweep_request(arguments);
  const SourceText source = read_program(arguments.program);
  const AnyProgram program = explained_program(arguments, source);
  const auto& compiled = std::get<Compiled>(program);
  const std::vector<SweptPlan> plans = sweep(compiled, wanted, source);
  if (arguments.html) write_text(*arguments.html, sweep_html(sweep_json(compiled, plans)));
  if (arguments.json) return print(sweep_json(compiled, plans) + "\n");
  if (arguments.html && !arguments.csv)
    return print(fmt::format("{}: plans by number of sites, for a browser\n", printable(*arguments.html)));
  print(arguments.csv ? sweep_csv(compiled, plans) : sweep_text(compiled, plans));
}

void explain_program(const ExplainArguments& arguments) {
  if (is_sweep(arguments)) return explain_sweep(arguments);
  if (arguments.csv)
    throw UserError("--csv prints a table of several plans: add numbers of sites, as in --sites 1,2,4,8");
  check_options(arguments);
  const bool of_relations = std::any_of(arguments.planners.begin(), arguments.planners.end(), plans_relations);
  if (is_tra(arguments.program) || of_relations) check_relations(arguments);
  if (is_tra(arguments.program)) refuse_extents(arguments);
  const SourceText source = read_program(arguments.program);
  const AnyProgram program = explained_program(arguments, source);
  if (arguments.json && !arguments.difference.empty())
    throw UserError("--diff is text; with --json, compare the plans of both: --planner A --planner B");
  const Chosen chosen = choose(program, request_of(arguments), source, {});
  Explanation explained = explanation_of(source.name(), program, chosen);
  if (arguments.verify) verify_cuts(*explained.compiled, explained.comparison);
  const bool is_shown = !(arguments.jax || arguments.torch) || arguments.html || arguments.json;
  if (arguments.plan.spmd && !arguments.plan.plan_file && is_shown)
    price_restriction(*explained.compiled, explained.comparison, explained.request);
  if (arguments.algebra && explained.has_plan()) add_algebra(explained);
  if (arguments.simulate) add_simulation(arguments, chosen, explained);
  show(arguments, explained, source);
  if (arguments.plan.shows_passes) print(passes_text(*explained.compiled, chosen.tasks));
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
  command->add_flag("--csv", arguments->csv, "of several numbers of sites: print a table with commas");
  add_cost_options(*command, arguments->plan);
  command
      ->add_option("--sites", arguments->sites,
                   "the number of sites to plan for (default: of the machine, else 1), or several to compare: 2,4,8,16")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--machine", arguments->machines, fmt::format("{}; several times: compared", machine_usage))
      ->allow_extra_args(false);
  add_planner_options(*command, arguments->plan);
  command
      ->add_option("--planner", arguments->planners,
                   "how to plan (default eindecomp; see einrel list planners); several times: side by side")
      ->allow_extra_args(false);
  command->add_option(
      "--steps", arguments->steps,
      "N: plan for N steps: inputs stay where the first brings them, and all steps together cost least");
  command->add_option("--feed", arguments->fed, "NAME: with --steps, an input that is new in each step")
      ->allow_extra_args(false);
  command->add_option("--diff", arguments->difference, "two planners: where their plans differ, and what that costs")
      ->expected(2);
  command->add_option("--html", arguments->html, "FILE: write the plans as one page for a browser")
      ->allow_extra_args(false);
  command->add_option("--jax", arguments->jax, "FILE: with --spmd, write the first plan as a Python program for JAX")
      ->allow_extra_args(false);
  command->add_option("--torch", arguments->torch, "FILE: with --spmd, write the first plan as one for PyTorch")
      ->allow_extra_args(false);
  command->add_flag("--verbose", arguments->verbose,
                    "show every vertex by itself: its kernel, and the next best way to cut it");
  command->add_flag("--verify", arguments->verify,
                    "of planner kcut: compare its cuts with the best of all cuts at once");
  command->add_flag("--algebra", arguments->algebra, "also show the plan in both algebras");
  command->add_flag("--simulate", arguments->simulate,
                    "replay the plan on the machine's sites and links, and say how long it takes");
  command
      ->add_option("--slow", arguments->speeds,
                   "SITE=SPEED: with --simulate, a site that is slower than the others: 3=0.5 computes half as fast")
      ->allow_extra_args(false);
  command
      ->add_option("--trace", arguments->trace,
                   "FILE: with --simulate, write when every task ran, for a trace viewer (Perfetto, chrome://tracing)")
      ->allow_extra_args(false);
  command->callback([arguments] {
    if (arguments->sites.size() == 1) arguments->plan.sites = arguments->sites.front();
    if (arguments->machines.size() == 1) arguments->plan.machine = arguments->machines.front();
    explain_program(*arguments);
  });
}

void add_check_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("check", "report every error of a program");
  auto arguments =
      add_arguments<CheckArguments>(*command, "a .ein file, a .tra file, or - for a .ein on standard input");
  command->add_flag("--expand", arguments->expand, "print the program without macros and gradients: what they come to");
  command->callback([arguments] { check_only(*arguments); });
}

}  // namespace einrel::cli
