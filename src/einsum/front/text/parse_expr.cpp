#include "einsum/front/text/parse_expr.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/suggest.h"
#include "einsum/front/text/other_notations.h"

namespace einrel::parsing {
namespace {

constexpr std::size_t max_nesting = 256;
constexpr const char* continuation_help = "a line continues after an operator or a comma, and inside brackets";

// NOLINTBEGIN(misc-no-recursion): recursive descent, at most max_nesting deep: Level counts
/// Recursive descent over one expression.
class ExprParser {
 public:
  explicit ExprParser(Cursor& cursor) : cursor_(cursor) {}

  build::Expr run() {
    comparison();
    return std::move(expr_);
  }

  build::Index index() {
    build::Index index;
    index.span.begin = here();
    std::int64_t sign = cursor_.accept("-") ? -1 : 1;
    while (true) {
      index_part(index, sign);
      if (cursor_.accept("+")) {
        sign = 1;
      } else if (cursor_.accept("-")) {
        sign = -1;
      } else {
        break;
      }
    }
    index.span.end = cursor_.previous_end();
    return index;
  }

 private:
  /// Counts one level of nesting while it lives.
  class Level {
   public:
    Level(std::size_t& depth, const Token& token) : depth_(depth) {
      if (++depth_ > max_nesting) {
        --depth_;
        throw SyntaxError{{fmt::format("this expression nests more than {} deep", max_nesting),
                           {token.span},
                           "split the statement in two"}};
      }
    }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    std::size_t& depth_;
  };

  template <class Op>
  void emit(std::size_t begin, Op op) {
    expr_.nodes.push_back({{begin, cursor_.previous_end()}, std::move(op)});
  }

  std::size_t here() const { return cursor_.peek().span.begin; }
  static std::optional<BinaryFunction> comparison_sign(const Token& token) {
    if (token.kind != TokenKind::symbol) return std::nullopt;
    if (token.text == "<") return BinaryFunction::less;
    if (token.text == "<=") return BinaryFunction::less_equal;
    if (token.text == ">") return BinaryFunction::greater;
    if (token.text == ">=") return BinaryFunction::greater_equal;
    if (token.text == "==") return BinaryFunction::equal;
    if (token.text == "!=") return BinaryFunction::not_equal;
    return std::nullopt;
  }

  void comparison() {
    const Level level(depth_, cursor_.peek());
    const std::size_t begin = here();
    additive();
    const auto sign = comparison_sign(cursor_.peek());
    if (!sign) return;
    cursor_.next();
    additive();
    emit(begin, build::Binary{*sign});
    if (comparison_sign(cursor_.peek())) {
      throw SyntaxError{{"comparisons do not chain", {cursor_.peek().span}, "write (a < b) * (b < c)"}};
    }
  }

  void additive() {
    const std::size_t begin = here();
    product();
    while (cursor_.at_symbol("+") || cursor_.at_symbol("-")) {
      const auto function = cursor_.next().text == "+" ? BinaryFunction::add : BinaryFunction::subtract;
      product();
      emit(begin, build::Binary{function});
    }
  }

  void product() {
    const std::size_t begin = here();
    unary();
    while (cursor_.at_symbol("*") || cursor_.at_symbol("/")) {
      const auto function = cursor_.next().text == "*" ? BinaryFunction::multiply : BinaryFunction::divide;
      unary();
      emit(begin, build::Binary{function});
    }
  }

  /// inverse[i,j](x), qr_q[i,j,k](x)
  void opaque(const Token& token, OpaqueResult result) {
    const std::size_t count = matrix_labels(result.function);
    const std::string usage =
        fmt::format("name the matrix's rows and columns{}: {}[i,j{}](A[b,i,j])",
                    count == 2 ? "" : ", and what is between its factors", token.text, count == 2 ? "" : ",k");
    if (!cursor_.at_symbol("[")) throw SyntaxError{{fmt::format("{} takes labels", token.text), {token.span}, usage}};
    std::vector<build::Name> matrix = label_list();
    if (const std::size_t given = matrix.size(); given != count)
      throw SyntaxError{{fmt::format("{} takes {} labels, not {}", token.text, count, given), {token.span}, usage}};
    check_count(token, arguments(), 1);
    emit(token.span.begin, build::OpaqueCall{result, std::move(matrix)});
  }

  bool at_reduction() const {
    return cursor_.peek().kind == TokenKind::name && cursor_.peek(1).text == "[" && reducer_named(cursor_.peek().text);
  }

