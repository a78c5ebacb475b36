#include "sql/program/run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "sql/functions/array_bytes.h"
#include "sql/program/chunk_tables.h"
#include "sql/program/plain_run.h"
#include "tra/formats.h"

namespace einrel::sql {
namespace {

/// A tensor in chunks, from step to step.
struct KeptTable {
  std::string name;  ///< not quoted; of a temporary table
  std::vector<std::int64_t> parts;
};

/// A program in a database, step by step, in a transaction that is open.
class StepByStep {
 public:
  StepByStep(Database& database, const DatabaseRun& run)
      : database_(database),
        run_(run),
        dialect_(database.dialect()),
        places_(output_places(run, database)),
        taken_(database.names()) {}

  DatabaseResults run() {
    if (is_worth_sharing(run_.graph, run_.chunked.cuts) ||
        (run_.first && is_worth_sharing(run_.first->graph, run_.first->chunked.cuts)))
      sharing_ = database_.share();
    take_given_states();
    if (states_.size() < run_.graph.steps.states.size()) take_first_values();
    drop_spare();  // of another program
    DatabaseResults results{.tensors = {}, .steps = 0};
    while (true) {
      const ChunkScript made = compute(run_.graph, run_.chunked, results.steps);
      ++results.steps;
      if (results.steps == run_.steps || is_done(made)) {
        put_out(made, results.tensors);
        break;
      }
      advance(run_.graph, made);
    }
    drop(step_tables_);
    for (const auto* const kept : {&inputs_, &states_}) {
      for (const auto& [name, table] : *kept) drop({table.name});
    }
    drop_spare();
    if (sharing_) execute(Statement{"", "DROP SCHEMA " + sharing_->schema});
    results.seconds = std::move(seconds_);
    return results;
  }

 private:
  std::string temporary(const std::string& name) const { return chunk_table(dialect_, sharing_, name); }

