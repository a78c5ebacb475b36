#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "arguments.h"
#include "commands.h"
#include "database_run.h"
#include "execution.h"
#include "program_input.h"
#include "run/compile.h"
#include "run/saved_states.h"
#include "run/scalars.h"
#include "run/session.h"
#include "run/stored_input.h"
#include "run/tra_program.h"
#include "tensor/tensor_file.h"

namespace einrel::cli {
namespace {

OutputFiles parse_outputs(const std::vector<std::string>& given) {
  OutputFiles files;
  for (const auto& [name, file] : parse_assignments("--out", given)) files.emplace_back(name, parse_file_ref(file));
  return files;
}

/// What is said of a program in the language; a program in the algebra is cut as it says.
void check_tra_options(const RunArguments& arguments) {
  if (!arguments.dims.empty()) throw UserError("--dim is for .ein programs; a .tra program says its extents itself");
  refuse_vertex_options(arguments.execution.plan, arguments.execution.html);
  if (arguments.execution.plan.planner) wants_search({*arguments.execution.plan.planner});
}

void check_options(const RunArguments& arguments) {
  check_pass_options(arguments.execution.plan, is_tra(arguments.program), arguments.execution.json);
  if (is_tra(arguments.program)) check_tra_options(arguments);
  check_inputs(arguments.inputs);
  parse_outputs(arguments.outputs);
  parse_dims(arguments.dims);
  parse_scalars(arguments.scalars);
  parse_seed(arguments.seed);
}

/// The program with all that the command line says of it.
void read_ein(const RunArguments& arguments, const SourceText& source, const std::vector<std::string>& wanted,
              Prepared& prepared) {
  Environment environment{parse_dims(arguments.dims), {}};
  for (const auto& [name, file] : prepared.files) environment.inputs[name] = describe(file);
  CheckedProgram checked = parse_and_check(source, environment);
  const ScalarBindings scalars = parse_scalars(arguments.scalars);
  if (!checked.graph) {  // inputs are missing: a misspelt name is said first, since nothing that is added mends it
    check_output_names(wanted, checked.tensors);
    const std::vector<std::string> unknown = unknown_scalars(scalars, checked.scalars);
    if (!unknown.empty()) throw UserError(fmt::format("{}", fmt::join(unknown, "\n")));
  }
  Compiled compiled = compile(arguments.program, require_graph(checked, source, prepared.seed), wanted, checked.initial,
                              pass_options(arguments.execution.plan, checked));
  if (const std::optional<std::string>& file = arguments.execution.steps.load) {
    prepared.loaded = load_states(compiled.graph, *file, inflate_folder(arguments.execution.plan));
    prepared.paths.push_back(*file);
    compiled.initial.reset();
  }
  prepared.scalars = bind_scalars(compiled.graph.scalars, scalars);
  prepared.program = std::move(compiled);
}

void read_tra(const RunArguments& arguments, const SourceText& source, const std::vector<std::string>& wanted,
              Prepared& prepared) {
  std::map<std::string, BoundInput> inputs;
  for (const auto& [name, file] : prepared.files) inputs[name] = describe(file);
  ParsedTra parsed = tra_program(source, inputs, wanted);
  prepared.scalars = bind_scalars(parsed.program.scalars, parse_scalars(arguments.scalars));
  prepared.program = std::move(parsed);
}

Prepared prepare(const RunArguments& arguments, const SourceText& source) {
  Prepared prepared;
  prepared.files = open_inputs(arguments.inputs, source, inflate_folder(arguments.execution.plan));
  prepared.paths = paths_of(arguments.inputs);
  if (arguments.program != "-") prepared.paths.push_back(arguments.program);
  prepared.outputs = parse_outputs(arguments.outputs);
  prepared.seed = parse_seed(arguments.seed);
  std::vector<std::string> wanted;
  for (const auto& [name, file] : prepared.outputs) wanted.push_back(name);
  (is_tra(arguments.program) ? read_tra : read_ein)(arguments, source, wanted, prepared);
  return prepared;
}

/// What has no meaning where a database computes.
void refuse_with_database(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    const bool is_taken = name == "PROGRAM" || name == "--in" || name == "--out" || name == "--dim" ||
                          name == "--scalar" || name == "--database" || name == "--formats" || name == "--timeout" ||
                          name == "--steps" || name == "--analyze" || name == "--json";
    if (option->count() != 0 && !is_taken)
      throw UserError(fmt::format("{} does not go with --database, where the database computes{}", name,
                                  name == "--explain" ? "; --analyze explains the run that was made, and einrel sql "
                                                        "PROGRAM.ein --explain one that is not"
                                                      : ""));
  }
}

void run_by_database(const RunArguments& arguments, const CLI::App& command) {
  const auto check = [&] {
    refuse_with_database(command);
    check_database_options(arguments);
  };
  run_in_job(command, arguments.execution.timeout, check, [&](const Job& job) {
    agree(job, [&] {
      if (job.ranks > 1) throw UserError("--database runs in one process; start it without mpirun");
    });
    run_in_database(arguments);
  });
}

}  // namespace

void add_run_command(CLI::App& app) {
  auto arguments = std::make_shared<RunArguments>();
  CLI::App* command = app.add_subcommand("run", "run a program on files or random data");
  command->add_option("PROGRAM", arguments->program, "a .ein file, a .tra file, or - for a .ein on standard input")
      ->required();
  command
      ->add_option("--in", arguments->inputs,
                   "NAME=FILE: bind an input (.npy, .npz:NAME, .safetensors:NAME, .idx.gz); FILE.npz or "
                   "FILE.safetensors alone: all "
                   "inputs with the names of its tensors")
      ->allow_extra_args(false);
  command->add_option("--random", arguments->seed,
                      "SEED: fill the other inputs with random values; a whole number from 0 to 2^64-1");
  command->add_option("--out", arguments->outputs, "NAME=FILE: write a tensor instead of summarising the outputs")
      ->allow_extra_args(false);
  command->add_option("--dim", arguments->dims, "LABEL=N: set the extent of a label")->allow_extra_args(false);
  command->add_option("--scalar", arguments->scalars, "NAME=X: set a scalar")->allow_extra_args(false);
  StepArguments& steps = arguments->execution.steps;
  command->add_option("--steps", steps.steps, "N: of a program with state, do N steps, or fewer if `until` says so");
  command->add_option("--save", steps.save, "FILE.safetensors: write the state after the last step");
  command->add_option("--load", steps.load, "FILE.safetensors: begin with the state that --save wrote");
  add_execution_options(*command, arguments->execution);
  command->add_option(
      "--database", arguments->database,
      "sqlite:FILE or postgresql://HOST/DATABASE: compute there; --in and --out then take table:NAME, --in also "
      "'query:SELECT ...' and sparse:table:NAME, --out also chunks:NAME");
  command->add_option(
      "--formats", arguments->formats,
      "TENSOR=FORMAT,...: how a database cuts tensors into chunks; others as it costs least, or all of them by "
      "tile-N");
  command->callback([arguments, command] {
    if (arguments->database) return run_by_database(*arguments, *command);
    if (arguments->formats) throw UserError("--formats is for a run in a database; add --database sqlite:FILE");
    refuse_tables("--in", arguments->inputs);
    refuse_tables("--out", arguments->outputs);
    execute(arguments->execution, {.command = *command,
                                   .check_options = [&] { check_options(*arguments); },
                                   .source = [&](const Job& job) { return program_of_job(arguments->program, job); },
                                   .prepare = [&](const SourceText& source) { return prepare(*arguments, source); }});
  });
}

}  // namespace einrel::cli
