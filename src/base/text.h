#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace einrel {

/// The length of the well-formed UTF-8 sequence at the front of `bytes` (not empty), 0 when there is none.
std::size_t utf8_length(std::string_view bytes);
bool is_utf8(std::string_view bytes);

/// Whether a character (the bytes of one, or one byte that is none) may be shown as it is: it is UTF-8, and neither a
/// command to a terminal, nor the end of a line, nor unseen, nor one that reverses what stands around it.
bool is_printable(std::string_view character);

/// How every name that comes from outside is shown, of files, members, options, tensors: on one line, with \xNN for the
/// bytes of what is not printable, and with the middle left out where it has more than about `most` bytes.
std::string printable(std::string_view name, std::size_t most = 400);

/// "999 B", "1.5 MB": three digits, powers of 1000.
std::string bytes_text(double bytes);
std::string bytes_text(std::int64_t bytes);
/// Two sizes that are compared: where they differ by less than three digits show, in bytes.
std::pair<std::string, std::string> bytes_texts(std::int64_t one, std::int64_t other);

/// "1.2 ms", "350 us": three digits and a unit from ns to s.
std::string seconds_text(double seconds);

/// "1.5 Gflop"
std::string flops_text(double flops);

/// "1.6e+10 floats", exact below a million.
std::string floats_text(double floats);

/// "1 input", "2 inputs"; "2 vertices" where the plural is not an s more.
std::string counted(std::size_t count, std::string_view singular, std::string_view plural = "");

}  // namespace einrel
