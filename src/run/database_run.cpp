#include "run/database_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/print.h"
#include "einsum/graph/vertex_facts.h"
#include "plan/plan.h"
#include "run/database_room.h"
#include "run/database_weights.h"
#include "run/scalars.h"
#include "sql/program/chunk_tables.h"

namespace einrel {
namespace {

/// The states of a program by name, as the vertices of its inputs.
std::map<std::string, State> states_of(const EinGraph& graph) {
  std::map<std::string, State> states;
  for (const State& state : graph.steps.states) states.emplace(graph[state.now].name, state);
  return states;
}

/// Throws UserError for an input that is none of these.
void check_names(const std::string& program, const DatabaseRequest& request, const std::vector<std::string>& known) {
  for (const auto& [name, source] : request.inputs) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = did_you_mean(name, known);
    throw UserError(
        fmt::format("{} has no input '{}'{}", printable(program), printable(name), near.empty() ? "" : "; " + near));
  }
}

bool has_tensor(const EinGraph& graph, const std::string& name) {
  return std::any_of(graph.vertices.begin(), graph.vertices.end(),
                     [&](const Vertex& vertex) { return vertex.name == name; });
}

/// Those of tensors that the graph has.
Formats formats_within(const Formats& formats, const EinGraph& graph) {
  Formats within = formats;
  std::erase_if(within.tensors, [&](const auto& format) { return !has_tensor(graph, format.first); });
  return within;
}

/// Those of a step: all but those of tensors that only the first values of states are computed of.
Formats formats_of_step(const Formats& formats, const Compiled& compiled) {
  Formats own = formats;
  if (!compiled.initial) return own;
  std::erase_if(own.tensors, [&](const auto& format) {
    return has_tensor(compiled.initial->graph, format.first) && !has_tensor(compiled.graph, format.first);
  });
  return own;
}

/// What gives those states their first values that no input gives one; nothing where there are none.
std::optional<EinGraph> first_values(const EinGraph& initial, const std::map<std::string, DatabaseSource>& given) {
  EinGraph first = initial;
  first.outputs.clear();
  first.steps.states.clear();
  for (const State& state : initial.steps.states) {
    if (given.count(initial[state.now].name) != 0) continue;
    first.steps.states.push_back({state.now, first.outputs.size()});
    first.outputs.push_back(initial.outputs[*state.next]);
  }
  first.steps.feedback = first.outputs.size();
  return first.outputs.empty() ? std::nullopt : std::optional(needed_for_outputs(first));
}

/// The labels that name the columns of a state's tables.
std::vector<std::string> labels_of_state(const EinGraph& graph, const State& state) {
  return sql::dimension_names(state.next ? graph[graph.outputs[*state.next]] : graph[state.now]);
}

/// Throws UserError where a state cannot begin with something of that type.
void check_state(const Vertex& state, const BoundInput& type) {
  if (type.shape != state.bound)
    throw UserError(fmt::format("{} is {}, but the state {} is {}", type.origin, to_string(type.shape), state.name,
                                to_string(state.bound)));
  const std::vector<DType>& types = type.readable_as;
  if (std::find(types.begin(), types.end(), state.dtype) == types.end())
    throw UserError(fmt::format("{} is {}, but the state {} is {}", type.origin, type.stored_type, state.name,
                                name_of(state.dtype)));
}

/// A table that is read is in a file that is there; a name that is mistyped would have none.
sql::MissingFile missing_file(const DatabaseRequest& request) {
  const bool reads = std::any_of(request.inputs.begin(), request.inputs.end(),
                                 [](const auto& input) { return std::holds_alternative<std::string>(input.second); });
  return reads ? sql::MissingFile::refused : sql::MissingFile::made;
}

/// Before the disk is full of zeros.
void check_sizes(const EinGraph& graph) {
  constexpr double most_bytes = 1e12;
  for (const Vertex& vertex : graph.vertices) {
    if (bytes_of(vertex) > most_bytes)
      throw UserError(
          fmt::format("{} {} {} has {}, more than 1 TB, in chunks, which have all zeros; do its keys say the "
                      "extents that you mean? --formats element keeps no zeros of sparse tables",
                      vertex.name, name_of(vertex.dtype), to_string(vertex.bound), bytes_text(bytes_of(vertex))));
  }
}

}  // namespace

std::string missing_in_database(const std::string& declaration, const std::string& name) {
  return fmt::format("missing {0}; give {1} as {1}=table:NAME, {1}='query:SELECT ...' or a file", declaration, name);
}

bool is_in_database(const std::string& source) { return sql::typed_source(source).has_value(); }

