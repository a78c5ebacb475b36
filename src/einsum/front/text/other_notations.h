#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// What people write who think in NumPy, PyTorch, MATLAB or C, and how this language says it. Each function returns the
/// help of an error, "" for what nobody is known to write.
namespace einrel::other_notations {

/// How many bytes at the front of `text` are a sign or a word in quotes of another notation, such as `@`, `//`, `.T` or
/// "abc"; 0 when it begins with something else.
std::size_t sign_length(std::string_view text);
/// The help for such a sign.
std::string help_for_sign(std::string_view sign);

/// For a word that stands at the start of a statement or between expressions: `for`, `import`, `if`, `and`.
std::string help_for_word(std::string_view word);
/// For the name of a function: `inverse`, `matmul`, `float32`.
std::string help_for_function(std::string_view name);
/// For a bare name: `pi`, `True`.
std::string help_for_name(std::string_view name);
/// For the name of a dtype: `float32`.
std::string help_for_dtype(std::string_view name);

/// X[0:3], X[:,0]
inline constexpr const char* slice_help =
    "a whole dimension is its label, X[i,j]; a part of one is a window, X[i+2] with a label i of its own extent";

}  // namespace einrel::other_notations
