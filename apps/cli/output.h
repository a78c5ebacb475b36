#pragma once

#include <string_view>

namespace einrel::cli {

/// Writes to standard output. Throws RunError when it cannot be written (a full disk, say): a result that was lost must
/// not end in success.
void print(std::string_view text);
void flush_output();

/// Writes to standard error; there is nobody to tell when that fails.
void print_error(std::string_view text);

}  // namespace einrel::cli
