#include "sql/postgres/database.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "sql/postgres/copy.h"
#include "sql/postgres/states.h"
#include "sql/program/elements.h"
#include "sql/program/names.h"
#include "sql/program/script.h"

namespace einrel::sql {
namespace {

/// What holds for every statement of a connection.
constexpr std::array settings{
    "standard_conforming_strings = on",         // a backslash in a literal is a backslash
    "lock_timeout = '5s'",                      // of another transaction
    "client_connection_check_interval = '1s'",  // when we are gone, so is what the server does for us
    "extra_float_digits = 1",                   // numbers as text are exact
    "jit = off",                                // translating queries takes longer than these take
    "synchronize_seqscans = off",               // rows come in the order of the table
};

/// What makes processes compute the parts of a statement, each one of them wholly. (The server knows a table of chunks
/// by its few pages, and takes it for small.)
constexpr std::array sharing_settings{
    "enable_parallel_append = on",          "parallel_setup_cost = 0", "parallel_tuple_cost = 0",
    "min_parallel_table_scan_size = '1TB'",  // which would share a table's pages, of which there are few
    "parallel_leader_participation = off",   // who also computes does not take what the others send
};

constexpr int oldest_server = 150'000;

/// Types are numbers; these are the same in every server (its pg_type.dat).
constexpr Oid bytea = 17;
ColumnType column_type(Oid type) {
  constexpr Oid boolean = 16;
  constexpr Oid bigint = 20;
  constexpr Oid smallint = 21;
  constexpr Oid integer = 23;
  constexpr Oid real = 700;
  constexpr Oid double_precision = 701;
  constexpr Oid numeric = 1700;
  switch (type) {
    case boolean: return ColumnType::boolean;
    case bigint:
    case smallint:
    case integer: return ColumnType::whole;
    case real:
    case double_precision: return ColumnType::real;
    case numeric: return ColumnType::numeric;
    case bytea: return ColumnType::bytes;
    default: return ColumnType::other;
  }
}

bool begins_with(const char* state, std::string_view classes) { return std::string_view(state).starts_with(classes); }

struct FreeMemory {
  void operator()(void* memory) const { PQfreemem(memory); }
};

/// Bytes as a server writes them in text: "\\x00ff".
Blob blob_of(const char* text) {
  std::size_t size = 0;
  const std::unique_ptr<unsigned char, FreeMemory> bytes(
      PQunescapeBytea(reinterpret_cast<const unsigned char*>(text), &size));
  if (!bytes) throw RunError("no memory for a value of PostgreSQL");
  const auto* const begin = reinterpret_cast<const std::byte*>(bytes.get());
  return {{begin, begin + size}};
}

/// A number as the server writes it, whatever the locale of this process. Only a numeric can be out of a double's
/// range; it has no exponent.
double real_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc::result_out_of_range) return number;
  const bool is_negative = text.starts_with('-');
  const double limit = text.substr(is_negative ? 1 : 0).starts_with("0.") ? 0 : std::numeric_limits<double>::infinity();
  return is_negative ? -limit : limit;
}

/// A value as text, as an element of a tensor.
Cell cell_at(const PGresult* result, int row, int column) {
  if (PQgetisnull(result, row, column) != 0) return Null{};
  const std::string_view text = PQgetvalue(result, row, column);
  switch (column_type(PQftype(result, column))) {
    case ColumnType::boolean: return static_cast<std::int64_t>(text == "t" ? 1 : 0);
    case ColumnType::whole:
    case ColumnType::numeric: {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc() && std::string_view(end).find_first_not_of(".0") == std::string_view::npos)
        return number;
      return real_of(text);
    }
    case ColumnType::real: return real_of(text);
    case ColumnType::bytes: return blob_of(text.data());
    default: return Other{fmt::format("'{}'", printable(text, 60))};
  }
}

}  // namespace

