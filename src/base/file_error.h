#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace einrel {

/// The disk is full, or the user's share of it: with less on it, the same could succeed.
class NoRoom : public RunError {
 public:
  using RunError::RunError;
};

/// Throws for a failed system call on a file: "cannot {action} '{path}': {reason}". A reason that the
/// user can mend (missing, not permitted, ...) is a UserError; the rest (disk, memory) is a RunError, of a full disk
/// NoRoom.
/// `code` is the value of errno.
[[noreturn]] void throw_file_error(std::string_view action, const std::string& path, int code);

/// Throws RunError for bytes that the system did not take (NoRoom: a full disk), in the same words.
[[noreturn]] void throw_write_error(const std::string& path, int code);

/// From the root on, for whoever looks at a file that is to be written from elsewhere. Throws UserError where a path
/// leads from the current folder and that has been removed.
std::string absolute_path(const std::string& path);

}  // namespace einrel