void check_request(const DatabaseRequest& request) {
  sql::check_database_url(request.database);
  const bool is_element = request.formats && parse_formats(*request.formats).is_element;
  if (request.analyze && is_element) throw UserError("--analyze is of chunks; with --formats element there are none");
  for (const sql::OutputTable& output : request.tables) {
    if (output.table.empty())
      throw UserError(fmt::format("the table that {} becomes has no name", printable(output.tensor)));
    if (output.in_chunks && is_element)
      throw UserError(fmt::format("{} cannot become a table of chunks: with --formats element there are none",
                                  printable(output.tensor)));
  }
}

DatabaseProgram::DatabaseProgram(const Front& front, const DatabaseRequest& request)
    : database_(sql::open_database(request.database, missing_file(request))),
      interrupt_(request.stop, [this] { database_->interrupt(); }),
      tables_(request.tables),
      formats_(request.formats ? parse_formats(*request.formats) : Formats{}),
      steps_(request.steps),
      stop_(request.stop),
      note_(request.note) {
  if (stop_.stop_requested()) throw sql::stopped();
  check_names(front.name, request, front.tensors);
  transaction_.emplace(*database_, tables_.empty() ? sql::Access::reads : sql::Access::writes);
  open_tables(front, request);
  std::map<std::string, BoundInput> types;
  for (const DeclaredInput& input : front.declared) {
    const auto given = request.inputs.find(input.name);
    if (given == request.inputs.end()) continue;
    if (const auto* const tensor = std::get_if<OutsideTensor>(&given->second)) {
      types[input.name] = tensor->type;
      continue;
    }
    types[input.name] = type_of(input.name, std::get<sql::UserTable>(inputs_.at(input.name)), input.labels.size());
    types[input.name].is_complex = input.is_complex;  // parts are keys there
  }
  compiled_ = front.compile(types);
  if (formats_.is_element && !compiled_.graph.steps.states.empty())
    throw UserError(fmt::format("{} has state; --formats element runs programs without", printable(front.name)));
  open_states(request);
  if (compiled_.initial) first_ = first_values(compiled_.initial->graph, request.inputs);
  add_tensors(front, request);
  scalars_ = bind_scalars(compiled_.graph.scalars, request.scalars);
  if (!formats_.is_element) {
    check_sizes(compiled_.graph);
    if (first_) check_sizes(*first_);
    weights_ = weights_for(database_->server(), database_->dialect());
    weights_.workers = static_cast<double>(database_->workers());
    std::set<std::string> kept;
    for (const sql::OutputTable& table : tables_) {
      if (table.in_chunks) kept.insert(table.tensor);
    }
    chosen_ = choose_formats(compiled_.graph, formats_of_step(formats_, compiled_), weights_, kept);
  }
  describe_tables();
  check_room();
}

void DatabaseProgram::describe_tables() {
  const auto describe = [&](const EinGraph& graph) {
    for (const Vertex& vertex : graph.vertices) {
      const auto table =
          std::find_if(read_.begin(), read_.end(), [&](const ReadTable& each) { return each.tensor == vertex.name; });
      if (table != read_.end()) table->type = fmt::format("{} {}", name_of(vertex.dtype), to_string(vertex.bound));
    }
  };
  describe(compiled_.graph);
  if (first_) describe(*first_);
  std::erase_if(read_, [](const ReadTable& table) { return table.type.empty(); });  // nothing needs it
}

void DatabaseProgram::check_room() {
  RoomAsked asked{.is_element = formats_.is_element, .sparse = {}, .tables = tables_, .kept_bytes = 0};
  for (const auto& [name, input] : inputs_) {
    const auto* const table = std::get_if<sql::UserTable>(&input);
    if (table == nullptr) continue;
    asked.kept_bytes += table->kept_bytes;
    if (table->is_sparse) asked.sparse.insert(name);
  }
  if (first_) say(check_database_room(*database_, *first_, asked, "the first values of states take"));
  say(check_database_room(*database_, compiled_.graph, asked, "the run takes"));
}

void DatabaseProgram::say(const std::string& note) const {
  if (note_ && !note.empty()) note_(note);
}

void DatabaseProgram::open_tables(const Front& front, const DatabaseRequest& request) {
  for (const DeclaredInput& input : front.declared) {
    const auto given = request.inputs.find(input.name);
    if (given == request.inputs.end()) continue;
    if (const auto* const source = std::get_if<std::string>(&given->second)) open(input.name, *source, input.labels);
  }
}

void DatabaseProgram::open(const std::string& name, const std::string& source, const std::vector<std::string>& labels) {
  const auto check = [this](const std::string& title, const sql::KeptRows& first, const sql::CountRows& count) {
    say(check_room_of_rows(*database_, title, first, count));
  };
  const sql::UserTable table = sql::open_table(*database_, source, labels, check);
  read_.push_back({name, "", table.title, sql::layout_text(table, labels)});
  inputs_.emplace(name, table);
}

