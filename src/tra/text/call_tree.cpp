#include "tra/text/call_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/suggest.h"
#include "einsum/front/text/lexer.h"
#include "einsum/front/text/parse_expr.h"
#include "tra/text/kernel_statement.h"

namespace einrel::calls {
namespace {

using parsing::Cursor;
using parsing::describe;
using parsing::SyntaxError;

constexpr std::size_t max_nesting = 256;

/// Counts one level of nesting while it lives.
class Level {
 public:
  Level(std::size_t& depth, const Token& token) : depth_(depth) {
    if (++depth_ > max_nesting) {
      --depth_;
      throw SyntaxError{
          {fmt::format("this nests more than {} deep", max_nesting), {token.span}, "split the statement in two"}};
    }
  }
  ~Level() { --depth_; }
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

 private:
  std::size_t& depth_;
};

struct Operator {
  std::string_view sign;
  KeyFunction function;
  int binding;
};
constexpr std::array<Operator, 13> operators{{{"or", KeyFunction::logical_or, 1},
                                              {"and", KeyFunction::logical_and, 2},
                                              {"==", KeyFunction::equal, 3},
                                              {"!=", KeyFunction::not_equal, 3},
                                              {"<", KeyFunction::less, 3},
                                              {"<=", KeyFunction::less_equal, 3},
                                              {">", KeyFunction::greater, 3},
                                              {">=", KeyFunction::greater_equal, 3},
                                              {"+", KeyFunction::add, 4},
                                              {"-", KeyFunction::subtract, 4},
                                              {"*", KeyFunction::multiply, 5},
                                              {"/", KeyFunction::divide, 5},
                                              {"%", KeyFunction::modulo, 5}}};
constexpr int loosest = 1;
constexpr int comparison = 3;
constexpr int additive = 4;
constexpr int product = 5;

// NOLINTBEGIN(misc-no-recursion): recursive descent, at most max_nesting deep: Level counts
class ArithmeticParser {
 public:
  explicit ArithmeticParser(Cursor& cursor) : cursor_(cursor) {}

  /// An expression whose signs bind at least as tightly as `least`.
  Arithmetic run(int least) {
    const std::size_t begin = cursor_.peek().span.begin;
    expression(least);
    return {std::move(terms_), {begin, cursor_.previous_end()}};
  }

 private:
  template <class Item>
  void emit(Item item, Span where) {
    Arithmetic::Term& term = terms_.emplace_back();
    term.what = std::move(item);
    term.span = where;
  }

  const Operator* sign_at(int binding) const {
    const Token& token = cursor_.peek();
    if (token.kind != TokenKind::symbol && token.kind != TokenKind::name) return nullptr;
    const auto* found = std::find_if(operators.begin(), operators.end(), [&](const Operator& each) {
      return each.sign == token.text && each.binding == binding;
    });
    return found == operators.end() ? nullptr : found;
  }

  void expression(int binding) {
    if (binding > product) {
      unary();
      return;
    }
    expression(binding + 1);
    const Operator* sign = sign_at(binding);
    while (sign != nullptr) {
      const Span where = cursor_.next().span;
      expression(binding + 1);
      emit(sign->function, where);
      sign = sign_at(binding);
      if (sign != nullptr && binding == comparison) {
        throw SyntaxError{{"comparisons do not chain", {cursor_.peek().span}, "write k0 < k1 and k1 < k2"}};
      }
    }
  }

  void unary() {
    const Token token = cursor_.peek();
    const Level level(depth_, token);
    if (!cursor_.accept("-")) {
      primary();
      return;
    }
    emit(std::int64_t{0}, token.span);
    unary();
    emit(KeyFunction::subtract, token.span);
  }

  void primary() {
    const Token token = cursor_.peek();
    if (token.kind == TokenKind::number) {
      emit(integer(), token.span);
    } else if (token.kind == TokenKind::name && cursor_.at_symbol("(", 1)) {
      function();
    } else if (token.kind == TokenKind::name) {
      emit(cursor_.next().text, token.span);
    } else if (cursor_.accept("(")) {
      expression(loosest);
      cursor_.expect(")", "to close the parenthesis");
    } else {
      cursor_.next();  // has been reported where the lexer met it
      throw SyntaxError{{fmt::format("a value is missing before {}", describe(token)), {token.span}, ""}};
    }
  }