  /// Adds the time of an action to that of its work.
  template <class Action>
  void timed(const Work& work, Action&& action) {
    const auto start = std::chrono::steady_clock::now();
    action();
    seconds_[work] += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  void execute(const Statement& statement) {
    if (run_.stop.stop_requested()) throw stopped();
    database_.execute(statement.text);
  }
  void execute(const Script& script) {
    for (const Statement& statement : script) timed(statement.work, [&] { execute(statement); });
  }

  void drop(const std::vector<std::string>& tables) {
    for (const std::string& table : tables) execute({{"", "DROP TABLE " + temporary(table)}});
  }

  /// Tables that a step needs no more, for the next one to fill again: each one that a transaction of PostgreSQL makes
  /// keeps three of the server's few thousand locks until that ends, even when it is gone.
  void set_aside(const std::vector<std::string>& tables) {
    for (const std::string& table : tables) {
      const auto filled = filled_.find(temporary(table));
      if (dialect_ != Dialect::postgres || filled == filled_.end()) {
        drop({table});
        continue;
      }
      execute({{"", "TRUNCATE TABLE " + temporary(table)}});
      spare_.insert(*filled);
    }
  }

  void drop_spare() {
    for (const auto& [table, key_arity] : std::exchange(spare_, {})) execute({{"", "DROP TABLE " + table}});
    filled_.clear();
  }

  /// With what was set aside in place of new tables.
  Script with_spare(Script script) {
    Script found;
    for (Statement& statement : script) {
      if (statement.fills) {
        const auto& [table, key_arity, query] = *statement.fills;
        filled_.erase(table);
        if (!query.empty()) filled_[table] = key_arity;
        if (const auto spare = spare_.find(table); spare != spare_.end()) {
          if (spare->second == key_arity && !query.empty()) {
            statement.text = fmt::format("INSERT INTO {}\n{}", table, query);
          } else {
            found.push_back({"", "DROP TABLE " + table});
          }
          spare_.erase(spare);
        }
      }
      found.push_back(std::move(statement));
    }
    return found;
  }

  /// Names that no table has, but perhaps one that was set aside.
  TableNames names() const {
    std::vector<std::string> taken = taken_;
    for (const auto* const kept : {&inputs_, &states_}) {
      for (const auto& [name, table] : *kept) taken.push_back(table.name);
    }
    return TableNames(taken, most_name_bytes(dialect_));
  }

  KeptTable bring(const EinGraph& graph, std::size_t v, std::vector<std::int64_t> parts) {
    const Vertex& vertex = graph.vertices[v];
    KeptTable kept{names().fresh(vertex.name), std::move(parts)};
    std::vector<DimensionCut> cut;
    for (const std::int64_t each : kept.parts) cut.push_back({each, 1});
    const DatabaseInput& input = run_.inputs.at(vertex.name);
    timed({WorkKind::compute, vertex.name, {}}, [&] {
      if (const auto* const table = std::get_if<UserTable>(&input)) {
        bring_table(*table, vertex, cut, kept.name);
      } else {
        check_chunk_bytes(vertex.dtype, chunk_bound(cut, vertex.bound));
        const Relation chunks = cut_tensor(std::get<Tensor>(input), cut_of_all(cut));
        database_.store_chunks(temporary(kept.name), chunks, cut.size());
      }
    });
    return kept;
  }

  /// What only reads writes no tables but temporary ones.
  void bring_table(const UserTable& from, const Vertex& vertex, const std::vector<DimensionCut>& cut,
                   const std::string& name) {
    const std::string brought = temporary_table(dialect_, name);
    Script script = from.layout == Layout::chunks
                        ? copy_chunks_script(from, vertex.name, {vertex.dtype, vertex.bound, cut}, brought, dialect_)
                        : gather_script(from, vertex.name, vertex.dtype, vertex.bound, cut, brought, dialect_);
    if (sharing_) {
      script.push_back({"", fmt::format("{} AS SELECT * FROM {}", create_chunks(dialect_, temporary(name)), brought)});
      script.push_back({"", "DROP TABLE " + brought});
    }
    if (!from.kept.empty()) script.push_back({"", "DROP TABLE " + from.kept});
    for (const Statement& statement : script) execute(statement);  // the time is its caller's
  }

  /// States that begin with an input of the run.
  void take_given_states() {
    const GraphCuts& cuts = run_.chunked.cuts;
    for (const State& state : run_.graph.steps.states) {
      const std::string& name = run_.graph[state.now].name;
      if (run_.inputs.count(name) == 0) continue;
      KeptTable kept = bring(run_.graph, state.now.index, cuts.parts[state.now.index]);
      states_.emplace(name, std::move(kept));
    }
  }

  /// One step of the other program, whose next values are the first ones.
  void take_first_values() {
    const std::map<Work, double> before = seconds_;
    advance(run_.first->graph, compute(run_.first->graph, run_.first->chunked, 0));
    double all = 0;
    for (const auto& [work, seconds] : seconds_) all += seconds;
    for (const auto& [work, seconds] : before) all -= seconds;
    seconds_ = before;
    seconds_[{}] += all;  // of another program
  }

  /// Inputs and states stay as they are cut.
  GraphCuts cuts_of(const EinGraph& graph, GraphCuts cuts) {
    for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
      const std::string& name = graph.vertices[v].name;
      if (!is_input(graph.vertices[v])) continue;
      if (is_state(graph, v)) {
        if (const auto kept = states_.find(name); kept != states_.end()) cuts.parts[v] = kept->second.parts;
        continue;
      }
      if (inputs_.count(name) == 0) {
        KeptTable kept = bring(graph, v, cuts.parts[v]);
        inputs_.emplace(name, std::move(kept));
      }
      cuts.parts[v] = inputs_.at(name).parts;
    }
    return cuts;
  }

  ChunkScript compute(const EinGraph& graph, const ChunkedGraph& asked, std::int64_t steps_done) {
    const ChunkedGraph chunked{cuts_of(graph, asked.cuts), asked.reasons};
    std::map<std::string, std::string> stored;
    for (const Vertex& vertex : graph.vertices) {
      if (is_input(vertex)) stored[vertex.name] = "";  // of a state before its first value, which nothing reads
    }
    for (const auto* const kept : {&inputs_, &states_}) {
      for (const auto& [name, table] : *kept) stored[name] = temporary(table.name);
    }
    ScalarBindings scalars = run_.scalars;
    for (const ScalarDeclaration& scalar : graph.scalars) {
      if (scalar.is_iteration) scalars[scalar.name] += static_cast<double>(steps_done);  // counts on
    }
    TableNames made = names();
    database_.kernels().forget();  // those of the step before: steps that count have others each time
    ChunkScript script = vertex_script(graph, chunked, scalars, stored, made, database_.kernels(), dialect_, sharing_);
    script.statements = with_spare(std::move(script.statements));
    execute(script.statements);
    step_tables_ = made.given();
    return script;
  }