  /// A sign, a reduction (which takes the whole product that follows), or a power.
  void unary() {
    const std::size_t begin = here();
    if (cursor_.accept("-")) {
      const Level level(depth_, cursor_.peek());
      unary();
      emit(begin, build::Unary{UnaryFunction::negate});
    } else if (at_reduction()) {
      const Level level(depth_, cursor_.peek());
      const Reducer reducer = *reducer_named(cursor_.next().text);
      std::vector<build::Name> labels = label_list();
      product();
      emit(begin, build::Reduce{reducer, std::move(labels)});
    } else {
      power();
    }
  }

  void power() {
    const std::size_t begin = here();
    primary();
    if (!cursor_.accept("**")) return;
    const Level level(depth_, cursor_.peek());
    unary();  // right-associative; the exponent may carry a sign
    emit(begin, build::Binary{BinaryFunction::power});
  }

  std::vector<build::Name> label_list() {
    std::vector<build::Name> labels;
    const Token open = cursor_.next();
    while (!cursor_.accept("]")) {
      if (!labels.empty()) cursor_.expect(",", "between labels");
      labels.push_back(cursor_.expect_new_name("a label"));
    }
    if (labels.empty()) throw SyntaxError{{"no label between the brackets", {open.span}, "name the labels: sum[j]"}};
    return labels;
  }

  void primary() {
    const Token token = cursor_.peek();
    if (token.kind == TokenKind::number) {
      const build::Number number = number_of(cursor_.next());
      emit(token.span.begin, number);
    } else if (token.kind == TokenKind::name) {
      named();
    } else if (cursor_.at_symbol("(")) {
      cursor_.next();
      comparison();
      cursor_.expect(")", "to close the parenthesis");
    } else if (cursor_.at_symbol("+")) {
      throw SyntaxError{{"there is no sign '+'", {token.span}, "leave it out"}};
    } else {
      throw SyntaxError{
          {fmt::format("an expression is missing before {}", describe(token)), {token.span}, continuation_help}};
    }
  }

  void named() {
    const Token token = cursor_.next();
    const bool bracket = cursor_.at_symbol("[");
    const bool parenthesis = cursor_.at_symbol("(");
    if (token.text == "inf") {
      emit(token.span.begin, build::Number{std::numeric_limits<double>::infinity(), std::nullopt});
    } else if (token.text == "pad" && parenthesis) {
      pad(token);
    } else if (const auto result = opaque_named(token.text)) {
      opaque(token, *result);
    } else if (parenthesis) {
      call(token);
    } else if (is_reserved(token.text)) {
      reserved(token);
    } else if (bracket) {
      access_or_macro(token);
    } else {
      refuse_prefix(token);
      emit(token.span.begin, build::NameUse{token.text});
    }
  }

  /// `not x`, `lambda x`: a word of another language in front of an expression.
  void refuse_prefix(const Token& word) const {
    if (cursor_.peek().kind != TokenKind::name && cursor_.peek().kind != TokenKind::number) return;
    std::string help = other_notations::help_for_word(word.text);
    if (!help.empty())
      throw SyntaxError{{fmt::format("'{}' is not part of the language", word.text), {word.span}, std::move(help)}};
  }

  [[noreturn]] static void reserved(const Token& token) {
    const std::string& word = token.text;
    std::string help = "choose another name";
    if (reducer_named(word)) help = fmt::format("a reduction names its labels: {}[j] X[i,j]", word);
    if (unary_named(word) || dtype_named(word)) help = fmt::format("a function takes parentheses: {}(x)", word);
    throw SyntaxError{{fmt::format("'{}' is a word of the language", word), {token.span}, help}};
  }

  std::size_t arguments() {
    cursor_.expect("(", "arguments stand in parentheses");
    std::size_t count = 0;
    while (!cursor_.accept(")")) {
      if (count > 0) {
        cursor_.expect(",", cursor_.at_symbol("=") ? "arguments have no names; '==' compares"
                                                   : "between arguments, or ')' after the last one");
      }
      comparison();
      ++count;
    }
    return count;
  }

  static void check_count(const Token& function, std::size_t found, std::size_t wanted) {
    if (found == wanted) return;
    throw SyntaxError{
        {fmt::format("{} takes {} argument{}, not {}", function.text, wanted, wanted == 1 ? "" : "s", found),
         {function.span},
         reducer_named(function.text) ? fmt::format("a reduction names its labels: {}[j] X[i,j]", function.text) : ""}};
  }