  std::int64_t integer() {
    const Token token = cursor_.next();
    const auto value = parsing::number_of(token).integer;
    if (!value) {
      throw SyntaxError{{fmt::format("'{}' is no whole number below 2^63", token.text),
                         {token.span},
                         "keys, positions and cuts are whole numbers"}};
    }
    return *value;
  }

  void function() {
    const Token name = cursor_.next();
    const bool is_min = name.text == "min";
    if (!is_min && name.text != "max") {
      throw SyntaxError{{fmt::format("'{}' is no function of keys", name.text), {name.span}, "there are min and max"}};
    }
    cursor_.expect("(", "arguments stand in parentheses");
    expression(loosest);
    cursor_.expect(",", fmt::format("{} takes two arguments", name.text));
    expression(loosest);
    cursor_.expect(")", fmt::format("{} takes two arguments", name.text));
    emit(is_min ? KeyFunction::minimum : KeyFunction::maximum, name.span);
  }

  Cursor& cursor_;
  std::vector<Arithmetic::Term> terms_;
  std::size_t depth_ = 0;
};
// NOLINTEND(misc-no-recursion)

Arithmetic parse_arithmetic(Cursor& cursor, int least) { return ArithmeticParser(cursor).run(least); }

/// What follows `word`.
Arithmetic parse_after(Cursor& cursor, const char* word) {
  if (!cursor.at_word(word)) {
    throw SyntaxError{{fmt::format("'{}' is expected here, not {}", word, describe(cursor.peek())),
                       {cursor.peek().span},
                       "parts of a label that is read in windows are written <4 of 956 by 2 from -1 to 3 else 0>"}};
  }
  cursor.next();
  return parse_arithmetic(cursor, additive);
}

WindowClause parse_window(Cursor& cursor) {
  WindowClause window;
  window.span.begin = cursor.peek().span.begin;
  window.extent = parse_after(cursor, "of");
  if (cursor.at_word("by")) window.coefficient = parse_after(cursor, "by");
  window.low = parse_after(cursor, "from");
  window.high = parse_after(cursor, "to");
  if (cursor.at_word("else")) {
    cursor.next();
    window.pad = cursor.expect_signed_number().value;
  }
  window.span.end = cursor.previous_end();
  return window;
}

Entry parse_entry(Cursor& cursor) {
  Entry entry;
  entry.value = parse_arithmetic(cursor, additive);
  if (cursor.accept(":")) entry.dim = std::exchange(entry.value, parse_arithmetic(cursor, additive));
  if (cursor.at_word("by")) {
    cursor.next();
    entry.unit = parse_arithmetic(cursor, additive);
  }
  if (cursor.at_word("of")) entry.window = parse_window(cursor);
  return entry;
}

Vector parse_vector(Cursor& cursor) {
  Vector vector;
  vector.span.begin = cursor.peek().span.begin;
  cursor.expect("<", "positions, keys and cuts are written <0,2>");
  while (!cursor.accept(">")) {
    if (!vector.entries.empty()) cursor.expect(",", "or '>' after the last one; a comparison needs parentheses here");
    vector.entries.push_back(parse_entry(cursor));
  }
  vector.span.end = cursor.previous_end();
  return vector;
}

Parameter parse_parameter(Cursor& cursor) {
  Parameter parameter;
  parameter.span.begin = cursor.peek().span.begin;
  if (cursor.at_symbol("<")) {
    Vector first = parse_vector(cursor);
    if (cursor.accept("->")) {
      parameter.what = Arrow{std::move(first), parse_vector(cursor)};
    } else {
      parameter.what = std::move(first);
    }
  } else if (cursor.peek().kind == TokenKind::name && cursor.at_symbol(".", 1)) {
    Composition composition;
    do {
      composition.kernels.push_back(cursor.expect_name("a kernel"));
    } while (cursor.accept("."));
    parameter.what = std::move(composition);
  } else {
    parameter.what = parse_arithmetic(cursor, loosest);
  }
  parameter.span.end = cursor.previous_end();
  return parameter;
}

/// The one name that a parameter consists of, if it does.
std::optional<Name> as_name(const Parameter& parameter) {
  const auto* arithmetic = std::get_if<Arithmetic>(&parameter.what);
  if (arithmetic == nullptr || arithmetic->terms.size() != 1) return std::nullopt;
  const auto* name = std::get_if<std::string>(&arithmetic->terms.front().what);
  return name == nullptr ? std::nullopt : std::optional(Name{*name, parameter.span});
}

// NOLINTBEGIN(misc-no-recursion): recursive descent, at most max_nesting deep: Level counts
class CallParser {
 public:
  explicit CallParser(Cursor& cursor) : cursor_(cursor) {}

