#include "tra/text/call_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace einrel::calls {
namespace {

constexpr std::array<std::string_view, 4> statement_words{"kernel", "input", "scalar", "output"};
constexpr std::array<std::string_view, 21> symbols{"->", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%",
                                                   "=",  "<",  ">",  "(",  ")",  "[",  "]", ",", ":", "."};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80U;
}
bool continues_name(char c) { return starts_name(c) || is_digit(c); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class Lexer {
 public:
  Lexer(const SourceText& source, std::vector<Diagnostic>& errors) : text_(source.text()), errors_(errors) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) step();
    const std::size_t last = tokens_.empty() ? 0 : tokens_.back().span.end;
    push(TokenKind::newline, last, last);
    push(TokenKind::end, last, last);
    return std::move(tokens_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (c == '\n') {
      newline();
    } else if (is_blank(c)) {
      ++at_;
    } else if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
      number();
    } else if (starts_name(c)) {
      name();
    } else {
      symbol();
    }
  }

  void push(TokenKind kind, std::size_t begin, std::size_t end) {
    tokens_.push_back({kind, {begin, end}, std::string(text_.substr(begin, end - begin))});
  }

  void name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && continues_name(text_[at_])) {
      at_ += utf8_length(text_.substr(at_));
    }
    push(TokenKind::name, begin, at_);
  }

  /// digits [. digits] [e [sign] digits]
  void number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
    };
    digits();
    if (at_ < text_.size() && text_[at_] == '.') ++at_;
    digits();
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      const std::size_t exponent = at_;
      digits();
      if (at_ == exponent) bad_number(begin);
    } else if (at_ < text_.size() && continues_name(text_[at_])) {
      bad_number(begin);
    }
    if (tokens_.empty() || tokens_.back().kind != TokenKind::bad || tokens_.back().span.begin != begin)
      push(TokenKind::number, begin, at_);
  }

  void bad_number(std::size_t begin) {
    while (at_ < text_.size() && continues_name(text_[at_])) ++at_;
    errors_.push_back({fmt::format("bad number '{}'", text_.substr(begin, at_ - begin)),
                       {{begin, at_}},
                       "a product needs its sign: 2*k0; names start with a letter"});
    push(TokenKind::bad, begin, at_);
  }

  void symbol() {
    const std::string_view rest = text_.substr(at_);
    const auto* found =
        std::find_if(symbols.begin(), symbols.end(), [&](std::string_view s) { return rest.starts_with(s); });
    const std::size_t length = found == symbols.end() ? utf8_length(rest) : found->size();
    if (found == symbols.end()) {
      errors_.push_back({fmt::format("'{}' is not part of the language", printable(rest.substr(0, length))),
                         {{at_, at_ + length}},
                         rest[0] == ';' ? "write each statement on its own line" : ""});
      push(TokenKind::bad, at_, at_ + length);
    } else {
      push(TokenKind::symbol, at_, at_ + length);
      const char c = rest[0];
      if (c == '(' || c == '[') ++open_;
      if ((c == ')' || c == ']') && open_ > 0) --open_;
    }
    at_ += length;
  }

  /// ">" may end a line: it closes a vector.
  bool line_continues() const {
    if (open_ > 0) return true;
    if (tokens_.empty() || tokens_.back().kind != TokenKind::symbol) return false;
    const std::string& last = tokens_.back().text;
    return last != ")" && last != "]" && last != ">";
  }

  void newline() {
    const std::size_t here = at_++;
    if (line_continues() && !statement_starts_at(at_)) return;
    open_ = 0;
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::newline) push(TokenKind::newline, here, here);
  }

  bool statement_starts_at(std::size_t at) const {
    const auto skip_blanks = [&] {
      while (at < text_.size() && is_blank(text_[at])) ++at;
    };
    skip_blanks();
    const std::size_t begin = at;
    while (at < text_.size() && continues_name(text_[at])) ++at;
    const std::string_view word = text_.substr(begin, at - begin);
    if (word.empty() || is_digit(word.front())) return false;
    skip_blanks();
    if (at >= text_.size()) return false;
    if (starts_name(text_[at]))
      return std::find(statement_words.begin(), statement_words.end(), word) != statement_words.end();
    return text_[at] == '=' && (at + 1 >= text_.size() || text_[at + 1] != '=');
  }

  std::string_view text_;
  std::vector<Diagnostic>& errors_;
  std::size_t at_ = 0;
  std::size_t open_ = 0;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize_calls(const SourceText& source, std::vector<Diagnostic>& errors) {
  if (auto nothing = tokens_of_no_text(source, errors)) return std::move(*nothing);
  return Lexer(source, errors).run();
}

}  // namespace einrel::calls