  void call(const Token& token) {
    const std::size_t count = arguments();
    const auto emit_of = [&](std::size_t wanted, build::Operation op) {
      check_count(token, count, wanted);
      emit(token.span.begin, std::move(op));
    };
    if (token.text == "where") {
      emit_of(3, build::Where{});
    } else if (const auto unary = unary_named(token.text)) {
      emit_of(1, build::Unary{*unary});
    } else if (const auto binary = binary_named(token.text)) {
      emit_of(2, build::Binary{*binary});
    } else if (const auto random = random_named(token.text)) {
      emit_of(1, build::Random{*random, std::nullopt});
    } else if (const auto random_at = random_at_named(token.text)) {
      check_count(token, count, 4);
      emit(token.span.begin, build::Random{*random_at, take_stream(token)});
    } else if (token.text == "in_range_at") {
      check_count(token, count, 4);
      emit(token.span.begin, take_range(token));
    } else if (const auto dtype = dtype_named(token.text), parts = parts_of_type_named(token.text); dtype || parts) {
      emit_of(1, build::Cast{parts.value_or(dtype.value_or(DType::f32)), parts.has_value()});
    } else if (const auto complex = complex_named(token.text)) {
      emit_of(*complex == ComplexFunction::complex ? 2 : 1, build::ComplexCall{*complex});
    } else if (is_reserved(token.text)) {
      reserved(token);
    } else {
      emit(token.span.begin, build::MacroCall{{token.text, token.span}, {}, count});
    }
  }

  /// The last argument of uniform_at.
  std::uint32_t take_stream(const Token& function) {
    const auto* const number = std::get_if<build::Number>(&expr_.nodes.back().op);
    if (number == nullptr || number->integer.value_or(-1) < 0 || *number->integer > 0xffffffff) {
      throw SyntaxError{{fmt::format("the stream of {} is a whole number up to 4294967295", function.text),
                         {expr_.nodes.back().span},
                         "as in uniform_at(seed, position, 0, 1)"}};
    }
    const auto stream = static_cast<std::uint32_t>(*number->integer);
    expr_.nodes.pop_back();
    return stream;
  }

  /// The last two arguments of in_range_at.
  build::InRange take_range(const Token& function) {
    std::optional<build::InRange> range = build::range_of(expr_.nodes[expr_.nodes.size() - 2], expr_.nodes.back());
    if (!range) {
      throw SyntaxError{
          {"in_range_at ends with the shape of the tensor that says positions and the extent that it indexes",
           {function.span},
           "as in in_range_at(T[s], s, T[8], E[5])"}};
    }
    expr_.nodes.resize(expr_.nodes.size() - 2);
    return *std::move(range);
  }

  void access_or_macro(const Token& token) {
    const std::size_t open = cursor_.peek().span.begin;
    std::vector<build::Index> indices = index_list();
    if (cursor_.at_symbol("[")) {
      throw SyntaxError{{fmt::format("'{}' is indexed twice", token.text),
                         {cursor_.peek().span},
                         "all indices stand in one pair of brackets: X[i,j]"}};
    }
    const TokenKind next = cursor_.peek().kind;
    if (next == TokenKind::name || next == TokenKind::number) misspelt_reduction(token);
    if (!cursor_.at_symbol("(")) {
      emit(token.span.begin, build::Access{{token.text, token.span}, std::move(indices), std::nullopt});
      return;
    }
    std::vector<build::Name> labels;
    for (const build::Index& index : indices) {
      const bool plain = index.terms.size() == 1 && index.terms[0].coefficient == 1 && index.offset == 0;
      if (!plain) {
        throw SyntaxError{{fmt::format("'{}' is called like a macro, whose brackets hold labels only", token.text),
                           {index.span},
                           "a product needs its sign: X[i] * (...)"}};
      }
      labels.push_back(index.terms[0].label);
    }
    if (labels.empty()) {
      throw SyntaxError{
          {"no label between the brackets", {{open, open + 1}}, fmt::format("write {}(...)", token.text)}};
    }
    const std::size_t count = arguments();
    emit(token.span.begin, build::MacroCall{{token.text, token.span}, std::move(labels), count});
  }

  /// NAME[j] with something behind it that a tensor cannot have: was a reduction meant?
  static void misspelt_reduction(const Token& token) {
    std::vector<std::string> known;
    for (const FunctionInfo& info : all_functions()) {
      if (reducer_named(info.name)) known.emplace_back(info.name);
    }
    const std::string near = token.text == "average" ? "did you mean 'mean'?" : did_you_mean(token.text, known);
    if (!near.empty()) throw SyntaxError{{fmt::format("unknown reduction '{}'", token.text), {token.span}, near}};
  }