  CallTree run() {
    node();
    return std::move(tree_);
  }

 private:
  using Element = std::variant<Parameter, std::size_t>;

  /// A name or a call; returns its place in the tree.
  std::size_t node() {
    const Level level(depth_, cursor_.peek());
    const Name name = cursor_.expect_name("a relation or an operation");
    if (cursor_.at_symbol("(")) return call(name);
    tree_.nodes.emplace_back(name);
    return tree_.nodes.size() - 1;
  }

  std::size_t call(const Name& name) {
    Call call{name, {}, {}, name.span};
    std::vector<Element> first = group();
    call.span.end = cursor_.previous_end();
    if (cursor_.at_symbol("(")) {
      for (Element& element : first) {
        auto* parameter = std::get_if<Parameter>(&element);
        if (parameter == nullptr) nested_parameter(std::get<std::size_t>(element));
        call.parameters.push_back(std::move(*parameter));
      }
      call.inputs = inputs();
      if (cursor_.at_symbol("(")) {
        throw SyntaxError{{fmt::format("'{}' is called three times over", name.text),
                           {cursor_.peek().span},
                           "an operation is written name(parameters)(relations)"}};
      }
    } else {
      sort_single_group(call, std::move(first));
    }
    tree_.nodes.emplace_back(std::move(call));
    return tree_.nodes.size() - 1;
  }

  [[noreturn]] void nested_parameter(std::size_t node) const {
    throw SyntaxError{{"an operation cannot be a parameter",
                       {std::get<Call>(tree_.nodes[node]).name.span},
                       "relations stand in the second parentheses: name(parameters)(relations)"}};
  }

  void sort_single_group(Call& call, std::vector<Element> elements) {
    const bool are_inputs = std::all_of(elements.begin(), elements.end(), [](const Element& element) {
      const auto* parameter = std::get_if<Parameter>(&element);
      return parameter == nullptr || as_name(*parameter).has_value();
    });
    for (Element& element : elements) {
      auto* parameter = std::get_if<Parameter>(&element);
      if (parameter == nullptr) {
        call.inputs.push_back(std::get<std::size_t>(element));
      } else if (are_inputs) {
        tree_.nodes.emplace_back(*as_name(*parameter));
        call.inputs.push_back(tree_.nodes.size() - 1);
      } else {
        call.parameters.push_back(std::move(*parameter));
      }
    }
    if (are_inputs) call.span = call.name.span;
  }

  std::vector<Element> group() {
    std::vector<Element> elements;
    cursor_.expect("(", "");
    while (!cursor_.accept(")")) {
      if (!elements.empty()) cursor_.expect(",", "or ')' after the last one");
      const Token& token = cursor_.peek();
      const bool is_call = token.kind == TokenKind::name && cursor_.at_symbol("(", 1);
      if (is_call && token.text != "min" && token.text != "max") {
        elements.emplace_back(node());
      } else {
        elements.emplace_back(parse_parameter(cursor_));
      }
    }
    return elements;
  }

  std::vector<std::size_t> inputs() {
    std::vector<std::size_t> nodes;
    cursor_.expect("(", "");
    while (!cursor_.accept(")")) {
      if (!nodes.empty()) cursor_.expect(",", "or ')' after the last relation");
      nodes.push_back(node());
    }
    return nodes;
  }

  Cursor& cursor_;
  CallTree tree_;
  std::size_t depth_ = 0;
};
// NOLINTEND(misc-no-recursion)

/// ">" may end a line: it closes a vector.
bool may_end_behind_call(const std::vector<Token>& tokens) {
  const std::string& last = tokens.back().text;
  return last == ")" || last == "]" || last == ">";
}

std::vector<Token> tokenize_calls(const SourceText& source, std::vector<Diagnostic>& errors) {
  static const Notation notation{
      {"kernel", "input", "scalar", "output"},
      {"->", "**", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "=", "<", ">", "(", ")", "[", "]", ",", ":", "."},
      may_end_behind_call,
      false};
  return tokenize(source, notation, errors);
}

/// Reads statements.
class ProgramParser {
 public:
  ProgramParser(const SourceText& source, std::vector<Diagnostic>& errors)
      : cursor_(tokenize_calls(source, errors), errors), errors_(errors) {}

