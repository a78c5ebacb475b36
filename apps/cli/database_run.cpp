#include "database_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "arguments.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "engine/compile.h"
#include "engine/report/summary.h"
#include "engine/scalars.h"
#include "engine/stored_input.h"
#include "output.h"
#include "program_input.h"
#include "sql/run.h"
#include "tensor/tensor_file.h"

namespace einrel::cli {
namespace {

constexpr std::string_view table_prefix = "table:";

bool is_in_database(const std::string& given) { return given.starts_with(table_prefix) || given.starts_with("query:"); }

/// What the command line binds inputs to.
struct Bound {
  std::map<std::string, sql::UserTable> tables;
  OpenInputs files;
};

Bound bind(sql::Database& database, const DatabaseArguments& arguments, const CheckedProgram& checked) {
  Bound bound;
  for (const auto& [name, given] : parse_assignments("--in", arguments.inputs)) {
    const auto declared =
        std::find_if(checked.inputs.begin(), checked.inputs.end(),
                     [&, &wanted = name](const DeclaredInput& input) { return input.name == wanted; });
    if (declared == checked.inputs.end()) {
      std::vector<std::string> known;
      for (const DeclaredInput& input : checked.inputs) known.push_back(input.name);
      const std::string near = did_you_mean(name, known);
      throw UserError(fmt::format("{} has no input '{}'{}", printable(arguments.program), printable(name),
                                  near.empty() ? "" : "; " + near));
    }
    if (is_in_database(given)) {
      bound.tables.emplace(name, sql::open_table(database, given, declared->labels));
    } else {
      bound.files.emplace(name, open_tensor(parse_file_ref(given)));
    }
  }
  return bound;
}

/// The program for the extents that files and tables have.
Compiled compile_for(sql::Database& database, const Bound& bound, const DatabaseArguments& arguments,
                     const SourceText& source, const CheckedProgram& declared, const std::vector<std::string>& wanted) {
  Environment environment{parse_dims(arguments.dims), {}};
  for (const auto& [name, file] : bound.files) environment.inputs[name] = describe(file);
  for (const DeclaredInput& input : declared.inputs) {
    const auto table = bound.tables.find(input.name);
    if (table == bound.tables.end()) continue;
    environment.inputs[input.name] = {sql::extents_of(database, table->second, input.labels.size()), "numbers",
                                      std::vector<DType>(all_dtypes.begin(), all_dtypes.end()), table->second.title};
  }
  CheckedProgram checked = parse_and_check(source, environment);
  if (!checked.graph) check_output_names(wanted, checked.tensors);
  Compiled compiled = compile(arguments.program, require_graph(checked, source, std::nullopt), wanted, checked.initial);
  if (!compiled.graph.steps.states.empty())
    throw UserError(fmt::format("{} has state; --database runs programs without", printable(source.name())));
  return compiled;
}

std::map<std::string, sql::DatabaseInput> database_inputs(const Bound& bound, const Compiled& compiled) {
  std::map<std::string, sql::DatabaseInput> inputs;
  std::vector<std::string> missing;
  for (const ProgramInput& input : inputs_of(AnyProgram(compiled))) {
    if (const auto table = bound.tables.find(input.name); table != bound.tables.end()) {
      inputs.emplace(input.name, table->second);
    } else if (const auto file = bound.files.find(input.name); file != bound.files.end()) {
      inputs.emplace(input.name, read(file->second, input.dtype));
    } else {
      missing.push_back(
          fmt::format("missing {0}; bind it with --in {1}=table:NAME, --in {1}='query:SELECT ...' or --in {1}=FILE",
                      input.declaration, input.name));
    }
  }
  if (!missing.empty()) throw UserError(join_some(missing, "\n"));
  return inputs;
}

/// Where outputs go.
struct Destinations {
  std::vector<std::pair<std::string, std::string>> tables;
  std::vector<std::pair<std::string, FileRef>> files;
  std::vector<std::string> wanted;
};

Destinations destinations_of(const std::vector<std::string>& given) {
  Destinations found;
  for (const auto& [name, place] : parse_assignments("--out", given)) {
    found.wanted.push_back(name);
    if (place.starts_with("query:"))
      throw UserError(fmt::format("--out {} takes table:NAME or a file", printable(name)));
    if (place.starts_with(table_prefix)) {
      found.tables.emplace_back(name, place.substr(table_prefix.size()));
      if (found.tables.back().second.empty())
        throw UserError(fmt::format("--out {}=table: names no table", printable(name)));
    } else {
      found.files.emplace_back(name, parse_file_ref(place));
    }
  }
  return found;
}

void check_files(const Destinations& destinations, const EinGraph& graph) {
  std::vector<std::pair<FileRef, DType>> files;
  for (const auto& [name, file] : destinations.files) {
    for (const VertexId id : graph.outputs) {
      if (graph[id].name == name) files.emplace_back(file, graph[id].dtype);
    }
  }
  check_writable(files);
}

void say(const Destinations& destinations, const EinGraph& graph, const std::map<std::string, Tensor>& results) {
  const auto said = [&](const std::string& name, const std::string& where) {
    for (const VertexId id : graph.outputs) {
      if (graph[id].name == name)
        print(fmt::format("wrote {} {} {} to {}\n", name, name_of(graph[id].dtype), to_string(graph[id].bound), where));
    }
  };
  for (const auto& [name, table] : destinations.tables) said(name, fmt::format("table '{}'", printable(table)));
  for (const auto& [name, file] : destinations.files) said(name, to_string(file));
  if (!destinations.wanted.empty()) return;
  for (const VertexId id : graph.outputs)
    print(fmt::format(
        "{}\n", summary_line(graph[id].name, graph[id].dtype, graph[id].bound, summarize(results.at(graph[id].name)))));
}

}  // namespace

void check_database_options(const DatabaseArguments& arguments) {
  sql::check_database_url(arguments.database);
  if (is_tra(arguments.program)) throw UserError("--database runs .ein programs");
  if (!arguments.formats.empty()) sql::parse_formats(arguments.formats);
  parse_dims(arguments.dims);
  parse_scalars(arguments.scalars);
  parse_assignments("--in", arguments.inputs);
  destinations_of(arguments.outputs);
}

void run_in_database(const DatabaseArguments& arguments) {
  const SourceText source = read_program(arguments.program);
  const Destinations destinations = destinations_of(arguments.outputs);
  const CheckedProgram declared = parse_and_check(source, {parse_dims(arguments.dims), {}});
  const std::unique_ptr<sql::Database> opened = sql::open_database(arguments.database);
  sql::Database& database = *opened;
  const Bound bound = bind(database, arguments, declared);
  const Compiled compiled = compile_for(database, bound, arguments, source, declared, destinations.wanted);
  check_files(destinations, compiled.graph);
  const ScalarBindings scalars = bind_scalars(compiled.graph.scalars, parse_scalars(arguments.scalars));
  sql::DatabaseRun run{.graph = compiled.graph,
                       .scalars = scalars,
                       .inputs = database_inputs(bound, compiled),
                       .outputs = destinations.tables,
                       .formats = {}};
  if (!arguments.formats.empty()) run.formats = sql::parse_formats(arguments.formats);
  const std::map<std::string, Tensor> results = sql::run(database, run);
  std::vector<std::pair<FileRef, Tensor>> files;
  for (const auto& [name, file] : destinations.files) files.emplace_back(file, results.at(name));
  write_tensors(files);
  say(destinations, compiled.graph, results);
}

}  // namespace einrel::cli