  /// pad(X[...], number)
  void pad(const Token& token) {
    cursor_.next();
    const Token tensor = cursor_.next();
    if (tensor.kind != TokenKind::name || !cursor_.at_symbol("[")) {
      throw SyntaxError{{"pad wraps one tensor", {tensor.span}, "as in pad(X[y+dy,x+dx], 0)"}};
    }
    build::Access access{{tensor.text, tensor.span}, index_list(), std::nullopt};
    cursor_.expect(",", "pad takes a tensor and a number: pad(X[y+dy], 0)");
    access.pad = cursor_.expect_signed_number().value;
    cursor_.expect(")", "pad takes a tensor and a number: pad(X[y+dy], 0)");
    emit(token.span.begin, std::move(access));
  }

  std::vector<build::Index> index_list() {
    std::vector<build::Index> indices;
    cursor_.expect("[", "indices stand in brackets");
    while (!cursor_.accept("]")) {
      if (!indices.empty() && !cursor_.at_symbol(":")) cursor_.expect(",", "between indices");
      indices.push_back(is_element_ahead() ? computed_index() : index());
    }
    return indices;
  }

  /// Whether the index at hand reads a tensor or calls a function.
  bool is_element_ahead() const {
    std::size_t depth = 0;
    for (std::size_t ahead = 0; !cursor_.at_end_of_statement(ahead); ++ahead) {
      const Token& token = cursor_.peek(ahead);
      const bool opens = token.text == "[" || token.text == "(";
      if (opens && ahead > 0 && cursor_.peek(ahead - 1).kind == TokenKind::name) return true;
      if (opens) ++depth;
      const bool closes = token.text == "]" || token.text == ")";
      if (depth == 0 && (closes || token.text == ",")) return false;
      if (closes) --depth;
    }
    return false;
  }

  /// T[s] of E[T[s],d]
  build::Index computed_index() {
    const Level level(depth_, cursor_.peek());
    build::Index index;
    index.is_computed = true;
    index.span.begin = here();
    additive();
    index.span.end = cursor_.previous_end();
    return index;
  }

  void index_part(build::Index& index, std::int64_t sign) {
    const Token first = cursor_.next();
    std::int64_t factor = 1;
    std::optional<build::Name> label;
    const auto take = [&](const Token& token) {
      if (token.kind == TokenKind::number) {
        const auto integer = number_of(token).integer;
        if (!integer || *integer > std::numeric_limits<std::int32_t>::max()) {
          throw SyntaxError{{fmt::format("'{}' cannot stand in an index", token.text),
                             {token.span},
                             "an index is made of labels and whole numbers below 2^31"}};
        }
        factor *= *integer;
      } else if (token.kind == TokenKind::name && !is_reserved(token.text)) {
        label = build::Name{token.text, token.span};
      } else if (token.text == ":") {
        throw SyntaxError{{"there are no slices with ':'", {token.span}, other_notations::slice_help}};
      } else {
        throw SyntaxError{{fmt::format("{} cannot stand in an index", describe(token)),
                           {token.span},
                           "an index is a label, or a sum such as 2*y+dy-1; groups like (h d) belong to views"}};
      }
    };
    take(first);
    if (cursor_.accept("*")) {
      const Token second = cursor_.next();
      if (second.kind == first.kind) {
        throw SyntaxError{{"an index multiplies a label by a whole number only", {second.span}, "as in X[2*y+dy]"}};
      }
      take(second);
    }
    if (label) {
      index.terms.push_back({sign * factor, *label});
    } else if (__builtin_add_overflow(index.offset, sign * factor, &index.offset)) {
      throw SyntaxError{{"this index is out of any range", {first.span}, ""}};
    }
  }

  Cursor& cursor_;
  build::Expr expr_;
  std::size_t depth_ = 0;
};
// NOLINTEND(misc-no-recursion)

}  // namespace

const Token& Cursor::peek(std::size_t ahead) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }

Token Cursor::next() {
  Token token = peek();
  if (token.kind == TokenKind::bad) throw SyntaxError{};  // reported by the lexer
  previous_end_ = token.span.end;
  // The end of a statement is not passed, so that none reads into the next one.
  if (token.kind != TokenKind::newline && token.kind != TokenKind::end) ++at_;
  return token;
}

bool Cursor::at_symbol(std::string_view symbol, std::size_t ahead) const {
  return peek(ahead).kind == TokenKind::symbol && peek(ahead).text == symbol;
}

bool Cursor::at_word(std::string_view word, std::size_t ahead) const {
  return peek(ahead).kind == TokenKind::name && peek(ahead).text == word;
}

bool Cursor::at_end_of_statement(std::size_t ahead) const {
  return peek(ahead).kind == TokenKind::newline || peek(ahead).kind == TokenKind::end;
}

bool Cursor::accept(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  next();
  return true;
}

