#include "base/source.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace einrel {
namespace {

/// A line longer than this is cut around the first mark when it is shown.
constexpr std::size_t max_shown_line = 160;
/// A message with longer names than this in it is cut.
constexpr std::size_t max_shown_text = 600;
/// Past this many errors the rest is only counted: nobody reads further, and output stays bounded.
constexpr std::size_t max_rendered = 20;

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

std::size_t count_characters(std::string_view bytes) {
  return static_cast<std::size_t>(
      std::count_if(bytes.begin(), bytes.end(), [](char byte) { return !continues_character(byte); }));
}

/// The part of a long line that is worth showing; starts and ends on whole characters.
Span visible_part(const std::string& text, Span line, Span mark) {
  if (line.end - line.begin <= max_shown_line) return line;
  std::size_t begin = line.begin;
  if (mark.begin > line.begin + max_shown_line / 2) begin = mark.begin - max_shown_line / 2;
  std::size_t end = std::min(line.end, begin + max_shown_line);
  while (begin < end && continues_character(text[begin])) ++begin;
  while (end < line.end && continues_character(text[end])) ++end;
  return {begin, end};
}

/// A source line as a terminal may show it: characters that would move the cursor become '?', so that the carets
/// stay below what they mean.
std::string shown_line(std::string_view bytes) {
  std::string line;
  while (!bytes.empty()) {
    const std::string_view character = bytes.substr(0, std::max<std::size_t>(utf8_length(bytes), 1));
    line += character == "\t" ? " " : is_printable(character) ? character : "?";
    bytes.remove_prefix(character.size());
  }
  return line;
}

std::string carets(const std::string& text, Span shown, const std::vector<Span>& marks) {
  std::string under(count_characters(std::string_view(text).substr(shown.begin, shown.end - shown.begin)) + 1, ' ');
  for (const Span& mark : marks) {
    if (mark.begin < shown.begin || mark.begin > shown.end) continue;
    const std::size_t at = count_characters(std::string_view(text).substr(shown.begin, mark.begin - shown.begin));
    const std::size_t stop = std::clamp(mark.end, mark.begin, shown.end);
    const std::size_t length = count_characters(std::string_view(text).substr(mark.begin, stop - mark.begin));
    for (std::size_t i = at; i < std::min(at + std::max<std::size_t>(length, 1), under.size()); ++i) under[i] = '^';
  }
  under.erase(under.find_last_not_of(' ') + 1);
  return under;
}

/// What a file that is no text seems to be, from its first bytes.
std::string remedy_for_bytes(std::string_view bytes) {
  constexpr std::string_view numpy = "\x93NUMPY";
  constexpr std::string_view zip = "PK\x03\x04";
  if (bytes.starts_with(numpy) || bytes.starts_with(zip))
    return "a file with tensors is bound to an input of a program: --in NAME=FILE";
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) return "it seems to be UTF-16: save it as UTF-8";
  return "save the program as a text in UTF-8";
}

std::string render_all(const std::vector<Diagnostic>& diagnostics, const SourceText& source) {
  std::string out;
  const std::size_t shown = std::min(diagnostics.size(), max_rendered);
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) out += "\n";
    out += render(diagnostics[i], source);
  }
  if (diagnostics.size() > shown) {
    out += fmt::format("\nand {}{}\n", diagnostics.size() >= most_errors ? "at least " : "",
                       counted(diagnostics.size() - shown, "more error"));
  }
  return out;
}

}  // namespace

SourceText::SourceText(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)), line_starts_{0} {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";  // some editors put it in front; it means nothing
  if (text_.starts_with(byte_order_mark)) text_.erase(0, byte_order_mark.size());
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
}

std::string_view SourceText::slice(Span span) const {
  return std::string_view(text_).substr(span.begin, span.end - span.begin);
}

LineColumn SourceText::locate(std::size_t offset) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<std::size_t>(after - line_starts_.begin());
  const std::size_t start = line_starts_[line - 1];
  return {line, 1 + count_characters(std::string_view(text_).substr(start, offset - start))};
}

Span SourceText::line_span(std::size_t line) const {
  const std::size_t begin = line_starts_[line - 1];
  std::size_t end = line < line_starts_.size() ? line_starts_[line] - 1 : text_.size();
  if (end > begin && text_[end - 1] == '\r') --end;
  return {begin, end};
}

std::optional<Diagnostic> why_not_text(const SourceText& source) {
  const std::string_view text = source.text();
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return Diagnostic{fmt::format("{} is not a text: it holds a zero byte", source.name()),
                      {{zero, zero + 1}},
                      remedy_for_bytes(text)};
  }
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] == '#') {  // what an old editor left in a comment harms nobody
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    const std::size_t length = utf8_length(text.substr(at));
    if (length == 0) return Diagnostic{"this byte is not UTF-8", {{at, at + 1}}, remedy_for_bytes(text)};
    at += length;
  }
  return std::nullopt;
}

std::string render(const Diagnostic& diagnostic, const SourceText& source) {
  std::string out = fmt::format("error: {}\n", printable(diagnostic.message, max_shown_text));
  if (!diagnostic.marks.empty()) {
    const LineColumn place = source.locate(diagnostic.marks.front().begin);
    const Span shown = visible_part(source.text(), source.line_span(place.line), diagnostic.marks.front());
    const std::string number = std::to_string(place.line);
    const std::string margin(number.size(), ' ');
    out += fmt::format("{} --> {}:{}:{}\n", margin, printable(source.name()), place.line, place.column);
    out += fmt::format(" {} | {}\n", number, shown_line(source.slice(shown)));
    out += fmt::format(" {} | {}\n", margin, carets(source.text(), shown, diagnostic.marks));
  }
  if (!diagnostic.help.empty()) out += fmt::format("  help: {}\n", printable(diagnostic.help, max_shown_text));
  return out;
}

ProgramError::ProgramError(std::vector<Diagnostic> diagnostics, const SourceText& source)
    : UserError(render_all(diagnostics, source)), diagnostics_(std::move(diagnostics)) {}

}  // namespace einrel
