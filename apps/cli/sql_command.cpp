#include <fmt/format.h>

#include <memory>
#include <optional>

#include "arguments.h"
#include "base/error.h"
#include "base/text.h"
#include "commands.h"
#include "output.h"
#include "program_input.h"
#include "report/formats_report.h"
#include "run/compile.h"
#include "run/scalars.h"
#include "run/sql_script.h"

namespace einrel::cli {
namespace {

struct SqlArguments {
  std::string program;
  std::string dialect = "sqlite";
  std::optional<std::string> schema;
  std::optional<std::string> formats;
  bool explain = false;
  bool json = false;
  std::vector<std::string> dims;
  std::vector<std::string> scalars;
};

/// The formats and what they cost.
std::string explained(const SqlArguments& arguments, const Compiled& compiled, const Formats& formats) {
  const ChosenFormats chosen = formats_of_script(compiled.graph, formats, sql::dialect_named(arguments.dialect));
  return arguments.json ? formats_json(compiled, chosen) + "\n" : formats_text(compiled, chosen);
}

void print_script(const SqlArguments& arguments) {
  if (is_tra(arguments.program)) throw UserError("einrel sql takes .ein programs");
  const sql::ScriptTarget target = sql::script_target(arguments.dialect, arguments.schema);
  const Formats formats = arguments.formats ? parse_formats(*arguments.formats) : Formats{};
  if (arguments.schema && arguments.explain) throw UserError("--schema is for scripts; --explain prints none");
  if (arguments.json && !arguments.explain) throw UserError("--json is for --explain; a script is SQL");
  const SourceText source = read_program(arguments.program);
  CheckedProgram checked = parse_and_check(source, {parse_dims(arguments.dims), {}});
  const std::vector<DeclaredInput> inputs = checked.inputs;
  if (!checked.graph)
    throw UserError(fmt::format("{} leaves the extents of these labels open: {}; --dim {}=N gives one",
                                printable(source.name()), join_some(checked.unknown_extents, ", "),
                                checked.unknown_extents.front()));
  const Compiled compiled = compile(arguments.program, *std::move(checked.graph), {}, checked.initial);
  const ScalarBindings given = parse_scalars(arguments.scalars);
  if (arguments.explain) return print(explained(arguments, compiled, formats));
  const ScalarBindings scalars = bind_scalars(compiled.graph.scalars, given);
  print(sql_script(compiled, inputs, scalars, formats, target));
}

}  // namespace

void add_sql_command(CLI::App& app) {
  auto arguments = std::make_shared<SqlArguments>();
  CLI::App* command = app.add_subcommand("sql", "print a program as an SQL script");
  command->add_option("PROGRAM", arguments->program, "a .ein file, or - for standard input")->required();
  command->add_option("--dialect", arguments->dialect, "sqlite, postgres or duckdb (default sqlite)");
  command->add_option("--schema", arguments->schema,
                      "with --dialect postgres: where the tables are that the script reads and makes (default public)");
  command->add_option("--formats", arguments->formats,
                      "TENSOR=FORMAT,...: how tensors are cut into chunks; others as it costs least, or all of them "
                      "by tile-N; or element alone");
  command->add_flag("--explain", arguments->explain, "print the formats and what they cost instead");
  command->add_flag("--json", arguments->json, "with --explain: one JSON object");
  command->add_option("--dim", arguments->dims, "LABEL=N: set the extent of a label")->allow_extra_args(false);
  command->add_option("--scalar", arguments->scalars, "NAME=X: set a scalar")->allow_extra_args(false);
  command->callback([arguments] { print_script(*arguments); });
}

}  // namespace einrel::cli