void Cursor::expect(std::string_view symbol, std::string_view help) {
  if (accept(symbol)) return;
  throw SyntaxError{
      {fmt::format("expected '{}' before {}", symbol, describe(peek())), {peek().span}, std::string(help)}};
}

build::Name Cursor::expect_name(std::string_view what) {
  if (peek().kind != TokenKind::name) {
    const bool is_operator =
        peek().kind == TokenKind::symbol && std::string_view("+-*/**").find(peek().text) != std::string_view::npos;
    throw SyntaxError{{fmt::format("expected {} before {}", what, describe(peek())),
                       {peek().span},
                       is_operator          ? continuation_help
                       : peek().text == ":" ? other_notations::slice_help
                                            : ""}};
  }
  const Token token = next();
  return {token.text, token.span};
}

build::Name Cursor::expect_new_name(std::string_view what) {
  build::Name name = expect_name(what);
  if (is_reserved(name.text)) {
    throw SyntaxError{{fmt::format("'{}' is a word of the language and cannot name {}", name.text, what),
                       {name.span},
                       "choose another name"}};
  }
  return name;
}

std::int64_t Cursor::expect_extent() {
  const Token token = next();
  const auto number = token.kind == TokenKind::number ? number_of(token).integer : std::nullopt;
  if (!number) {
    throw SyntaxError{{fmt::format("{} is not an extent", describe(token)),
                       {token.span},
                       "an extent is a whole number from 0 to 2^63-1"}};
  }
  return *number;
}

build::Number Cursor::expect_signed_number() {
  const bool negative = accept("-");
  const Token token = next();
  build::Number number;
  if (token.kind == TokenKind::name && token.text == "inf") {
    number.value = std::numeric_limits<double>::infinity();
  } else if (token.kind == TokenKind::number) {
    number = number_of(token);
  } else {
    throw SyntaxError{{fmt::format("expected a number before {}", describe(token)), {token.span}, ""}};
  }
  if (negative) {
    number.value = -number.value;
    if (number.integer) number.integer = -*number.integer;
  }
  return number;
}

void Cursor::expect_end_of_program() const {
  if (peek().kind == TokenKind::end) return;
  throw SyntaxError{
      {fmt::format("expected the end before {}", describe(peek())), {peek().span}, "one expression is enough"}};
}

void Cursor::expect_end_of_statement() const {
  if (at_end_of_statement()) return;
  const bool product = peek().kind == TokenKind::name || peek().kind == TokenKind::number || peek().text == "(";
  std::string help = peek().kind == TokenKind::name ? other_notations::help_for_word(peek().text) : "";
  if (help.empty() && product) help = "a product needs its sign '*'; each statement stands on its own line";
  if (peek().text == "=") help = "a statement has one '='; '==' compares";
  throw SyntaxError{
      {fmt::format("expected the end of the statement before {}", describe(peek())), {peek().span}, std::move(help)}};
}

std::vector<std::string> Cursor::skip_statement_from(std::size_t start) {
  std::vector<std::string> names;
  // A misspelt `input` would have declared all the names behind it.
  const bool has_keyword =
      is_reserved(tokens_[start].text) || !nearest_name(tokens_[start].text, statement_starts()).empty();
  for (at_ = start; peek().kind != TokenKind::newline && peek().kind != TokenKind::end; ++at_) {
    if (peek().kind == TokenKind::name && (has_keyword || at_ == start)) names.push_back(peek().text);
  }
  return names;
}

bool Cursor::skip_newline() {
  if (peek().kind != TokenKind::newline) return false;
  ++at_;
  return true;
}

build::Number number_of(const Token& token) {
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  build::Number number;
  std::int64_t integer = 0;
  const auto whole = std::from_chars(begin, end, integer);
  if (whole.ec == std::errc() && whole.ptr == end) number.integer = integer;
  if (std::from_chars(begin, end, number.value).ec == std::errc::result_out_of_range) {
    number.value = std::strtod(begin, nullptr);  // tells too large (infinity) from too small (0)
  }
  if (!std::isfinite(number.value)) {
    throw SyntaxError{{fmt::format("bad number '{}': it is beyond the range of f64", token.text),
                       {token.span},
                       "infinity is written inf"}};
  }
  return number;
}

build::Index parse_index(Cursor& cursor) { return ExprParser(cursor).index(); }

build::Expr parse_expr(Cursor& cursor) { return ExprParser(cursor).run(); }

std::string describe(const Token& token) {
  if (token.kind == TokenKind::newline) return "the end of the line";
  if (token.kind == TokenKind::end) return "the end of the program";
  return fmt::format("'{}'", token.text);
}

}  // namespace einrel::parsing
