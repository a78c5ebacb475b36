#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace einrel {

/// The length of the well-formed UTF-8 sequence at the front of `bytes` (not empty), 0 when there is none.
std::size_t utf8_length(std::string_view bytes);
bool is_utf8(std::string_view bytes);

/// Foreign bytes as a message may show them: on one line, escaped as \xNN where a terminal would not print them
/// or would take them as a command, cut after about `most` bytes.
std::string printable(std::string_view bytes, std::size_t most = 80);

/// "999 B", "1.5 MB": three digits, powers of 1000.
std::string bytes_text(double bytes);
std::string bytes_text(std::int64_t bytes);

/// "1.2 ms", "350 us": three digits and a unit from ns to s.
std::string seconds_text(double seconds);

/// "1 input", "2 inputs".
std::string counted(std::size_t count, std::string_view singular);

}  // namespace einrel
