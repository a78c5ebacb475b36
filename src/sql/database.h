#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "sql/dialect.h"
#include "sql/functions/gather.h"
#include "sql/functions/kernel_table.h"
#include "tra/relation.h"

namespace einrel::sql {

/// What a query is for: whose fault it is when the database does not take it.
enum class Author { einrel, user };

/// Folders on the disks where temporary tables and those of the user lie, as far as this process can see them.
struct DatabaseFolders {
  std::optional<std::string> temporary;
  std::optional<std::string> tables;
};

/// A table or a view of the user.
struct FoundTable {
  std::string name;        ///< quoted
  bool is_stored = false;  ///< its rows lie there: no query computes them, and no policy chooses them
};

/// What a temporary table holds, and what it takes on the disk.
struct KeptRows {
  std::int64_t rows = 0;
  double bytes = 0;
};

/// What a transaction does to tables that others see.
enum class Access { reads, writes };

/// A connection to a database whose SQL has Einrel's functions. All throw UserError where the database or a user's
/// query is wrong, and RunError where the run cannot go on: a full disk, a lock that another program keeps for 5 s, a
/// server that is gone.
class Database {
 public:
  Database() = default;
  virtual ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  virtual Dialect dialect() const = 0;
  /// For messages: "the database 'a.db'".
  virtual const std::string& title() const = 0;
  /// What computes: "sqlite" for any file, since that is this process, or "postgresql HOST:PORT".
  virtual std::string server() const = 0;

  /// Begins a transaction. Temporary tables may be made in any.
  virtual void begin(Access access) = 0;
  /// In a transaction: makes sure that SQL has Einrel's functions. Throws UserError that says what is missing.
  virtual void use_functions() = 0;
  /// How many processes may share a statement of ours.
  virtual std::int64_t workers() = 0;
  /// In a transaction: makes a place for tables of chunks that several processes of the server compute with. Nothing
  /// where there is one process, and where no schema can be made; chunks are temporary tables then.
  virtual std::optional<Sharing> share() = 0;
  /// Ends a transaction: what it did stays.
  virtual void commit() = 0;
  /// One statement of Einrel's, until it ends; what it gives is left out.
  virtual void execute(const std::string& statement) = 0;
  /// Ends the statement that runs with `stopped`, from any thread. What was begun can then only be rolled back.
  virtual void interrupt() = 0;
  /// The first row as whole numbers.
  virtual std::vector<std::int64_t> first_row(const std::string& query) = 0;
  /// In a transaction: what a query gives. Throws UserError unless it is one query that only reads.
  virtual std::vector<Column> columns_of(const std::string& query, Author author) = 0;
  /// In a transaction: keeps the rows of what stands in FROM (a query or a view of the user, of so many columns), in
  /// their order, as a new temporary table (quoted) with the columns c0, c1, ...: all, or the first ones, at most so
  /// many. It only reads.
  virtual KeptRows keep_rows(const std::string& table, const std::string& source, std::size_t columns,
                             std::optional<std::int64_t> most) = 0;
  /// In a transaction: how many rows that would be. No more than `most` are counted.
  virtual std::int64_t count_rows(const std::string& source, std::int64_t most) = 0;

  virtual DatabaseFolders folders() = 0;
  /// Every name that a query may mean; tables that are made for a run have others.
  virtual std::vector<std::string> names() = 0;
  /// Those of tables and views.
  virtual std::vector<std::string> tables() = 0;
  /// The table or view that a user calls so; nothing where there is none.
  virtual std::optional<FoundTable> find_table(const std::string& name) = 0;
  /// Where a user's new table goes, quoted. Throws UserError for a name that no table can have.
  virtual std::string new_table(const std::string& name) = 0;

  /// All rows of a query that reads what is not ours, one after the other.
  using TakeRow = std::function<void(const std::vector<Cell>&)>;
  virtual void read_rows(const std::string& query, const TakeRow& take) = 0;
  /// Makes a temporary table (quoted) of elements: a column for each dimension, and `value`.
  virtual void store_elements(const std::string& table, const std::vector<std::string>& keys,
                              const Elements& elements) = 0;

  /// Makes a table of chunks (chunk_table), and reads one.
  virtual void store_chunks(const std::string& table, const Relation& chunks, std::size_t key_arity) = 0;
  virtual Relation load_chunks(const std::string& table, std::size_t key_arity) = 0;

  virtual KernelTable& kernels() = 0;
};

/// What a run that was asked to stop throws.
inline RunError stopped() { return RunError("the run was stopped"); }

/// What happens where there is no file of that name.
enum class MissingFile { refused, made };

/// "sqlite:FILE", "postgresql://...". Throws UserError for any other, and where there is no such database. A file that
/// is made is there once a transaction has put something into it.
std::unique_ptr<Database> open_database(const std::string& url, MissingFile missing = MissingFile::refused);
/// The files of such a database that a run reads: FILE, and what SQLite has beside it. None on a server.
std::vector<std::string> files_of_database(const std::string& url);
/// Throws UserError where open_database takes no such text.
void check_database_url(const std::string& url);

/// Everything or nothing: what was done since is undone, unless `commit` is called.
class Transaction {
 public:
  Transaction(Database& database, Access access);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();
  Database& database() const { return database_; }

 private:
  Database& database_;
  bool is_open_ = true;
};

}  // namespace einrel::sql