  /// The next values become those of now; what else the step made goes.
  void advance(const EinGraph& graph, const ChunkScript& made) {
    std::map<std::string, KeptTable> next;
    for (const State& state : graph.steps.states) {
      if (!state.next) continue;
      const std::string& output = graph[graph.outputs[*state.next]].name;
      const auto own = std::find_if(step_tables_.begin(), step_tables_.end(), [&](const std::string& table) {
        return temporary(table) == made.tables.at(output);
      });
      KeptTable kept{"", frontier(made.types.at(output))};
      if (own != step_tables_.end()) {
        kept.name = *own;
        step_tables_.erase(own);
      } else {  // an input, or the value of another state
        TableNames free = names();
        for (const std::string& table : step_tables_) free.fresh(table);
        for (const auto& [name, table] : next) free.fresh(table.name);
        kept.name = free.fresh(output);
        const std::string table = temporary(kept.name);
        const std::string query = "SELECT * FROM " + made.tables.at(output);
        execute(with_spare({{.about = "",
                             .text = fmt::format("{} AS {}", create_chunks(dialect_, table), query),
                             .fills = FilledTable{table, kept.parts.size(), query}}}));
      }
      next.emplace(graph[state.now].name, std::move(kept));
    }
    for (auto& [name, table] : next) {
      const auto [kept, is_new] = states_.try_emplace(name, table);
      if (is_new) continue;
      set_aside({kept->second.name});
      kept->second = table;
    }
    set_aside(std::exchange(step_tables_, {}));
  }

  bool is_done(const ChunkScript& made) {
    const std::optional<std::size_t> until = run_.graph.steps.until;
    if (!until) return false;
    const std::string& name = run_.graph[run_.graph.outputs[*until]].name;
    return values_of(load(made, name)).at(0) != 0;
  }

  Tensor load(const ChunkScript& made, const std::string& name) {
    const RelationType& type = made.types.at(name);
    return assemble(database_.load_chunks(made.tables.at(name), type.key_arity), type.dtype, type.rank);
  }

  void put_out(const ChunkScript& made, std::map<std::string, Tensor>& tensors) {
    for (const OutputTable& place : places_) {
      for (const Statement& statement : scatter_outputs(run_.graph, made, {place}, dialect_))
        timed({WorkKind::put_out, place.tensor, {}}, [&] { execute(statement); });
    }
    for (const VertexId id : program_outputs(run_.graph)) {
      const std::string& name = run_.graph[id].name;
      const bool is_table =
          std::any_of(places_.begin(), places_.end(), [&](const auto& output) { return output.tensor == name; });
      if (!is_table) timed({WorkKind::put_out, name, {}}, [&] { tensors.emplace(name, load(made, name)); });
    }
  }

