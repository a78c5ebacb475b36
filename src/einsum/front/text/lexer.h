#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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

/// What a language that is read with these tokens has of its own.
struct Notation {
  std::vector<std::string_view> statement_words;
  std::vector<std::string_view> symbols;  ///< longer ones before those that they begin with
  /// Whether a statement may end behind these, of which the last is a symbol.
  bool (*may_end_behind)(const std::vector<Token>& tokens);
  /// A definition is NAME[...] = ..., not NAME = ..., and no two signs stand together, but those of other notations do.
  bool is_of_einsums = true;
};

/// The tokens of a program. A statement ends with its line unless a bracket is open or the line ends with
/// an operator or comma; a line that plainly starts a statement always starts one, so that one forgotten
/// bracket spoils one statement only. Adds to `errors`: characters outside the language, bad numbers, brackets that do
/// not match; of what is no text, that alone. With most_errors of them it ends early. O(size).
std::vector<Token> tokenize(const SourceText& source, std::vector<Diagnostic>& errors);
/// The same of another language.
std::vector<Token> tokenize(const SourceText& source, const Notation& notation, std::vector<Diagnostic>& errors);

/// True for the words that cannot name a tensor, label, scalar or macro.
bool is_reserved(std::string_view word);

}  // namespace einrel
