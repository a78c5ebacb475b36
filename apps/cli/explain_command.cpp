#include <fmt/format.h>

#include <memory>

#include "arguments.h"
#include "commands.h"
#include "engine/compile.h"
#include "engine/explain.h"
#include "engine/report_json.h"
#include "output.h"
#include "program_input.h"

namespace einrel::cli {
namespace {

struct CheckArguments {
  std::string program;
  std::vector<std::string> inputs;
  std::vector<std::string> dims;
  bool json = false;
};

CheckedProgram check_program(const CheckArguments& arguments, const SourceText& source) {
  Environment environment{parse_dims(arguments.dims), {}};
  for (const auto& [name, file] : open_inputs(arguments.inputs)) environment.inputs[name] = describe(file);
  return parse_and_check(source, environment);
}

void explain_program(const CheckArguments& arguments) {
  const SourceText source = read_program(arguments.program);
  CheckedProgram checked = check_program(arguments, source);
  const Compiled compiled = compile(arguments.program, require_graph(checked, source));
  if (arguments.json)
    print(fmt::format("{}\n", explain_json(compiled)));
  else
    print(fmt::format("{}", explain_text(compiled)));
}

void check_only(const CheckArguments& arguments) {
  const SourceText source = read_program(arguments.program);
  const CheckedProgram checked = check_program(arguments, source);
  const std::size_t open = checked.unknown_extents.size();
  std::string hint;
  if (open > 0)
    hint = fmt::format("; the data must give {}: {}", open == 1 ? "one extent" : fmt::format("{} extents", open),
                       join_some(checked.unknown_extents, ", "));
  print(fmt::format("{}: no errors{}\n", source.name(), hint));
}

std::shared_ptr<CheckArguments> add_arguments(CLI::App& command) {
  auto arguments = std::make_shared<CheckArguments>();
  command.add_option("PROGRAM", arguments->program, "a .ein file, or - for standard input")->required();
  command.add_option("--in", arguments->inputs, "NAME=FILE: take extents from a file")->allow_extra_args(false);
  command.add_option("--dim", arguments->dims, "LABEL=N: set the extent of a label")->allow_extra_args(false);
  return arguments;
}

}  // namespace

void add_explain_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("explain", "show how a program is computed, without running it");
  auto arguments = add_arguments(*command);
  command->add_flag("--json", arguments->json, "print one JSON object instead of text");
  command->callback([arguments] { explain_program(*arguments); });
}

void add_check_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("check", "report every error of a program");
  auto arguments = add_arguments(*command);
  command->callback([arguments] { check_only(*arguments); });
}

}  // namespace einrel::cli
