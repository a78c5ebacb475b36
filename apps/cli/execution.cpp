#include "execution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <utility>

#include "arguments.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/same_file.h"
#include "base/text.h"
#include "exec/job/alike.h"
#include "output.h"
#include "program_run.h"
#include "progress.h"
#include "run/input_facts.h"
#include "run/saved_states.h"
#include "tensor/tensor_file.h"

namespace einrel::cli {
namespace {

/// What only a program with state can do, or one without.
void check_steps(const ExecutionArguments& arguments, const AnyProgram& program) {
  const auto* const compiled = std::get_if<Compiled>(&program);
  const bool has_state = compiled != nullptr && !compiled->graph.steps.states.empty();
  if (!has_state && arguments.steps.any())
    throw UserError(
        "--steps, --save and --load are for programs with state, which this one has not\n"
        "  help: say what goes on from step to step: state X[i] = ... and next X[i] = ...");
  if (has_state && arguments.repeats)
    throw UserError("--repeat computes the same several times, but a state goes on\n  help: use --steps N");
}

/// Refuses files that could not be written before any work is done.
void check_outputs(const OutputFiles& files, const std::optional<std::string>& save, const AnyProgram& program) {
  std::vector<std::pair<FileRef, DType>> planned;
  if (save) planned = files_of_states(std::get<Compiled>(program).graph, *save);
  const std::vector<TaskOutput> outputs = outputs_of(program);
  for (const auto& [name, file] : files) {
    for (const TaskOutput& output : outputs) {
      if (output.name == name) planned.emplace_back(file, output.dtype);
    }
  }
  check_writable(planned);
}

/// Before any work is done: no file that is read may be lost, unless the user wants it so.
void refuse_overwriting(const ExecutionArguments& arguments, const Prepared& prepared) {
  std::vector<std::string> written;
  for (const auto& [name, file] : prepared.outputs) written.push_back(file.path);
  if (const std::optional<std::string>& save = arguments.steps.save) {
    for (const std::string& other : written) {
      if (is_same_file(other, *save))
        throw UserError(fmt::format("'{}' is to hold outputs and the state; name another file", printable(*save)));
    }
    written.push_back(*save);
  }
  std::vector<std::string> options;
  if (arguments.plan.plan_file) options.push_back(*arguments.plan.plan_file);
  if (arguments.plan.machine) options.push_back(*arguments.plan.machine);
  if (!arguments.overwrite) refuse_same_file(written, prepared.paths, "name another file, or add --overwrite");
  refuse_same_file(written, options, "name another file");
  for (const std::optional<std::string>& report : {arguments.trace, arguments.html}) {
    if (!report) continue;
    refuse_same_file({*report}, prepared.paths, "name another file");
    refuse_same_file({*report}, options, "name another file");
    for (const std::string& other : written) {
      if (is_same_file(other, *report))
        throw UserError(fmt::format("'{}' is to hold two things; name another file", printable(*report)));
    }
    written.push_back(*report);
  }
}

/// All that can be said of them without a program.
void check_options(const ExecutionArguments& arguments) {
  parse_timeout(arguments.timeout);
  times_of(arguments);
  progress_listener(arguments.progress);
  check_plan_options(arguments.plan);
  const std::optional<std::string>& planner = arguments.plan.planner;
  if (planner && plans_relations(*planner)) refuse_vertex_options(arguments.plan, arguments.html);
}

/// What ranks have to be told alike. What stands in files is compared when it has been read.
std::vector<Fact> facts_of(const CLI::App& command) {
  constexpr std::array<std::string_view, 14> own{"PROGRAM",   "FILES",      "--in",      "--feed",  "--test",
                                                 "--load",    "--plan",     "--machine", "--spill", "--threads",
                                                 "--timeout", "--progress", "--trace",   "--html"};
  std::vector<Fact> facts{{"the version of einrel", EINREL_VERSION}, {"the command", command.get_name()}};
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (std::find(own.begin(), own.end(), name) != own.end()) continue;
    facts.push_back({name, printable(fmt::format("{}", fmt::join(option->results(), " ")))});
  }
  return facts;
}

/// What ranks read.
std::vector<Fact> facts_of(const Prepared& prepared) {
  std::vector<Fact> facts;
  for (const auto& [name, file] : prepared.files) add_facts("input " + name, file, facts);
  if (!prepared.loaded) return facts;
  facts.push_back({"the number of steps done before", fmt::format("{}", prepared.loaded->steps_done)});
  for (const auto& [name, state] : prepared.loaded->files) add_facts("state " + name, state.first, facts);
  return facts;
}

/// What is complex goes out as that.
void mark_complex(OutputFiles& files, const std::set<std::string>& complex) {
  for (auto& [name, file] : files) file.is_complex = complex.count(name) != 0;
}

/// All options are right.
void execute_on(const Job& job, const ExecutionArguments& arguments, const Execution& execution) {
  const SourceText source = execution.source(job);
  Prepared prepared;
  agree(job, [&] {
    prepared = execution.prepare(source);
    refuse_overwriting(arguments, prepared);
    check_steps(arguments, prepared.program);
    mark_complex(prepared.outputs, complex_tensors(prepared.program));
    check_outputs(prepared.outputs, arguments.steps.save, prepared.program);
  });
  if (job.ranks > 1) check_alike(job, facts_of(prepared));
  run_program(arguments, std::move(prepared), source, job);
}

}  // namespace

