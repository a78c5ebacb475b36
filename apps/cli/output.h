#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace einrel::cli {

/// Writes to standard output. Throws RunError when it cannot be written (a full disk, say): a result that was lost must
/// not end in success.
void print(std::string_view text);
void flush_output();

/// Says on standard error what an exception means for the user, after `prefix`, and returns the exit code for it.
/// Nothing is said of what another rank has said.
int report_failure(const std::exception_ptr& failure, const std::string& prefix = "");
/// "error: ..." with what was wrong.
void report_error(const std::string& message);

/// Writes to standard error; there is nobody to tell when that fails.
void print_error(std::string_view text);

inline constexpr int exit_user_error = 1;
inline constexpr int exit_run_error = 2;
inline constexpr int exit_bug = 3;

}  // namespace einrel::cli
