#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "einsum/check/check.h"
#include "run/choose_formats.h"
#include "run/compile.h"
#include "sql/program/run.h"

namespace einrel {

/// A tensor from outside the database, and what gives it, as elements of that type.
struct OutsideTensor {
  BoundInput type;
  std::function<Tensor(DType)> read;
};

/// What sql::typed_source takes, or a tensor from outside.
using DatabaseSource = std::variant<std::string, OutsideTensor>;

/// Whether it is typed_source's. Throws as that does.
bool is_in_database(const std::string& source);

/// What is said of an input that is not given: "missing input X[i] : f32; give X as ...".
std::string missing_in_database(const std::string& declaration, const std::string& name);

/// How a table or a query was read as an input.
struct ReadTable {
  std::string tensor;
  std::string type;  ///< "f64 (3, 2)"
  std::string from;  ///< "table 'T'"
  std::string how;   ///< sql::layout_text
};

/// What a run in a database is asked for.
struct DatabaseRequest {
  std::string database;                          ///< "sqlite:FILE" or "postgresql://..."
  std::map<std::string, DatabaseSource> inputs;  ///< inputs, and states: what they begin with
  std::vector<sql::OutputTable> tables = {};     ///< that tensors become
  ScalarBindings scalars = {};
  std::optional<std::string> formats = {};            ///< "A=row-strip-100,tile-500"
  std::int64_t steps = 1;                             ///< of a program with state, at most
  bool analyze = false;                               ///< say what the database took beside what was predicted
  std::function<void(const std::string&)> note = {};  ///< takes what is to be said, before it is taken, of much room
  std::stop_token stop = {};                          ///< once it is asked for, the run ends with sql::stopped
};

/// Throws UserError for a database, formats or an empty table's name that cannot be, without opening anything.
void check_request(const DatabaseRequest& request);

/// A program, compiled for the data of a database that is open.
class DatabaseProgram {
 public:
  struct Front {
    std::string name;                     ///< for messages
    std::vector<DeclaredInput> declared;  ///< its inputs
    std::vector<std::string> tensors;     ///< the names of all of its tensors, states among them
    /// Compiles it for inputs of these types.
    std::function<Compiled(const std::map<std::string, BoundInput>& inputs)> compile;
  };

  /// Opens the database, a transaction, and the tables. Throws UserError for an input that the program has not, or that
  /// is missing, for a table or query that is no tensor, and what `front`, weights_for and choose_formats throw.
  DatabaseProgram(const Front& front, const DatabaseRequest& request);

  const EinGraph& graph() const { return compiled_.graph; }
  const Compiled& compiled() const { return compiled_; }
  /// How it runs; none of a program that runs element by element.
  const std::optional<ChosenFormats>& formats() const { return chosen_; }
  /// In the order of the inputs.
  const std::vector<ReadTable>& read() const { return read_; }

  /// Once. When it fails, the database is as before, also where `before_commit` throws, which takes the
  /// results. Throws as sql::run does.
  sql::DatabaseResults run(const std::function<void(const sql::DatabaseResults&)>& before_commit = {});

 private:
  void open_tables(const Front& front, const DatabaseRequest& request);
  void open(const std::string& name, const std::string& source, const std::vector<std::string>& labels);
  void open_states(const DatabaseRequest& request);
  BoundInput type_of(const std::string& name, const sql::UserTable& table, std::size_t rank);
  BoundInput type_of_numbers(const sql::UserTable& table, std::size_t rank);
  void check_room();
  void say(const std::string& note) const;
  void describe_tables();
  void add_tensors(const Front& front, const DatabaseRequest& request);

  std::unique_ptr<sql::Database> database_;
  std::stop_callback<std::function<void()>> interrupt_;
  std::optional<sql::Transaction> transaction_;  ///< all that is read is of one moment, from the extents on
  std::map<std::string, sql::DatabaseInput> inputs_;
  std::vector<ReadTable> read_;
  Compiled compiled_;
  std::optional<EinGraph> first_;  ///< a step gives those states their first values that no input gives one
  ScalarBindings scalars_;
  std::vector<sql::OutputTable> tables_;
  Formats formats_;
  FormatWeights weights_;
  std::optional<ChosenFormats> chosen_;
  std::int64_t steps_;
  std::stop_token stop_;
  std::function<void(const std::string&)> note_;
};

}  // namespace einrel