std::size_t times_of(const ExecutionArguments& arguments) {
  if (arguments.steps.steps) return static_cast<std::size_t>(parse_times("--steps", *arguments.steps.steps));
  return arguments.repeats ? static_cast<std::size_t>(parse_times("--repeat", *arguments.repeats)) : 1;
}

void end_all(std::exception_ptr error, const Job& job) {
  static std::atomic_flag is_ending;  // one of the threads that fail says so
  while (is_ending.test_and_set()) ::pause();
  end_job(job, report_failure(error, job.is_started ? fmt::format("rank {}: ", job.rank) : ""));
}

void add_execution_options(CLI::App& command, ExecutionArguments& arguments) {
  command.add_option("--threads", arguments.plan.threads,
                     "N: compute on N threads; without it, on all cores this process may use");
  add_plan_options(command, arguments.plan);
  command.add_option("--planner", arguments.plan.planner,
                     "how to plan (default eindecomp, of .tra programs table-1; see einrel list planners)");
  command.add_option(
      "--spill", arguments.plan.spill,
      "FOLDER: with --memory, where chunks go that it has no room for, and decompressed inputs (default: the "
      "system's temporary folder)");
  command.add_option("--repeat", arguments.repeats,
                     "N: compute N times and say how long each took; outputs are those of the last");
  command.add_option("--timeout", arguments.timeout,
                     "SECONDS: a rank that is stopped for longer ends the job (default 60)");
  command.add_option("--trace", arguments.trace,
                     "FILE: write when every task ran, for a trace viewer (Perfetto, chrome://tracing)");
  command.add_option("--html", arguments.html,
                     "FILE: write the plan as a page for a browser, what was measured beside what was predicted");
  command.add_flag("--overwrite", arguments.overwrite, "let an output replace a file that is read");
  command.add_flag("--analyze", arguments.analyze, "show what was predicted beside what was measured");
  command.add_flag("--explain", arguments.explain,
                   "show first how the program is computed, as explain does (--json has it anyway)");
  command.add_flag("--json", arguments.json, "print one JSON object instead of text");
  command.add_option("--progress", arguments.progress, "auto, always or never");
}

void run_in_job(const CLI::App& command, const std::string& given_timeout, const std::function<void()>& check,
                const std::function<void(const Job&)>& action) {
  double timeout = parse_timeout(default_timeout);
  std::exception_ptr fault;  // said when the ranks can agree on who says it
  try {
    check();
    timeout = parse_timeout(given_timeout);
  } catch (const UserError&) {
    fault = std::current_exception();
  }
  if (const std::optional<std::string> name = name_in_job()) run_guarded(*name, timeout);
  const MpiJob mpi(end_all, timeout);
  mpi.run([&](const Job& job) {
    agree(job, [&] {
      if (fault) std::rethrow_exception(fault);
    });
    check_alike(job, facts_of(command));
    action(job);
  });
}

void execute(const ExecutionArguments& arguments, const Execution& execution) {
  const auto check = [&] {
    execution.check_options();
    check_options(arguments);
  };
  run_in_job(execution.command, arguments.timeout, check,
             [&](const Job& job) { execute_on(job, arguments, execution); });
}

}  // namespace einrel::cli
