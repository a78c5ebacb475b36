#include <memory>
#include <optional>

#include "commands.h"
#include "einsum/check/einsum_notation.h"
#include "execution.h"
#include "program_input.h"
#include "run/compile.h"
#include "run/stored_input.h"
#include "tensor/tensor_file.h"

namespace einrel::cli {
namespace {

struct EinsumArguments {
  std::string subscripts;
  std::vector<std::string> operands;
  std::optional<std::string> output;
  std::optional<std::string> join;
  std::optional<std::string> reduce;
  ExecutionArguments execution;

  EinsumRequest request() const { return {subscripts, {}, join, reduce}; }
};

void check_options(const EinsumArguments& arguments) {
  check_pass_options(arguments.execution.plan, false, arguments.execution.json);
  check_reduction(arguments.request());
  for (const std::string& operand : arguments.operands) parse_file_ref(operand);
  if (arguments.output) parse_file_ref(*arguments.output);
}

Prepared prepare(const EinsumArguments& arguments) {
  EinsumRequest request = arguments.request();
  Prepared prepared;
  for (std::size_t i = 0; i < arguments.operands.size(); ++i) {
    const FileRef given = parse_file_ref(arguments.operands[i]);
    const StoredTensor file = open_tensor(given, inflate_folder(arguments.execution.plan));
    request.operands.push_back(describe(file));
    prepared.files[operand_name(i, arguments.operands.size())] = file;
    prepared.paths.push_back(given.path);
  }
  prepared.program =
      compile(arguments.subscripts, einsum_graph(request), {}, std::nullopt, pass_options(arguments.execution.plan));
  if (arguments.output) prepared.outputs = {{einsum_result, parse_file_ref(*arguments.output)}};
  return prepared;
}

}  // namespace

void add_einsum_command(CLI::App& app) {
  auto arguments = std::make_shared<EinsumArguments>();
  CLI::App* command = app.add_subcommand("einsum", "compute one einsum in NumPy's notation");
  command->add_option("SUBSCRIPTS", arguments->subscripts, "such as 'ij,jk->ik'")->required();
  command->add_option("FILES", arguments->operands, "one file per operand")->required();
  command->add_option("--out", arguments->output, "FILE: write the result instead of summarising it");
  command->add_option("--join", arguments->join,
                      "EXPR: combine values x, y, z (or x1, x2, ...) by this instead of their product");
  command->add_option("--reduce", arguments->reduce, "NAME: reduce by max, min, mean, ... instead of sum");
  add_execution_options(*command, arguments->execution);
  command->callback([arguments, command] {
    execute(arguments->execution, {.command = *command,
                                   .check_options = [&] { check_options(*arguments); },
                                   .source = [&](const Job&) { return einsum_source(arguments->request()); },
                                   .prepare = [&](const SourceText&) { return prepare(*arguments); }});
  });
}

}  // namespace einrel::cli