  Database& database_;
  const DatabaseRun& run_;
  Dialect dialect_;
  std::optional<Sharing> sharing_;
  std::vector<OutputTable> places_;  // quoted
  std::vector<std::string> taken_;   // by tables of others
  std::map<std::string, KeptTable> inputs_;
  std::map<std::string, KeptTable> states_;
  std::vector<std::string> step_tables_;
  std::map<std::string, std::size_t> filled_;  // tables, quoted, and how many keys they have
  std::map<std::string, std::size_t> spare_;   // those of them that are set aside
  std::map<Work, double> seconds_;
};

/// Throws UserError for a view that is broken, and one that this user may not read.
std::vector<Column> columns_of_table(Database& database, const std::string& name, const std::string& source) {
  try {
    return database.columns_of("SELECT * FROM " + source, Author::einrel);
  } catch (const UserError& error) {
    throw UserError(fmt::format("table '{}' cannot be read: {}", printable(name), error.what()));
  }
}

/// Why a table that is said to be sparse is none.
std::string no_elements(const UserTable& table, const std::vector<std::string>& labels) {
  std::vector<std::string> columns;
  for (const Column& column : table.columns) columns.push_back(printable(column.name, 60));
  return fmt::format(
      "{} has the columns {}, but a sparse table has one for each label ({}), and behind them one called 'value'; of "
      "one with a "
      "row for each index of the first label, leave out sparse:",
      table.title, fmt::join(columns, ", "), fmt::join(labels, ", "));
}

/// So many rows are kept before it is known how many there are: numbers that SQLite has in memory, some 40 MB.
std::int64_t first_rows(Layout layout, std::size_t columns) {
  constexpr std::int64_t numbers = 4'000'000;
  constexpr std::int64_t chunks = 4;
  return layout == Layout::chunks ? chunks : numbers / static_cast<std::int64_t>(columns);
}

/// The rows of a query or a view, computed once: extents are asked for, and elements read, of the same ones, also where
/// a query gives others each time.
void keep_rows(Database& database, UserTable& table, const std::vector<Column>& columns, const CheckRows& check) {
  TableNames names(database.names(), most_name_bytes(database.dialect()));
  table.kept = temporary_table(database.dialect(), names.fresh("rows of a query"));
  const auto keep = [&](std::optional<std::int64_t> most) {
    return database.keep_rows(table.kept, table.source, columns.size(), most);
  };
  const std::int64_t few = first_rows(table.layout, columns.size());
  KeptRows kept = keep(few);
  if (kept.rows == few) {
    // PostgreSQL keeps the file of a table that is dropped until the transaction ends, but not what was in it.
    if (database.dialect() == Dialect::postgres) database.execute("TRUNCATE " + table.kept);
    database.execute("DROP TABLE " + table.kept);
    if (check) check(table.title, kept, [&](std::int64_t most) { return database.count_rows(table.source, most); });
    kept = keep(std::nullopt);
  }
  table.kept_bytes = kept.bytes;
  std::vector<std::string> named;
  for (std::size_t c = 0; c < columns.size(); ++c)
    named.push_back(fmt::format("c{} AS {}", c, quoted_name(columns[c].name)));
  table.source = fmt::format("(SELECT {} FROM {}) AS given", fmt::join(named, ", "), table.kept);
}

UserTable open_query(Database& database, const std::string& query, const std::vector<std::string>& labels,
                     const CheckRows& check) {
  if (query.find('\0') != std::string::npos)
    throw UserError(fmt::format("the query '{}' has a NUL byte, which no database takes", printable(query, 60)));
  const std::vector<Column> columns = database.columns_of(query, Author::user);
  std::string body = query.substr(0, query.find_last_not_of(" \t\r\n;") + 1);
  const std::string source = "(" + body + "\n) AS given";
  database.columns_of("SELECT * FROM " + source, Author::user);  // refuses what is no part of a query: PRAGMA, EXPLAIN
  UserTable table =
      read_columns(source, fmt::format("the query '{}'", printable(query, 60)), columns, labels, database.dialect());
  keep_rows(database, table, columns, check);
  return table;
}

UserTable open_named_table(Database& database, const std::string& name, const std::vector<std::string>& labels,
                           const CheckRows& check) {
  const std::optional<FoundTable> found = database.find_table(name);
  if (!found) {
    const std::vector<std::string> tables = database.tables();
    const bool has_a_dot = std::find(tables.begin(), tables.end(), name) != tables.end();  // which parts it
    const std::string remedy = has_a_dot ? fmt::format("write table:\"{}\" for the one with a dot in its name", name)
                                         : did_you_mean(name, tables);
    throw UserError(fmt::format("{} has no table '{}'{}", database.title(), printable(name),
                                remedy.empty() ? "" : "; " + printable(remedy)));
  }
  const std::vector<Column> columns = columns_of_table(database, name, found->name);
  UserTable table =
      read_columns(found->name, fmt::format("table '{}'", printable(name)), columns, labels, database.dialect());
  if (!found->is_stored) keep_rows(database, table, columns, check);
  return table;
}

}  // namespace

std::vector<OutputTable> output_places(const DatabaseRun& run, Database& database) {
  std::vector<OutputTable> places;
  std::set<std::string> made;
  for (const OutputTable& output : run.outputs) {
    if (database.find_table(output.table))
      throw UserError(fmt::format("{} has a table '{}' already; drop it, or name another one for {}", database.title(),
                                  printable(output.table), output.tensor));
    places.push_back({output.tensor, database.new_table(output.table), output.in_chunks});
    if (!made.insert(same_name(database.dialect(), places.back().table)).second)
      throw UserError(fmt::format("two tensors cannot both become the table '{}'", printable(output.table)));
  }
  return places;
}

UserTable open_table(Database& database, const std::string& given, const std::vector<std::string>& labels,
                     const CheckRows& check) {
  const std::optional<TypedSource> typed = typed_source(given);
  if (!typed) throw UserError(fmt::format("'{}' is neither table:NAME nor query:SELECT ...", printable(given)));
  if (typed->is_chunks)
    throw UserError(fmt::format("'{}': write table:{}; a table of chunks is known by its columns", printable(given),
                                printable(typed->text)));
  UserTable table = typed->is_query ? open_query(database, typed->text, labels, check)
                                    : open_named_table(database, typed->text, labels, check);
  if (typed->is_sparse && table.layout == Layout::chunks)
    throw UserError(
        fmt::format("{} has a row for each chunk, so no elements can be absent; leave out sparse:", table.title));
  if (typed->is_sparse && table.layout == Layout::rows) throw UserError(no_elements(table, labels));
  table.is_sparse = typed->is_sparse;
  table.is_query = typed->is_query;
  return table;
}

namespace {

/// Throws UserError for far fewer rows than keys ask for, which no run would find the room to look for one by one.
void check_rows(const UserTable& table, const std::vector<std::int64_t>& extents, std::int64_t rows) {
  constexpr double many = 1e9;
  double elements = 1;
  std::vector<std::string> last;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    elements *= static_cast<double>(extents[d]);
    last.push_back(fmt::format("{}={}", printable(table.columns[d].name), extents[d] - 1));
  }
  if (elements < many || static_cast<double>(rows) >= elements) return;
  throw UserError(fmt::format("{} has {}, but keys go up to {}, which takes {:.3g} elements{}", table.title,
                              counted(static_cast<std::size_t>(rows), "row"), fmt::join(last, ", "), elements,
                              refusal_of(Absent::may_be_zeros)));
}

/// Throws UserError that names a key which is no whole number: without it the extent would be that of the others, and
/// what is said would be of that.
[[noreturn]] void refuse_bad_key(Database& database, const UserTable& table, std::size_t rank) {
  std::vector<std::string> columns = key_names(table, rank);
  columns.push_back(table.columns.back().name);
  FewGatherer gatherer({DType::f64, table.title, Shape(rank, Extent(most_key_value + 1)), {}, absent_in(table)});
  database.read_rows(bad_key_query(table, rank, database.dialect()), [&](const std::vector<Cell>& cells) {
    gatherer.add({cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(rank) + 1}, columns);
  });
  throw Bug("a key that is no whole number is one");
}

}  // namespace