  Program run() {
    Program program;
    while (cursor_.peek().kind != TokenKind::end) {
      if (cursor_.skip_newline()) continue;
      const std::size_t start = cursor_.position();
      const bool has_word = !cursor_.at_symbol("=", 1) && cursor_.peek(1).kind == TokenKind::name;
      const std::string name = cursor_.peek(has_word ? 1 : 0).text;
      try {
        program.statements.push_back(statement());
      } catch (SyntaxError& error) {
        if (cursor_.peek().kind != TokenKind::bad) errors_.push_back(std::move(error.diagnostic));
        cursor_.skip_statement_from(start);
        program.suspects.push_back(name);
      }
    }
    return program;
  }

 private:
  Statement statement() {
    Statement statement;
    const Token first = cursor_.peek();
    statement.span.begin = first.span.begin;
    if (cursor_.at_symbol("=", 1)) {
      statement.what = assignment();
    } else if (cursor_.at_word("kernel")) {
      cursor_.next();
      statement.what = parse_kernel(cursor_, errors_);
    } else if (cursor_.at_word("input")) {
      statement.what = input();
    } else if (cursor_.at_word("scalar")) {
      statement.what = scalar();
    } else if (cursor_.at_word("output")) {
      statement.what = outputs();
    } else {
      cursor_.next();
      const std::string near = did_you_mean(first.text, {"kernel", "input", "scalar", "output"});
      throw SyntaxError{{fmt::format("{} does not start a statement", describe(first)),
                         {first.span},
                         !near.empty() ? near : "a relation is computed by NAME = operation(parameters)(relations)"}};
    }
    statement.span.end = cursor_.previous_end();
    cursor_.expect_end_of_statement();
    return statement;
  }

  Assignment assignment() {
    const Name name = cursor_.expect_name("a relation");
    cursor_.expect("=", "");
    return {name, CallParser(cursor_).run()};
  }

  ScalarStatement scalar() {
    cursor_.next();
    ScalarStatement scalar;
    scalar.name = cursor_.expect_new_name("a scalar");
    if (cursor_.accept("=")) scalar.value = cursor_.expect_signed_number().value;
    return scalar;
  }

  OutputStatement outputs() {
    cursor_.next();
    OutputStatement outputs;
    do {
      const Name name = cursor_.expect_name("a relation");
      outputs.outputs.push_back({name, cursor_.accept("=") ? cursor_.expect_name("a relation") : name});
    } while (cursor_.accept(","));
    return outputs;
  }

  InputStatement input() {
    cursor_.next();
    InputStatement input;
    input.name = cursor_.expect_name("a relation");
    cursor_.expect("[", "an input is declared with its extents: input A[4,4]");
    while (!cursor_.accept("]")) {
      if (!input.extents.empty()) cursor_.expect(",", "between extents");
      input.extents.push_back(cursor_.expect_extent());
    }
    if (cursor_.accept(":")) input.dtype = dtype();
    if (cursor_.at_word("cut")) {
      cursor_.next();
      input.cut = parse_vector(cursor_);
    }
    if (cursor_.at_word("on")) {
      cursor_.next();
      input.on_all = cursor_.at_word("all");
      if (input.on_all) {
        cursor_.next();
      } else {
        input.on = parse_vector(cursor_);
        while (cursor_.accept(",")) input.grid.push_back(parse_vector(cursor_));
      }
    }
    return input;
  }

  DType dtype() {
    const Name name = cursor_.expect_name("a dtype");
    if (const auto dtype = dtype_named(name.text)) return *dtype;
    std::vector<std::string> known;
    std::string all;
    for (const DType each : all_dtypes) {
      known.emplace_back(name_of(each));
      all += (all.empty() ? "" : ", ") + known.back();
    }
    const std::string near = did_you_mean(name.text, known);
    errors_.push_back(
        {fmt::format("unknown dtype '{}'", name.text), {name.span}, near.empty() ? "the dtypes are " + all : near});
    return DType::f32;
  }

  Cursor cursor_;
  std::vector<Diagnostic>& errors_;
};

}  // namespace

Program parse(const SourceText& source, std::vector<Diagnostic>& errors) { return ProgramParser(source, errors).run(); }

}  // namespace einrel::calls