PostgresName postgres_name(const std::string& given) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  const auto refuse = [&] {
    throw UserError(fmt::format(R"('{}' is no name of a table: take NAME, SCHEMA.NAME, or "NAME" for one with dots)",
                                printable(given)));
  };
  while (true) {
    std::string part;
    if (at < given.size() && given[at] == '"') {
      for (++at;; ++at) {
        if (at >= given.size()) refuse();
        if (given[at] == '"' && (++at >= given.size() || given[at] != '"')) break;
        part += given[at];
      }
      if (at < given.size() && given[at] != '.') refuse();
    } else {
      const std::size_t end = std::min(given.find('.', at), given.size());
      part = given.substr(at, end - at);
      at = end;
    }
    if (part.empty()) refuse();
    parts.push_back(std::move(part));
    if (at >= given.size()) break;
    ++at;  // the dot
  }
  if (parts.size() > 2) refuse();
  if (parts.size() == 1) return {std::nullopt, parts[0]};
  return {parts[0], parts[1]};
}

PostgresDatabase::PostgresDatabase(const std::string& url) : title_("the database") {
  // What stands before the URL, the URL may say otherwise.
  const std::array<const char*, 8> keywords{
      "connect_timeout",           "keepalives_idle", "keepalives_interval", "keepalives_count",
      "fallback_application_name", "dbname",          "client_encoding",     nullptr};
  const std::array<const char*, 8> values{"10", "30", "10", "3", "einrel", url.c_str(), "UTF8", nullptr};
  connection_.reset(PQconnectdbParams(keywords.data(), values.data(), 1));
  if (!connection_) throw RunError("no memory for a connection to PostgreSQL");
  const auto said = [](const char* text) { return printable(text == nullptr ? "" : text); };
  title_ = fmt::format("the database '{}' on '{}'", said(PQdb(connection_.get())), said(PQhost(connection_.get())));
  if (PQstatus(connection_.get()) != CONNECTION_OK) {
    std::string words = PQerrorMessage(connection_.get());
    words.erase(words.find_last_not_of(" \r\n") + 1);
    std::replace_if(
        words.begin(), words.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    throw UserError(fmt::format("cannot connect to {}: {}", title_, printable(words)));
  }
  PQsetNoticeProcessor(
      connection_.get(), [](void*, const char*) {}, nullptr);
  if (PQserverVersion(connection_.get()) < oldest_server)
    throw UserError(fmt::format("{} is of PostgreSQL {}; 15 is the oldest that works", title_,
                                PQserverVersion(connection_.get()) / 10'000));
  search_path_ = texts("SELECT pg_catalog.current_setting('search_path')").at(0);
  schemas_ = texts("SELECT * FROM pg_catalog.unnest(pg_catalog.current_schemas(true))");
  new_tables_schema_ = texts("SELECT schema FROM pg_catalog.current_schema() AS schema WHERE schema IS NOT NULL");
  run(fmt::format("SET {}", own_search_path));
  for (const char* setting : settings) run(fmt::format("SET {}", setting));
  // Chunks hardly shrink, and trying takes pglz, which others use, five times as long.
  run("SELECT set_config(name, 'lz4', false) FROM pg_settings "
      "WHERE name = 'default_toast_compression' AND 'lz4' = ANY(enumvals)");
  cancel_.emplace(connection_.get());
  interrupt_.reset(PQgetCancel(connection_.get()));
}

PostgresDatabase::~PostgresDatabase() = default;

void PostgresDatabase::interrupt() {
  is_interrupted_ = true;
  cancel_statement();
}

void PostgresDatabase::fail(const PGresult* result, Author author) {
  if (is_interrupted_) throw stopped();
  const auto field = [&](int which) {
    const char* const text = result == nullptr ? nullptr : PQresultErrorField(result, which);
    return text == nullptr ? "" : text;
  };
  const char* const state = field(PG_DIAG_SQLSTATE);
  const std::string words = field(PG_DIAG_MESSAGE_PRIMARY);
  if (state == std::string_view(user_error_state)) throw UserError(words);
  if (state == std::string_view(run_error_state)) throw RunError(words);
  if (state == std::string_view(bug_state)) throw Bug(words);
  const bool is_gone = PQstatus(connection_.get()) != CONNECTION_OK || begins_with(state, "57P") || *state == '\0';
  if (is_gone)
    throw RunError(fmt::format("{} is gone: the server ended the connection ({}); nothing was changed", title_,
                               printable(*state == '\0' ? PQerrorMessage(connection_.get()) : words)));
  if (begins_with(state, "55P03") || begins_with(state, "40"))
    throw RunError(fmt::format("{} is locked by another transaction ({}); it is as it was. Try again when that is done",
                               title_, printable(words)));
  if (begins_with(state, "57014")) throw RunError(fmt::format("{}: the run was stopped: {}", title_, printable(words)));
  if (begins_with(state, "53100") || begins_with(state, "58030"))
    throw RunError(fmt::format("{} finds no room on its disk: {}", title_, printable(words)));
  if (begins_with(state, "53") || begins_with(state, "54000")) {
    const std::string hint = field(PG_DIAG_MESSAGE_HINT);
    throw RunError(fmt::format("{} finds no memory or room: {}{}{}", title_, printable(words), hint.empty() ? "" : ". ",
                               printable(hint)));
  }
  if (author == Author::user)
    throw UserError(
        fmt::format("{} does not take the query: {}; it takes one query that only reads", title_, printable(words)));
  if (begins_with(state, "25006"))
    throw UserError(fmt::format("{}: what is read must only be read: {}", title_, printable(words)));
  if (begins_with(state, "23505") && field(PG_DIAG_SCHEMA_NAME) == std::string_view("pg_catalog"))
    throw RunError(
        fmt::format("{}: another program has just made something of a name that this run needs: {} It is as that "
                    "one left it; try again, perhaps with another name",
                    title_, printable(field(PG_DIAG_MESSAGE_DETAIL))));
  if (begins_with(state, "42P07"))
    throw UserError(fmt::format("{}: {}; drop it, or name another one", title_, printable(words)));
  // Rights, and what a view or query of the user computes.
  if (begins_with(state, "42501") || begins_with(state, "22"))
    throw UserError(fmt::format("{}: {}", title_, printable(words)));
  throw RunError(fmt::format("{}: {}", title_, printable(words)));
}

PostgresDatabase::Result PostgresDatabase::check(Result result, Author author) {
  const ExecStatusType status = PQresultStatus(result.get());
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_COPY_IN || status == PGRES_COPY_OUT)
    return result;
  if (status == PGRES_EMPTY_QUERY && author == Author::user)
    throw UserError(fmt::format("{} takes one query that only reads, and none is there", title_));
  fail(result.get(), author);
}

PostgresDatabase::Result PostgresDatabase::run(const std::string& statement, Author author,
                                               const std::vector<std::string>& values) {
  if (is_interrupted_ && statement != "ROLLBACK") throw stopped();
  std::vector<const char*> texts;
  for (const std::string& value : values) texts.push_back(value.c_str());
  // This way of asking, unlike PQsendQuery, takes no more than one statement.
  const bool is_sent = PQsendQueryParams(connection_.get(), statement.c_str(), static_cast<int>(texts.size()), nullptr,
                                         texts.data(), nullptr, nullptr, 0) == 1;
  if (!is_sent) fail(nullptr, author);
  return check(last_result(), author);
}

PostgresDatabase::Result PostgresDatabase::last_result() {
  Result last;
  while (true) {
    wait();
    PGresult* const next = PQgetResult(connection_.get());
    if (next == nullptr) return last;
    const bool has_failed = last && PQresultStatus(last.get()) == PGRES_FATAL_ERROR;
    Result result(next);
    const ExecStatusType status = PQresultStatus(next);
    if (!has_failed) last = std::move(result);
    if (status == PGRES_COPY_IN || status == PGRES_COPY_OUT) return last;
  }
}

void PostgresDatabase::wait() {
  constexpr int milliseconds = 200;
  bool is_there = true;
  while (is_there && PQisBusy(connection_.get()) == 1) {
    pollfd waited{.fd = PQsocket(connection_.get()), .events = POLLIN, .revents = 0};
    if (poll(&waited, 1, milliseconds) == 0) {
      if (is_interrupted_) cancel_statement();
      continue;
    }
    is_there = PQconsumeInput(connection_.get()) == 1;
  }
}

void PostgresDatabase::cancel_statement() {
  std::array<char, 256> words{};
  PQcancel(interrupt_.get(), words.data(), static_cast<int>(words.size()));
}

std::vector<std::string> PostgresDatabase::texts(const std::string& query, const std::vector<std::string>& values) {
  const Result result = run(query, Author::einrel, values);
  std::vector<std::string> found;
  for (int row = 0; row < PQntuples(result.get()); ++row) found.emplace_back(PQgetvalue(result.get(), row, 0));
  return found;
}

std::string PostgresDatabase::server() const {
  const auto said = [](const char* text) { return text == nullptr ? "" : text; };
  return fmt::format("postgresql {}:{}", said(PQhost(connection_.get())), said(PQport(connection_.get())));
}

void PostgresDatabase::begin(Access /*access*/) {
  run("BEGIN ISOLATION LEVEL REPEATABLE READ");
  if (texts("SELECT current_setting('transaction_read_only')").at(0) == "on")
    throw UserError(
        fmt::format("{} only reads, but a run makes temporary tables in it; it may be a copy of another "
                    "server, or default_transaction_read_only is on",
                    title_));
}

bool PostgresDatabase::has_functions() {
  // In a schema of another role, that one could add functions that fit better, and be given our rights.
  const Result found =
      run("SELECT quote_ident(nspname), has_schema_privilege(n.oid, 'USAGE'), extowner = nspowner AND NOT EXISTS "
          "(SELECT FROM aclexplode(nspacl) WHERE privilege_type = 'CREATE' AND grantee <> nspowner) AND NOT EXISTS "
          "(SELECT FROM pg_proc WHERE pronamespace = n.oid AND proowner <> extowner) "
          "FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'einrel'");
  if (PQntuples(found.get()) == 0) return false;
  const auto said = [&](int column) { return std::string(PQgetvalue(found.get(), 0, column)); };
  const std::string schema = printable(said(0));
  if (said(0) != extension_schema)
    throw UserError(
        fmt::format("{} has the functions of Einrel in the schema {}, where others may add some; somebody who "
                    "may has to type in it: DROP EXTENSION einrel; CREATE EXTENSION einrel",
                    title_, schema));
  if (said(1) != "t")
    throw UserError(
        fmt::format("{} has the functions of Einrel in the schema {}, which you may not use; somebody who may "
                    "has to type in it: GRANT USAGE ON SCHEMA {} TO {}",
                    title_, schema, schema, printable(texts("SELECT quote_ident(current_user)").at(0))));
  if (said(2) != "t")
    throw UserError(fmt::format(
        "{} has the functions of Einrel in the schema {}, in which not only their owner may make or has made "
        "functions: "
        "these could run with your rights; somebody who may has to give the schema and all in it to the owner of the "
        "extension alone, or to type: DROP SCHEMA {} CASCADE; CREATE EXTENSION einrel",
        title_, schema, schema));
  return true;
}

void PostgresDatabase::use_functions() {
  if (has_functions()) return;
  if (texts("SELECT 1 FROM pg_available_extensions WHERE name = 'einrel'").empty())
    throw UserError(fmt::format(
        "{} has no functions of Einrel: its server lacks the extension einrel (docs/sql.md says how to install it); "
        "--formats element needs none",
        title_));
  try {
    run("CREATE EXTENSION einrel");
  } catch (const UserError& error) {
    throw UserError(fmt::format("{}; somebody who may has to type in it: CREATE EXTENSION einrel", error.what()));
  }
  has_functions();
}

std::int64_t PostgresDatabase::workers() {
  const std::vector<std::int64_t> found = first_row(
      "SELECT CAST(current_setting('max_parallel_workers_per_gather') AS integer), "
      "CAST(current_setting('max_parallel_workers') AS integer), "
      "CAST(has_database_privilege(current_database(), 'CREATE') AS integer)");
  constexpr std::int64_t most_workers = 4;
  const std::int64_t workers = std::min({found.at(0), found.at(1), most_workers});
  return workers < 2 || found.at(2) == 0 ? 1 : workers;
}

std::optional<Sharing> PostgresDatabase::share() {
  const std::int64_t processes = workers();
  const std::vector<std::int64_t> own =
      first_row("SELECT pg_backend_pid(), CAST(to_regnamespace('einrel_' || pg_backend_pid()) IS NULL AS integer)");
  if (processes < 2 || own.at(1) == 0) return std::nullopt;
  const Sharing sharing{fmt::format("einrel_{}", own.at(0)), sharing_parts(processes)};
  run("CREATE SCHEMA " + sharing.schema);
  for (const char* setting : sharing_settings) run(fmt::format("SET LOCAL {}", setting));
  return sharing;
}

void PostgresDatabase::execute(const std::string& statement) { run(statement); }

void PostgresDatabase::as_the_user_finds(const std::function<void()>& action) {
  run("SELECT pg_catalog.set_config('search_path', $1, true)", Author::einrel, {search_path_});
  action();
  run(fmt::format("SET LOCAL {}", own_search_path));
}

void PostgresDatabase::read_what_is_not_ours(const std::function<void()>& read) {
  run("SAVEPOINT reading");
  run("SET TRANSACTION READ ONLY");
  as_the_user_finds(read);
  run("RELEASE SAVEPOINT reading");
}

std::vector<std::int64_t> PostgresDatabase::first_row(const std::string& query) {
  const Result result = run(query);
  std::vector<std::int64_t> row;
  for (int c = 0; PQntuples(result.get()) > 0 && c < PQnfields(result.get()); ++c) {
    const std::string_view text = PQgetvalue(result.get(), 0, c);
    std::int64_t& number = row.emplace_back(0);
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return row;
}

std::string PostgresDatabase::type_name(Oid type) {
  return texts("SELECT format_type($1, NULL)", {fmt::format("{}", type)}).at(0);
}

std::vector<Column> PostgresDatabase::columns_of(const std::string& query, Author author) {
  // A cursor takes nothing but a query, which is planned, not computed. Alone, as it is prepared, it is one statement.
  std::vector<Column> columns;
  std::vector<Oid> types;
  read_what_is_not_ours([&] {
    const Result prepared = check(Result(PQprepare(connection_.get(), "", query.c_str(), 0, nullptr)), author);
    const Result described = check(Result(PQdescribePrepared(connection_.get(), "")), author);
    if (PQnparams(described.get()) != 0)
      throw UserError(fmt::format("the query '{}' has parameters, for which there are no values", printable(query)));
    if (PQnfields(described.get()) == 0)
      throw UserError(fmt::format("{} takes one query that only reads, not '{}'", title_, printable(query)));
    for (int c = 0; c < PQnfields(described.get()); ++c) {
      columns.push_back({PQfname(described.get(), c)});
      types.push_back(PQftype(described.get(), c));
    }
    run("DECLARE einrel_query NO SCROLL CURSOR FOR " + query, author);
    run("CLOSE einrel_query");
  });
  for (std::size_t c = 0; c < columns.size(); ++c) {
    columns[c].type = column_type(types[c]);
    if (columns[c].type == ColumnType::other || columns[c].type == ColumnType::bytes)
      columns[c].type_name = type_name(types[c]);
  }
  return columns;
}

KeptRows PostgresDatabase::keep_rows(const std::string& table, const std::string& source, std::size_t columns,
                                     std::optional<std::int64_t> most) {
  as_the_user_finds([&] {
    run(fmt::format("CREATE TABLE {} ({}) AS SELECT * FROM {} WITH NO DATA", table, kept_columns(columns), source));
  });
  KeptRows kept;
  read_what_is_not_ours([&] {
    const Result inserted = run(fmt::format("INSERT INTO {} {}", table, rows_of(source, most)));
    const std::string_view rows = PQcmdTuples(inserted.get());
    std::from_chars(rows.data(), rows.data() + rows.size(), kept.rows);
  });
  kept.bytes = static_cast<double>(first_row(fmt::format("SELECT pg_total_relation_size({})", literal(table))).at(0));
  return kept;
}

std::int64_t PostgresDatabase::count_rows(const std::string& source, std::int64_t most) {
  std::int64_t rows = 0;
  read_what_is_not_ours([&] {
    rows =
        first_row(fmt::format("SELECT pg_catalog.count(*) FROM (SELECT 1 FROM {} LIMIT {}) AS counted", source, most))
            .at(0);
  });
  return rows;
}

DatabaseFolders PostgresDatabase::folders() {
  const char* const host = PQhost(connection_.get());
  if (host == nullptr || *host != '/') return {};  // no socket of this machine
  // Who may not know where the data are is given no row.
  const std::vector<std::string> found = texts(
      "SELECT setting FROM pg_settings WHERE name = 'data_directory' AND current_setting('temp_tablespaces') = '' AND "
      "current_setting('default_tablespace') = ''");
  return found.empty() ? DatabaseFolders{} : DatabaseFolders{found.front(), found.front()};
}

std::string PostgresDatabase::schemas_searched() const {
  std::vector<std::string> names;
  for (const std::string& schema : schemas_) names.push_back(literal(schema));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::string> PostgresDatabase::names() {
  // A table is a type, too, and a temporary one is found before all others of its name.
  return texts(
      fmt::format("WITH searched AS (SELECT oid FROM pg_namespace WHERE nspname IN ({}) OR oid = "
                  "pg_my_temp_schema()) SELECT relname FROM pg_class JOIN searched ON searched.oid = "
                  "relnamespace UNION SELECT typname FROM pg_type JOIN searched ON searched.oid = "
                  "typnamespace",
                  schemas_searched()));
}

std::vector<std::string> PostgresDatabase::tables() {
  return texts(
      fmt::format("SELECT relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace "
                  "WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND nspname IN ({})",
                  schemas_searched()));
}

std::optional<FoundTable> PostgresDatabase::find_table(const std::string& name) {
  const PostgresName parts = postgres_name(name);
  quoted_name(name);  // refuses NUL
  const std::vector<std::string> schemas = parts.schema ? std::vector{*parts.schema} : schemas_;
  for (const std::string& schema : schemas) {
    const Result found =
        run("SELECT relkind IN ('r', 'p', 'm') AND NOT relrowsecurity FROM pg_class JOIN pg_namespace AS n "
            "ON n.oid = relnamespace WHERE relkind IN ('r', 'v', 'm', 'f', 'p') AND CAST(relname AS text) = $1 AND "
            "CAST(nspname AS text) = $2",
            Author::einrel, {parts.name, schema});
    if (PQntuples(found.get()) == 0) continue;
    return FoundTable{quoted_name(schema) + "." + quoted_name(parts.name), *PQgetvalue(found.get(), 0, 0) == 't'};
  }
  return std::nullopt;
}

std::string PostgresDatabase::new_table(const std::string& name) {
  const PostgresName parts = postgres_name(name);
  if (parts.name.size() > most_name_bytes(Dialect::postgres))
    throw UserError(fmt::format("'{}' has more than the {} bytes that a name in PostgreSQL may have", printable(name),
                                most_name_bytes(Dialect::postgres)));
  const std::vector<std::string> schemas =
      parts.schema ? texts("SELECT nspname FROM pg_namespace WHERE CAST(nspname AS text) = $1", {*parts.schema})
                   : new_tables_schema_;
  if (schemas.empty())
    throw UserError(parts.schema
                        ? fmt::format("{} has no schema '{}'", title_, printable(*parts.schema))
                        : fmt::format("{} has no schema for new tables; name one: SCHEMA.{}", title_, printable(name)));
  return quoted_name(schemas.front()) + "." + quoted_name(parts.name);
}

void PostgresDatabase::store_chunks(const std::string& table, const Relation& chunks, std::size_t key_arity) {
  std::string columns;
  for (std::size_t i = 0; i < key_arity; ++i) columns += fmt::format("k{} bigint, ", i);
  run(fmt::format("{} ({}chunk bytea)", create_chunks(Dialect::postgres, table), columns));
  for (const Statement& statement : uncompressed_chunks(Dialect::postgres, table)) run(statement.text);
  auto chunk = chunks.begin();
  copy_into(table, [&] {
    if (chunk == chunks.end()) return std::string();
    const auto& [key, array] = *chunk++;
    return copy_row(key, array);
  });
}

void PostgresDatabase::store_elements(const std::string& table, const std::vector<std::string>& keys,
                                      const Elements& elements) {
  run(element_table(Dialect::postgres, table, keys, dtype_of(elements)));
  std::vector<std::string> blocks(1);
  for_each_element(elements, [&](const Key& key, auto value) {
    constexpr std::size_t block_bytes = 1 << 20;
    if (blocks.back().size() > block_bytes) blocks.emplace_back();
    blocks.back() += copy_row(key, value);
  });
  auto block = blocks.begin();
  copy_into(table, [&] { return block == blocks.end() ? std::string() : std::move(*block++); });
  run(fmt::format("ANALYZE {}", table));  // how queries join depends on how many rows there are
}

void PostgresDatabase::copy_into(const std::string& table, const std::function<std::string()>& next_row) {
  run(fmt::format("COPY {} FROM STDIN (FORMAT binary)", table));
  // Why something cannot be sent, the server says in the end.
  const auto send = [&](const std::string& bytes) {
    return PQputCopyData(connection_.get(), bytes.data(), static_cast<int>(bytes.size())) == 1;
  };
  bool is_sent = send(copy_header());
  for (std::string row = next_row(); is_sent && !row.empty(); row = next_row()) is_sent = !is_interrupted_ && send(row);
  is_sent = is_sent && send(copy_trailer());
  if (PQputCopyEnd(connection_.get(), is_sent ? nullptr : "not all of it could be sent") != 1)
    fail(nullptr, Author::einrel);
  check(last_result(), Author::einrel);
}

void PostgresDatabase::read_rows(const std::string& query, const TakeRow& take) {
  run("SAVEPOINT reading");
  run("SET TRANSACTION READ ONLY");
  run("DECLARE einrel_rows NO SCROLL CURSOR FOR " + query);
  std::vector<Cell> cells;
  while (true) {
    const Result result = run("FETCH 10000 FROM einrel_rows");
    for (int row = 0; row < PQntuples(result.get()); ++row) {
      cells.clear();
      for (int c = 0; c < PQnfields(result.get()); ++c) cells.push_back(cell_at(result.get(), row, c));
      take(cells);
    }
    if (PQntuples(result.get()) == 0) break;
  }
  run("CLOSE einrel_rows");
  run("RELEASE SAVEPOINT reading");
}

Relation PostgresDatabase::load_chunks(const std::string& table, std::size_t key_arity) {
  std::string keys;
  for (std::size_t i = 0; i < key_arity; ++i) keys += fmt::format("CAST(k{} AS bigint), ", i);
  run(fmt::format("COPY (SELECT {}chunk FROM {}) TO STDOUT (FORMAT binary)", keys, table));
  Relation chunks;
  CopyReader reader(key_arity);
  while (true) {
    char* message = nullptr;
    const int size = PQgetCopyData(connection_.get(), &message, 0);
    const std::unique_ptr<char, FreeMemory> owner(message);
    if (size < 0) break;  // all is read, or something is wrong
    reader.read({reinterpret_cast<const std::byte*>(message), static_cast<std::size_t>(size)}, chunks);
  }
  check(last_result(), Author::einrel);
  return chunks;
}

}  // namespace einrel::sql
