#pragma once

#include <optional>
#include <string>
#include <vector>

#include "execution.h"

namespace einrel::cli {

/// What `run` is given.
struct RunArguments {
  std::string program;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::vector<std::string> dims;
  std::vector<std::string> scalars;
  std::optional<std::string> seed;
  std::optional<std::string> database;  ///< that computes: "sqlite:FILE", "postgresql://..."
  std::optional<std::string> formats;
  ExecutionArguments execution;
};

/// Throws UserError where an option of a run without a database names a table.
void refuse_tables(const std::string& option, const std::vector<std::string>& given);

/// Throws UserError for what is wrong whatever the database holds.
void check_database_options(const RunArguments& arguments);

/// Runs there, and prints what it wrote.
void run_in_database(const RunArguments& arguments);

}  // namespace einrel::cli
