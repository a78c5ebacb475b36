#pragma once

#include <CLI/CLI.hpp>

/// One function per subcommand: each adds itself to `app` and runs when the user chose it.
namespace einrel::cli {

void add_run_command(CLI::App& app);
void add_train_command(CLI::App& app);
void add_explain_command(CLI::App& app);
void add_check_command(CLI::App& app);
void add_einsum_command(CLI::App& app);
void add_sql_command(CLI::App& app);
void add_list_command(CLI::App& app);
void add_calibrate_command(CLI::App& app);
/// What they print is of all commands; `app` must live until it has run.
void add_describe_commands(CLI::App& app);

}  // namespace einrel::cli
