#pragma once

#include <vector>

#include "base/source.h"
#include "einsum/text/lexer.h"

namespace einrel::calls {

/// The tokens of a program in the textual form of the algebras. A statement ends with its line unless a parenthesis or
/// bracket is open, or the line ends with a sign that something must follow; a line that starts with `NAME =` or with a
/// statement's word and a name always starts a statement. Adds characters outside the language and bad numbers to
/// `errors`. O(size).
std::vector<Token> tokenize_calls(const SourceText& source, std::vector<Diagnostic>& errors);

}  // namespace einrel::calls
