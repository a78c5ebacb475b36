#pragma once

#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sql/gather.h"
#include "sql/sqlite/functions.h"
#include "tra/relation.h"

namespace einrel::sql {

/// What a query is for: whose fault it is when SQLite does not take it.
enum class Author { einrel, user };

/// An SQLite database with Einrel's functions. Errors of SQLite are thrown as UserError where the file or a user's
/// query is wrong, as RunError otherwise (a full disk, a lock that another process keeps for 5 s).
class Database {
 public:
  /// The file must exist.
  explicit Database(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Statements of Einrel's, until the last one ends; what they give is left out.
  void execute(const std::string& statement);
  /// The first row as whole numbers.
  std::vector<std::int64_t> first_row(const std::string& query);
  /// The names of what a query gives. Throws UserError unless it is one query that only reads.
  std::vector<std::string> columns_of(const std::string& query, Author author = Author::user);
  /// The tables, views and indices of the file; those of this connection, which are temporary.
  std::vector<std::string> tables();
  std::vector<std::string> temporary_tables();

  /// Makes a temporary table of chunks (`table` is quoted), and reads one.
  void store_chunks(const std::string& table, const Relation& chunks, std::size_t key_arity);
  Relation load_chunks(const std::string& table, std::size_t key_arity);

  KernelTable& kernels() { return state_->kernels; }
  /// For messages: "the database 'a.db'".
  const std::string& title() const { return title_; }

 private:
  struct CloseStatement {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  struct CloseDatabase {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  using Prepared = std::unique_ptr<sqlite3_stmt, CloseStatement>;

  std::vector<std::string> names_in(const std::string& schema);
  Prepared prepare(const std::string& text, Author author);
  /// Whether there is a row.
  bool step(sqlite3_stmt* statement);
  [[noreturn]] void fail(int code, Author author);

  std::string title_;
  std::unique_ptr<FunctionState> state_;  // outlives the connection
  std::unique_ptr<sqlite3, CloseDatabase> database_;
};

/// Everything or nothing: what was done since is undone, unless `commit` is called.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool is_open_ = true;
};

}  // namespace einrel::sql