Shape extents_of(Database& database, const UserTable& table, std::size_t rank) {
  const std::vector<std::int64_t> row = database.first_row(extents_query(table, database.dialect()));
  std::vector<std::int64_t> extents;
  for (std::size_t d = 0; d < rank; ++d) {
    if (table.layout == Layout::rows) {
      extents.push_back(row[d]);
      continue;
    }
    const std::int64_t largest = row[3 * d];
    const std::int64_t smallest = row[3 * d + 1];
    if (row[3 * d + 2] < row.back()) refuse_bad_key(database, table, rank);
    if (smallest < 0 || largest > most_key_value)
      throw UserError(fmt::format("{}: column '{}' has the key {}, but keys are whole numbers from 0 to {}",
                                  table.title, printable(table.columns[d].name), smallest < 0 ? smallest : largest,
                                  most_key_value));
    extents.push_back(largest + 1);
  }
  if (table.layout == Layout::elements && !table.is_sparse) check_rows(table, extents, row.back());
  return make_shape(extents);
}

DatabaseResults run(Database& database, const DatabaseRun& run) {
  Transaction transaction(database, run.outputs.empty() ? Access::reads : Access::writes);
  return sql::run(transaction, run);
}

DatabaseResults run(Transaction& transaction, const DatabaseRun& run) {
  Database& database = transaction.database();
  if (!run.is_element) database.use_functions();
  DatabaseResults results = run.is_element ? run_elements(database, run) : StepByStep(database, run).run();
  if (run.before_commit) run.before_commit(results);
  if (run.is_kept) transaction.commit();
  return results;
}

}  // namespace einrel::sql
