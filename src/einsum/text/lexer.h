#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/source.h"

namespace einrel {

enum class TokenKind : std::uint8_t {
  name,
  number,
  symbol,   ///< one of + - * / ** = == != < <= > >= ( ) [ ] , :
  bad,      ///< something that an error has been reported for
  newline,  ///< the end of a statement
  end
};

struct Token {
  TokenKind kind = TokenKind::end;
  Span span;
  std::string text;
};

/// The tokens of a program. A statement ends with its line unless a bracket is open or the line ends with
/// an operator or comma; a line that plainly starts a statement always starts one, so that one forgotten
/// bracket spoils one statement only. Adds to `errors`: characters outside the language, bad numbers, brackets that do
/// not match; of what is no text, that alone. With most_errors of them it ends early. O(size).
std::vector<Token> tokenize(const SourceText& source, std::vector<Diagnostic>& errors);

/// Of what is no text (see why_not_text), which is added to `errors`: one bad token, at which parsers stop silently.
std::optional<std::vector<Token>> tokens_of_no_text(const SourceText& source, std::vector<Diagnostic>& errors);

/// True for the words that cannot name a tensor, label, scalar or macro.
bool is_reserved(std::string_view word);

}  // namespace einrel
