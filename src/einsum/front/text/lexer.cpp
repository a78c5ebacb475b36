#include "einsum/front/text/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "einsum/expr/complex_function.h"
#include "einsum/expr/functions.h"
#include "einsum/front/text/other_notations.h"
#include "tensor/dtype.h"

namespace einrel {
namespace {

constexpr std::array<std::string_view, 6> statement_words{"dims", "input", "scalar", "def", "gradient", "output"};
constexpr std::array<std::string_view, 6> other_words{"view", "pad", "where", "in_range_at", "wrt", "inf"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80U;
}
bool continues_name(char c) { return starts_name(c) || is_digit(c); }
/// Characters that look like nothing or like punctuation cannot be part of a name: controls, the no-break space,
/// general punctuation with its zero-width characters and quotes, the ideographic space, the byte order mark.
bool is_invisible(std::string_view character) {
  if (character.size() == 2) return character >= "\xC2\x80" && character <= "\xC2\xA0";
  if (character.size() != 3) return false;
  const bool punctuation = character >= "\xE2\x80\x80" && character <= "\xE2\x81\xAF";
  return punctuation || character == "\xE3\x80\x80" || character == "\xEF\xBB\xBF";
}

/// Whether no name goes on with the character at the front of `text`: it looks like nothing, or is a sign.
bool ends_name(std::string_view text) {
  if (static_cast<unsigned char>(text.front()) < 0x80U) return false;
  return is_invisible(text.substr(0, utf8_length(text))) || other_notations::sign_length(text) > 0;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

class Lexer {
 public:
  Lexer(const SourceText& source, const Notation& notation, std::vector<Diagnostic>& errors)
      : notation_(notation), text_(source.text()), errors_(errors) {}

  std::vector<Token> run() {
    while (at_ < text_.size() && errors_.size() < most_errors) step();
    close_brackets();
    const std::size_t last = tokens_.empty() ? 0 : tokens_.back().span.end;  // not behind the last newline
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
    } else if (starts_name(c) && !ends_name(text_.substr(at_))) {
      name();
    } else {
      symbol();
    }
  }

  void push(TokenKind kind, std::size_t begin, std::size_t end) {
    tokens_.push_back({kind, {begin, end}, std::string(text_.substr(begin, end - begin))});
  }

  void error(std::string message, Span where, std::string help = "") {
    errors_.push_back({std::move(message), {where}, std::move(help)});
  }

  void name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && continues_name(text_[at_]) && !ends_name(text_.substr(at_)))
      at_ += utf8_length(text_.substr(at_));
    push(TokenKind::name, begin, at_);
  }

