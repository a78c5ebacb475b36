#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace einrel {

/// Beyond any program: 80,000 lines. What is read of a program takes up to 300 times its text.
inline constexpr std::size_t most_program_bytes = std::size_t{4} << 20U;

/// The text of a program in a file, or that comes through a pipe. Throws UserError where it cannot be read, for a
/// folder, for more than most_program_bytes, and for a pipe through which not all of it has come when `patience` is
/// over; RunError as of a disk that fails.
std::string read_program_file(const std::string& path, std::chrono::milliseconds patience = std::chrono::seconds(10));

/// The text on standard input, for whose end it waits. Throws as read_program_file.
std::string read_standard_input();

}  // namespace einrel
