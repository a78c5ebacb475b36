#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/source.h"
#include "einsum/front/build/program.h"
#include "einsum/front/text/lexer.h"

/// The parts of the parser that parse.cpp and parse_expr.cpp share.
namespace einrel::parsing {

/// What statements begin with, but for definitions.
const std::vector<std::string>& statement_starts();

/// Ends the reading of one statement; parse() collects it.
struct SyntaxError {
  Diagnostic diagnostic;
};

/// A position in the tokens of a program. The expect_ functions throw SyntaxError.
class Cursor {
 public:
  Cursor(std::vector<Token> tokens, std::vector<Diagnostic>& errors) : tokens_(std::move(tokens)), errors_(errors) {}

  const Token& peek(std::size_t ahead = 0) const;
  Token next();
  /// What comes next, or so many tokens later.
  bool at_symbol(std::string_view symbol, std::size_t ahead = 0) const;
  bool at_word(std::string_view word, std::size_t ahead = 0) const;
  bool at_end_of_statement(std::size_t ahead = 0) const;
  /// Takes the symbol if it comes next.
  bool accept(std::string_view symbol);
  /// Takes the symbol, or complains with `help`.
  void expect(std::string_view symbol, std::string_view help);
  build::Name expect_name(std::string_view what);
  /// A name that is no word of the language.
  build::Name expect_new_name(std::string_view what);
  /// A whole number without a sign.
  std::int64_t expect_extent();
  /// [-] number, or [-] inf.
  build::Number expect_signed_number();
  void expect_end_of_statement() const;
  void expect_end_of_program() const;
  /// Moves to the end of the statement; the names in it that may have been meant as definitions.
  std::vector<std::string> skip_statement_from(std::size_t start);
  /// Takes the end of a statement; nothing else does.
  bool skip_newline();
  /// An error after which the statement can still be read.
  void report(Diagnostic diagnostic) { errors_.push_back(std::move(diagnostic)); }
  std::size_t previous_end() const { return previous_end_; }
  std::size_t position() const { return at_; }

 private:
  std::vector<Token> tokens_;
  std::vector<Diagnostic>& errors_;
  std::size_t at_ = 0;
  std::size_t previous_end_ = 0;
};

/// The value of a number token; SyntaxError when it exceeds the range of a double.
build::Number number_of(const Token& token);

/// [-] part { (+|-) part } with part = integer [* label] | label [* integer]
build::Index parse_index(Cursor& cursor);

/// The dimensions of either side of a view in their brackets, and one of them: h, (h d), () or 1.
std::vector<build::Group> parse_groups(Cursor& cursor);
build::Group parse_group(Cursor& cursor);
inline constexpr const char* dimension_help =
    "between labels; only reads have windows and positions, X[i+1] or X[0]; labels of a group are separated by blanks";

/// What stands behind the sign of name[left] = value.
std::variant<build::Definition, build::ViewDefinition> parse_value(Cursor& cursor, const build::Name& name,
                                                                   const std::vector<build::Group>& left);

/// additive [comparison additive]; see docs/language.md for the grammar.
build::Expr parse_expr(Cursor& cursor);

/// `what` the parser met, for people: "'+'", "the end of the line".
std::string describe(const Token& token);

}  // namespace einrel::parsing
