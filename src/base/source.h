#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace einrel {

/// A half-open range of bytes [begin, end) in a source text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const Span&) const = default;
};

/// A place for people: lines and columns count from 1, columns in characters (not bytes).
struct LineColumn {
  std::size_t line = 1;
  std::size_t column = 1;
};

/// A program text and the name it is known by (a file, or "<string>").
class SourceText {
 public:
  SourceText(std::string name, std::string text);

  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }
  std::string_view slice(Span span) const;
  /// O(log lines) for the line plus O(line length) for the column.
  LineColumn locate(std::size_t offset) const;
  /// The bytes of a line (from 1) without its newline.
  Span line_span(std::size_t line) const;

 private:
  std::string name_;
  std::string text_;
  std::vector<std::size_t> line_starts_;
};

/// One thing that is wrong with a program. The first mark gives the position; further marks on the
/// same line are underlined too. No marks: the complaint is about the program as a whole.
struct Diagnostic {
  std::string message;
  std::vector<Span> marks;
  std::string help;
};

/// What is to be said of a file that is no text at all, instead of many complaints about its bytes: it holds a zero
/// byte, or bytes outside of comments (from # to the end of a line) that are not UTF-8. O(size).
std::optional<Diagnostic> why_not_text(const SourceText& source);

/// `message` with position, source line, carets and help, as a compiler prints it.
std::string render(const Diagnostic& diagnostic, const SourceText& source);

/// With so many errors of one program its reading may end: nobody looks at more, and each takes memory.
inline constexpr std::size_t most_errors = 10'000;

/// Every error of one program, in source order; what() is the rendered text of the first twenty of them.
class ProgramError : public UserError {
 public:
  ProgramError(std::vector<Diagnostic> diagnostics, const SourceText& source);
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace einrel