  /// digits [. digits] [e [sign] digits], and nothing that continues a word.
  void number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (at_ < text_.size() && is_digit(text_[at_])) ++at_;
      return at_ > first;
    };
    bool good = digits();
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      good = digits() || good;
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
      good = digits() && good;
    }
    const std::size_t number_end = at_;
    const auto continues = [&] {
      return text_[at_] == '.' || (continues_name(text_[at_]) && !ends_name(text_.substr(at_)));
    };
    while (at_ < text_.size() && continues()) at_ += utf8_length(text_.substr(at_));
    if (at_ > number_end) good = false;
    if (!good) {
      const std::string_view bad = text_.substr(begin, at_ - begin);
      const std::size_t word = bad.find_first_not_of("0123456789");
      const bool product =
          word != std::string_view::npos && starts_name(bad[word]) && bad.find('.') == std::string_view::npos;
      error(fmt::format("bad number '{}'", bad), {begin, at_},
            product ? fmt::format("a product needs its sign: {}*{}; a power of ten is written 1e-3",
                                  bad.substr(0, word), bad.substr(word))
                    : "numbers are written 12, 0.5 or 1e-3");
    }
    push(good ? TokenKind::number : TokenKind::bad, begin, at_);
  }

  void symbol() {
    const std::string_view rest = text_.substr(at_);
    const auto found = std::find_if(notation_.symbols.begin(), notation_.symbols.end(),
                                    [&](std::string_view s) { return rest.starts_with(s); });
    const bool may_be_foreign =
        found == notation_.symbols.end() || (notation_.is_of_einsums && rest.size() > 1 &&
                                             std::string_view("=/*>").find(rest[1]) != std::string_view::npos);
    const std::size_t own = found == notation_.symbols.end() ? 0 : found->size();
    if (const std::size_t length = may_be_foreign ? other_notations::sign_length(rest) : 0; length > own)
      return foreign_sign(rest.substr(0, length));
    if (found == notation_.symbols.end()) {
      const std::size_t length = utf8_length(rest);
      const std::string_view character = rest.substr(0, length);
      error(fmt::format("'{}' is not part of the language", printable(character)), {at_, at_ + length},
            is_invisible(character) ? "it looks like a blank or a quote but is another character; remove it" : "");
      push(TokenKind::bad, at_, at_ + length);
      at_ += length;
      return;
    }
    push(TokenKind::symbol, at_, at_ + found->size());
    track_brackets(tokens_.back());
    at_ += found->size();
  }

  void foreign_sign(std::string_view sign) {
    error(fmt::format("'{}' is not part of the language", printable(sign)), {at_, at_ + sign.size()},
          other_notations::help_for_sign(sign));
    push(TokenKind::bad, at_, at_ + sign.size());
    at_ += sign.size();
    const bool is_comment = sign == "//" || sign == "/*";  // of another language: what it says is no error of its own
    if (is_comment && open_.empty()) at_ = std::min(text_.find('\n', at_), text_.size());
  }

  void track_brackets(const Token& token) {
    if (token.text == "(" || token.text == "[") {
      open_.push_back(token);
    } else if (token.text == ")" || token.text == "]") {
      const std::string wanted = token.text == ")" ? "(" : "[";
      if (!open_.empty() && open_.back().text == wanted) {
        open_.pop_back();
      } else if (open_.empty()) {
        error(fmt::format("'{}' closes nothing", token.text), token.span, "remove it, or open it earlier on the line");
        tokens_.pop_back();
      } else {
        const Token opener = open_.back();
        error(fmt::format("'{}' cannot close '{}'", token.text, opener.text), {token.span.begin, token.span.end},
              fmt::format("close '{}' with '{}' first", opener.text, opener.text == "(" ? ")" : "]"));
        errors_.back().marks.push_back(opener.span);
        tokens_.back().text = opener.text == "(" ? ")" : "]";
        open_.pop_back();
      }
    }
  }

  void close_brackets() {
    for (const Token& opener : open_) {
      error(fmt::format("'{}' is never closed", opener.text), opener.span,
            fmt::format("add '{}'", opener.text == "(" ? ")" : "]"));
    }
    if (!open_.empty()) push(TokenKind::bad, at_, at_);  // the parser need not complain as well
    open_.clear();
  }

  bool line_continues() const {
    if (!open_.empty()) return true;
    if (tokens_.empty() || tokens_.back().kind != TokenKind::symbol) return false;
    return !notation_.may_end_behind(tokens_);
  }

  void newline() {
    const std::size_t here = at_++;
    if (line_continues() && !statement_starts_at(at_)) return;
    close_brackets();
    if (!tokens_.empty() && tokens_.back().kind != TokenKind::newline) push(TokenKind::newline, here, here);
  }

  /// Whether the line that begins at `at` begins with a statement's word or with what is defined.
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
    if (at < text_.size() && starts_name(text_[at])) {
      const std::vector<std::string_view>& words = notation_.statement_words;
      return std::find(words.begin(), words.end(), word) != words.end();
    }
    if (notation_.is_of_einsums) {
      if (at >= text_.size() || text_[at] != '[') return false;
      while (at < text_.size() && text_[at] != ']' && text_[at] != '\n') ++at;
      if (at >= text_.size() || text_[at] != ']') return false;
      ++at;
      skip_blanks();
    }
    return at < text_.size() && text_[at] == '=' && (at + 1 >= text_.size() || text_[at + 1] != '=');
  }

  const Notation& notation_;
  std::string_view text_;
  std::vector<Diagnostic>& errors_;
  std::size_t at_ = 0;
  std::vector<Token> tokens_;
  std::vector<Token> open_;
};

/// sum[i,j] at the end of a line: the product that it takes must follow.
bool end_with_reduction(const std::vector<Token>& tokens) {
  std::size_t opener = tokens.size() - 1;
  while (opener > 0 && tokens[opener].text != "[" && tokens[opener].kind != TokenKind::newline) --opener;
  return opener > 0 && tokens[opener].text == "[" && reducer_named(tokens[opener - 1].text).has_value();
}

bool may_end_behind(const std::vector<Token>& tokens) {
  return tokens.back().text == ")" || (tokens.back().text == "]" && !end_with_reduction(tokens));
}

}  // namespace

std::vector<Token> tokenize(const SourceText& source, const Notation& notation, std::vector<Diagnostic>& errors) {
  if (std::optional<Diagnostic> no_text = why_not_text(source)) {  // one bad token, at which parsers stop silently
    errors.push_back(std::move(*no_text));
    return {{TokenKind::bad, {}, ""}, {TokenKind::newline, {}, ""}, {TokenKind::end, {}, ""}};
  }
  return Lexer(source, notation, errors).run();
}

std::vector<Token> tokenize(const SourceText& source, std::vector<Diagnostic>& errors) {
  static const Notation notation{
      {statement_words.begin(), statement_words.end()},
      {"**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "=", "<", ">", "(", ")", "[", "]", ",", ":"},
      may_end_behind};
  return tokenize(source, notation, errors);
}

bool is_reserved(std::string_view word) {
  const auto among = [&](const auto& words) { return std::find(words.begin(), words.end(), word) != words.end(); };
  return among(statement_words) || among(other_words) || unary_named(word) || binary_named(word) ||
         reducer_named(word) || opaque_named(word) || random_named(word) || random_at_named(word) ||
         dtype_named(word) || complex_named(word) || parts_of_type_named(word);
}

}  // namespace einrel
