#pragma once

#include <sqlite3.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "sql/database.h"
#include "sql/sqlite/functions.h"
#include "sql/sqlite/new_file.h"

namespace einrel::sql {

/// An SQLite database with Einrel's functions.
class SqliteDatabase : public Database {
 public:
  explicit SqliteDatabase(const std::string& path, MissingFile missing = MissingFile::refused);
  ~SqliteDatabase() override;

  Dialect dialect() const override { return Dialect::sqlite; }
  const std::string& title() const override { return title_; }
  std::string server() const override { return "sqlite"; }
  /// One that writes keeps others from writing from now on, one that reads hinders nobody who reads.
  void begin(Access access) override { execute(access == Access::writes ? "BEGIN IMMEDIATE" : "BEGIN"); }
  void use_functions() override {}
  std::int64_t workers() override { return 1; }
  std::optional<Sharing> share() override { return std::nullopt; }
  void commit() override;
  void execute(const std::string& statement) override;
  void interrupt() override { stop_.request_stop(); }
  std::vector<std::int64_t> first_row(const std::string& query) override;
  std::vector<Column> columns_of(const std::string& query, Author author) override;
  KeptRows keep_rows(const std::string& table, const std::string& source, std::size_t columns,
                     std::optional<std::int64_t> most) override;
  std::int64_t count_rows(const std::string& source, std::int64_t most) override;
  DatabaseFolders folders() override;
  std::vector<std::string> names() override;
  std::vector<std::string> tables() override;
  std::optional<FoundTable> find_table(const std::string& name) override;
  std::string new_table(const std::string& name) override;
  void read_rows(const std::string& query, const TakeRow& take) override;
  void store_elements(const std::string& table, const std::vector<std::string>& keys,
                      const Elements& elements) override;
  void store_chunks(const std::string& table, const Relation& chunks, std::size_t key_arity) override;
  Relation load_chunks(const std::string& table, std::size_t key_arity) override;
  KernelTable& kernels() override { return state_->kernels; }

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
  [[noreturn]] void fail_without_room(const std::string& words) const;

  std::string path_;
  std::string title_;
  std::optional<NewFile> new_file_;         // goes after the connection
  std::stop_source stop_;                   // outlives the connection, as does
  std::unique_ptr<ConnectionState> state_;  // this
  std::unique_ptr<sqlite3, CloseDatabase> database_;
};

}  // namespace einrel::sql
