#pragma once

#include <libpq-fe.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sql/database.h"
#include "sql/postgres/interrupt.h"

namespace einrel::sql {

/// A PostgreSQL database with the extension einrel. While one is open, a signal that ends the process (SIGINT, SIGTERM,
/// SIGHUP) also stops what the server does for it.
class PostgresDatabase : public Database {
 public:
  explicit PostgresDatabase(const std::string& url);
  ~PostgresDatabase() override;

  Dialect dialect() const override { return Dialect::postgres; }
  const std::string& title() const override { return title_; }
  std::string server() const override;
  /// One snapshot for all that is read.
  void begin(Access access) override;
  /// Makes the extension where the server has it and the database does not.
  void use_functions() override;
  /// As many as the server gives a query, if this user may make the schema in which they share tables.
  std::int64_t workers() override;
  /// An own schema of unlogged tables: they are gone when the transaction is undone, and after a crash.
  std::optional<Sharing> share() override;
  void commit() override { execute("COMMIT"); }
  void execute(const std::string& statement) override;
  void interrupt() override;
  std::vector<std::int64_t> first_row(const std::string& query) override;
  std::vector<Column> columns_of(const std::string& query, Author author) override;
  KeptRows keep_rows(const std::string& table, const std::string& source, std::size_t columns,
                     std::optional<std::int64_t> most) override;
  std::int64_t count_rows(const std::string& source, std::int64_t most) override;
  /// Where the server is this machine's, and says where it has its data.
  DatabaseFolders folders() override;
  std::vector<std::string> names() override;
  std::vector<std::string> tables() override;
  /// NAME as the search path finds it, or SCHEMA.NAME; either may stand in quotation marks, as in SQL. Letters are
  /// taken as they are.
  std::optional<FoundTable> find_table(const std::string& name) override;
  std::string new_table(const std::string& name) override;
  void read_rows(const std::string& query, const TakeRow& take) override;
  void store_elements(const std::string& table, const std::vector<std::string>& keys,
                      const Elements& elements) override;
  void store_chunks(const std::string& table, const Relation& chunks, std::size_t key_arity) override;
  Relation load_chunks(const std::string& table, std::size_t key_arity) override;
  KernelTable& kernels() override { return kernels_; }

 private:
  /// Whether the database has the extension. Throws UserError where others could add functions to it.
  bool has_functions();
  struct Close {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  struct Clear {
    void operator()(PGresult* result) const { PQclear(result); }
  };
  struct FreeCancel {
    void operator()(PGcancel* cancel) const { PQfreeCancel(cancel); }
  };
  using Result = std::unique_ptr<PGresult, Clear>;

  /// One statement, with values in place of $1, $2, ...
  Result run(const std::string& statement, Author author = Author::einrel, const std::vector<std::string>& values = {});
  /// What the server gave, unless it failed.
  Result check(Result result, Author author);
  /// The first column of all rows.
  std::vector<std::string> texts(const std::string& query, const std::vector<std::string>& values = {});
  [[noreturn]] void fail(const PGresult* result, Author author);
  std::string type_name(Oid type);
  /// With the user's search path. Nothing of ours stands in such statements: functions and operators of others might
  /// fit it better than the server's.
  void as_the_user_finds(const std::function<void()>& action);
  /// The same, where whatever is called can only read.
  void read_what_is_not_ours(const std::function<void()>& read);
  /// "'public', 'pg_catalog'"
  std::string schemas_searched() const;
  /// Sends what `rows` gives, one after the other, and "" in the end, to a table (quoted).
  void copy_into(const std::string& table, const std::function<std::string()>& next_row);
  /// What the server says in the end, or that it waits for rows, or sends some.
  Result last_result();
  /// For the server; asks again and again for an end of what is to end, since it forgets that while it does nothing.
  void wait();
  void cancel_statement();

  std::string title_;
  std::string search_path_;                     ///< the user's, as it is set
  std::vector<std::string> schemas_;            ///< that it names and that are there, in its order
  std::vector<std::string> new_tables_schema_;  ///< at most one
  KernelTable kernels_;
  std::unique_ptr<PGconn, Close> connection_;
  std::optional<CancelOnSignal> cancel_;  // before the connection ends
  std::unique_ptr<PGcancel, FreeCancel> interrupt_;
  std::atomic<bool> is_interrupted_ = false;
};

/// What a user calls a table of PostgreSQL: `schema.name`, each part perhaps in quotation marks. Throws UserError.
struct PostgresName {
  std::optional<std::string> schema;
  std::string name;
};
PostgresName postgres_name(const std::string& given);

}  // namespace einrel::sql
