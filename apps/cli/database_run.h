#pragma once

#include <optional>
#include <string>
#include <vector>

namespace einrel::cli {

/// What `run` is given for a run in a database.
struct DatabaseArguments {
  std::string database;  ///< "sqlite:FILE", "postgresql://..."
  std::optional<std::string> formats;
  std::string program;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> dims;
  std::vector<std::string> scalars;
  std::optional<std::string> steps;
  bool analyze = false;
  bool json = false;
};

/// Throws UserError where an option of a run without a database names a table.
void refuse_tables(const std::string& option, const std::vector<std::string>& given);

/// Throws UserError for what is wrong whatever the database holds.
void check_database_options(const DatabaseArguments& arguments);

/// Runs, and prints what it wrote.
void run_in_database(const DatabaseArguments& arguments);

}  // namespace einrel::cli