/// What a table of numbers holds. Where a column has no key, for want of rows, another may say its extent; what rows
/// have instead of a key is named when they are gathered.
BoundInput DatabaseProgram::type_of_numbers(const sql::UserTable& table, std::size_t rank) {
  BoundInput type{sql::extents_of(*database_, table, rank), "numbers",
                  std::vector<DType>(all_dtypes.begin(), all_dtypes.end()), table.title, table.is_sparse};
  if (table.layout != sql::Layout::elements) return type;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t extent = type.shape[d].value();
    type.is_least = type.is_least || extent == 0;
    type.largest_keys.push_back(extent == 0 ? "" : fmt::format("{}={}", printable(table.columns[d].name), extent - 1));
  }
  if (!table.is_sparse) type.remedy = sql::sparse_remedy;
  return type;
}

/// What a table holds. Chunks have a type, and a format, which stays theirs.
BoundInput DatabaseProgram::type_of(const std::string& name, const sql::UserTable& table, std::size_t rank) {
  if (table.layout != sql::Layout::chunks) return type_of_numbers(table, rank);
  if (formats_.is_element)
    throw UserError(fmt::format("{} holds chunks, which --formats element has not; leave that out", table.title));
  const sql::StoredChunks chunks = sql::chunks_in(*database_, table);
  const auto [given, is_new] = formats_.tensors.try_emplace(name, lying_format(chunks.format, chunks.bound));
  if (!is_new && cuts_in(given->second, chunks.bound) != chunks.format)
    throw UserError(fmt::format("--formats {}={}: {} holds it as {}; leave that out", printable(name),
                                given->second.name, table.title, format_text(chunks.format, chunks.bound)));
  given->second = lying_format(chunks.format, chunks.bound);
  return {chunks.bound, std::string(name_of(chunks.dtype)), {chunks.dtype}, table.title};
}

void DatabaseProgram::open_states(const DatabaseRequest& request) {
  for (const auto& [name, state] : states_of(compiled_.graph)) {
    const auto given = request.inputs.find(name);
    if (given == request.inputs.end()) continue;
    const auto* const source = std::get_if<std::string>(&given->second);
    if (source == nullptr) continue;
    open(name, *source, labels_of_state(compiled_.graph, state));
    const auto& table = std::get<sql::UserTable>(inputs_.at(name));
    if (table.layout == sql::Layout::chunks) check_state(compiled_.graph[state.now], type_of(name, table, 0));
  }
}

/// Those from outside; and looks that all inputs are there, and no others.
void DatabaseProgram::add_tensors(const Front& front, const DatabaseRequest& request) {
  const std::map<std::string, State> states = states_of(compiled_.graph);
  std::vector<std::string> known;
  std::vector<std::string> missing;
  const auto add = [&](const EinGraph& graph) {
    for (const Vertex& vertex : graph.vertices) {
      if (!is_input(vertex)) continue;
      known.push_back(vertex.name);
      if (inputs_.count(vertex.name) != 0) continue;
      const auto given = request.inputs.find(vertex.name);
      if (given != request.inputs.end()) {
        const auto& tensor = std::get<OutsideTensor>(given->second);
        check_state(vertex, tensor.type);  // of an input compiling has looked at it
        inputs_.emplace(vertex.name, tensor.read(vertex.dtype));
      } else if (states.count(vertex.name) == 0) {
        missing.push_back(missing_in_database(formula(vertex, graph), vertex.name));
      }
    }
  };
  add(compiled_.graph);
  if (first_) add(*first_);
  if (!missing.empty()) throw UserError(fmt::format("{}", fmt::join(missing, "\n")));
  for (const DeclaredInput& input : front.declared) known.push_back(input.name);
  check_names(front.name, request, known);
}

sql::DatabaseResults DatabaseProgram::run(const std::function<void(const sql::DatabaseResults&)>& before_commit) {
  sql::DatabaseRun run{.graph = compiled_.graph,
                       .scalars = scalars_,
                       .inputs = inputs_,
                       .outputs = tables_,
                       .chunked = {},
                       .steps = steps_,
                       .stop = stop_,
                       .is_element = formats_.is_element,
                       .before_commit = before_commit};
  if (chosen_) run.chunked = chunked_graph(compiled_.graph, *chosen_);
  if (first_) {
    const ChosenFormats chosen = choose_formats(*first_, formats_within(formats_, *first_), weights_);
    run.first.emplace(sql::FirstValues{*first_, chunked_graph(*first_, chosen)});
  }
  return sql::run(*transaction_, run);
}

}  // namespace einrel
