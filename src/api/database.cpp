#include <einrel/database.h>
#include <einrel/error.h>
#include <fmt/format.h>

#include "api/border.h"
#include "api/program_data.h"
#include "api/tensor_data.h"
#include "report/formats_report.h"
#include "run/calibrate_database.h"
#include "run/database_run.h"
#include "run/scalars.h"
#include "run/sql_script.h"

namespace einrel::api {
namespace {

DatabaseSource source_of(const std::string& name, const DatabaseInput& input) {
  if (const auto* const text = std::get_if<std::string>(&input)) {
    if (is_in_database(*text)) return *text;
    throw UserError(
        fmt::format("{0} is given as '{1}'; it is table:NAME, 'query:SELECT ...' or a tensor", name, *text));
  }
  const auto& tensor = std::get<Tensor>(input);
  return OutsideTensor{bound_input(name, {tensor.dtype(), tensor.shape()}),
                       [elements = TensorAccess::inside(tensor)](einrel::DType /*its own*/) { return elements; }};
}

}  // namespace

DatabaseAnalysis explain_sql(const Program& program, const SqlOptions& options) {
  return at_border([&] {
    const sql::Dialect dialect = sql::dialect_named(options.dialect);
    const Formats formats = options.formats ? parse_formats(*options.formats) : Formats{};
    const Compiled compiled = compiled_for(ProgramAccess::given(program), {});
    const ChosenFormats chosen = formats_of_script(compiled.graph, formats, dialect);
    return DatabaseAnalysis{formats_text(compiled, chosen), formats_json(compiled, chosen)};
  });
}

std::string to_sql(const Program& program, const SqlOptions& options) {
  return at_border([&] {
    const GivenProgram& given = ProgramAccess::given(program);
    const Compiled compiled = compiled_for(given, {});
    return sql_script(compiled, checked(given, {}).inputs, bind_scalars(compiled.graph.scalars, options.scalars),
                      options.formats ? parse_formats(*options.formats) : Formats{},
                      sql::script_target(options.dialect, options.schema));
  });
}

DatabaseResult run_in_database(const Program& program, const std::string& database,
                               const std::map<std::string, DatabaseInput>& inputs, const DatabaseOptions& options) {
  return at_border([&] {
    const GivenProgram& given = ProgramAccess::given(program);
    DatabaseRequest request{.database = database, .inputs = {}};
    for (const auto& [name, input] : inputs) request.inputs.emplace(name, source_of(name, input));
    std::vector<std::string> wanted;
    for (const auto* const tables : {&options.tables, &options.chunks}) {
      for (const auto& [tensor, table] : *tables) {
        if (is_in_database(table))
          throw UserError(fmt::format(
              "{} becomes '{}'; the name of a table stands there alone, without table: or chunks:", tensor, table));
        request.tables.push_back({tensor, table, tables == &options.chunks});
        wanted.push_back(tensor);
      }
    }
    request.scalars = options.scalars;
    request.formats = options.formats;
    request.steps = options.steps.value_or(1);
    request.analyze = options.analyze;
    request.stop = options.stop;
    if (request.steps < 1) throw UserError("the option 'steps' is 1 or more");
    check_request(request);
    const CheckedProgram declared = checked(given, {});
    const auto compile_for = [&](const std::map<std::string, BoundInput>& types) {
      Compiled compiled = compiled_for(given, types, wanted);
      if (options.steps && compiled.graph.steps.states.empty())
        throw UserError("the option 'steps' is for programs with state, which this one has not");
      return compiled;
    };
    DatabaseProgram there({given.source.name(), declared.inputs, declared.tensors, compile_for}, request);
    const sql::DatabaseResults results = there.run();
    DatabaseResult result{.outputs = {}, .steps = results.steps};
    for (const auto& [name, tensor] : results.tensors) result.outputs.emplace(name, TensorAccess::outside(tensor));
    if (options.analyze)
      result.analysis = {formats_analysis_text(there.compiled(), *there.formats(), results),
                         formats_analysis_json(there.compiled(), *there.formats(), there.read(), results)};
    return result;
  });
}

std::string calibrate_database(const std::string& database, const std::stop_token& stop) {
  return at_border([&] { return keep_calibrated_database(database, stop); });
}

}  // namespace einrel::api
