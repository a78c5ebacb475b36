#include "database_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "arguments.h"
#include "base/error.h"
#include "base/same_file.h"
#include "base/text.h"
#include "output.h"
#include "program_input.h"
#include "report/formats_report.h"
#include "run/compile.h"
#include "run/database_run.h"
#include "run/stored_input.h"
#include "run/summary.h"
#include "sql/program/user_tables.h"
#include "tensor/tensor_file.h"

namespace einrel::cli {
namespace {

/// Where outputs go.
struct Destinations {
  std::vector<sql::OutputTable> tables;
  std::vector<std::pair<std::string, FileRef>> files;
  std::vector<std::string> wanted;
};

Destinations destinations_of(const std::vector<std::string>& given) {
  Destinations found;
  for (const auto& [name, place] : parse_assignments("--out", given)) {
    found.wanted.push_back(name);
    const std::optional<sql::TypedSource> table = sql::typed_source(place);
    if (table && (table->is_query || table->is_sparse))
      throw UserError(fmt::format("--out {} takes table:NAME, chunks:NAME or a file", printable(name)));
    if (table) {
      found.tables.push_back({name, table->text, table->is_chunks});
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

void say(const Destinations& destinations, const EinGraph& graph, const sql::DatabaseResults& results) {
  if (!graph.steps.states.empty()) print(fmt::format("{}\n", counted(static_cast<std::size_t>(results.steps), "step")));
  const auto said = [&](const std::string& name, const std::string& where) {
    for (const VertexId id : graph.outputs) {
      if (graph[id].name == name)
        print(fmt::format("wrote {} {} {} to {}\n", name, name_of(graph[id].dtype), to_string(graph[id].bound), where));
    }
  };
  for (const auto& [name, table, in_chunks] : destinations.tables)
    said(name, fmt::format("table '{}'{}", printable(table), in_chunks ? ", in chunks" : ""));
  for (const auto& [name, file] : destinations.files) said(name, to_string(file));
  if (!destinations.wanted.empty()) return;
  for (const VertexId id : program_outputs(graph)) {
    const Vertex& vertex = graph[id];
    print(fmt::format(
        "{}\n", summary_line(vertex.name, vertex.dtype, vertex.bound, summarize(results.tensors.at(vertex.name)))));
  }
}

DatabaseRequest request_of(const RunArguments& arguments) {
  DatabaseRequest request{.database = *arguments.database, .inputs = {}};
  for (const auto& [name, given] : parse_assignments("--in", arguments.inputs)) request.inputs[name] = given;
  request.tables = destinations_of(arguments.outputs).tables;
  request.scalars = parse_scalars(arguments.scalars);
  request.analyze = arguments.execution.analyze;
  request.formats = arguments.formats;
  request.steps = static_cast<std::int64_t>(times_of(arguments.execution));
  return request;
}

/// Opens the files among the inputs; `files` must outlive the request.
void open_files(DatabaseRequest& request, OpenInputs& files) {
  for (auto& [name, source] : request.inputs) {
    const auto given = std::get<std::string>(source);
    if (is_in_database(given)) continue;
    const FileRef ref = parse_file_ref(given);
    std::error_code unknown;
    if (!std::filesystem::exists(ref.path, unknown) && !unknown)
      throw UserError(
          fmt::format("there is no file '{}'; what is in the database is {}=table:NAME or {}='query:SELECT ...'",
                      printable(given, 60), printable(name), printable(name)));
    const StoredTensor& file = files.emplace(name, open_tensor(ref)).first->second;
    source = OutsideTensor{describe(file), [&file](DType dtype) { return read(file, dtype); }};
  }
}

/// No file that is read may be lost: those of the database least of all.
void refuse_overwriting(const RunArguments& arguments, const Destinations& destinations) {
  std::vector<std::string> written;
  for (const auto& [name, file] : destinations.files) written.push_back(file.path);
  std::vector<std::string> read = sql::files_of_database(*arguments.database);
  for (const auto& [name, given] : parse_assignments("--in", arguments.inputs)) {
    if (!is_in_database(given)) read.push_back(parse_file_ref(given).path);
  }
  read.push_back(arguments.program);
  refuse_same_file(written, read, "name another file");
}

DatabaseProgram::Front front_of(const RunArguments& arguments, const SourceText& source,
                                const std::vector<std::string>& wanted) {
  const std::map<std::string, std::int64_t> dims = parse_dims(arguments.dims);
  const CheckedProgram declared = parse_and_check(source, {dims, {}});
  const auto compile_for = [&source, &arguments, dims, wanted](const std::map<std::string, BoundInput>& inputs) {
    CheckedProgram checked = parse_and_check(source, {dims, inputs});
    if (!checked.graph) check_output_names(wanted, checked.tensors);
    EinGraph graph = require_graph(checked, source, std::nullopt, missing_in_database);
    if (arguments.execution.steps.steps && graph.steps.states.empty())
      throw UserError("--steps is for programs with state, which this one has not");
    return compile(arguments.program, std::move(graph), wanted, checked.initial);
  };
  return {arguments.program, declared.inputs, declared.tensors, compile_for};
}

}  // namespace

void refuse_tables(const std::string& option, const std::vector<std::string>& given) {
  for (const std::string& each : given) {
    const std::string place = each.substr(each.find('=') + 1);  // all of it, where there is none
    if (is_in_database(place))
      throw UserError(
          fmt::format("{} {} is in a database; say in which: --database sqlite:FILE or --database "
                      "postgresql://HOST/DATABASE",
                      option, printable(each)));
  }
}

void check_database_options(const RunArguments& arguments) {
  if (is_tra(arguments.program)) throw UserError("--database runs .ein programs");
  parse_dims(arguments.dims);
  const DatabaseRequest request = request_of(arguments);
  check_request(request);
  if (arguments.execution.json && !arguments.execution.analyze)
    throw UserError("--json with --database is for --analyze; add that");
}

void run_in_database(const RunArguments& arguments) {
  const SourceText source = read_program(arguments.program);
  const Destinations destinations = destinations_of(arguments.outputs);
  DatabaseRequest request = request_of(arguments);
  OpenInputs files;
  open_files(request, files);
  refuse_overwriting(arguments, destinations);
  request.note = [](const std::string& note) { print_error(fmt::format("note: {}\n", note)); };
  DatabaseProgram program(front_of(arguments, source, destinations.wanted), request);
  check_files(destinations, program.graph());
  std::vector<AtomicFile> written;  // they appear when the database has what is its own
  const sql::DatabaseResults results = program.run([&](const sql::DatabaseResults& computed) {
    std::vector<std::pair<FileRef, Tensor>> tensors;
    for (const auto& [name, file] : destinations.files) tensors.emplace_back(file, computed.tensors.at(name));
    written = complete_files(tensors);
  });
  for (AtomicFile& file : written) file.commit();
  if (arguments.execution.json)
    return print(formats_analysis_json(program.compiled(), *program.formats(), program.read(), results) + "\n");
  print(read_text(program.read()));
  say(destinations, program.graph(), results);
  if (arguments.execution.analyze) print("\n" + formats_analysis_text(program.compiled(), *program.formats(), results));
}

}  // namespace einrel::cli
