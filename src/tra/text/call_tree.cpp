#include "tra/text/call_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/suggest.h"
#include "einsum/text/parse_expr.h"
#include "tra/text/call_lexer.h"

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

bool at_symbol(const Cursor& cursor, std::string_view text, std::size_t ahead = 0) {
  return cursor.peek(ahead).kind == TokenKind::symbol && cursor.peek(ahead).text == text;
}
bool at_word(const Cursor& cursor, std::string_view text) {
  return cursor.peek().kind == TokenKind::name && cursor.peek().text == text;
}
bool at_end_of_statement(const Cursor& cursor) {
  return cursor.peek().kind == TokenKind::newline || cursor.peek().kind == TokenKind::end;
}

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
    } else if (token.kind == TokenKind::name && at_symbol(cursor_, "(", 1)) {
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

Entry parse_entry(Cursor& cursor) {
  Entry entry;
  entry.value = parse_arithmetic(cursor, additive);
  if (cursor.accept(":")) entry.dim = std::exchange(entry.value, parse_arithmetic(cursor, additive));
  if (at_word(cursor, "by")) {
    cursor.next();
    entry.unit = parse_arithmetic(cursor, additive);
  }
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
  if (at_symbol(cursor, "<")) {
    Vector first = parse_vector(cursor);
    if (cursor.accept("->")) {
      parameter.what = Arrow{std::move(first), parse_vector(cursor)};
    } else {
      parameter.what = std::move(first);
    }
  } else if (cursor.peek().kind == TokenKind::name && at_symbol(cursor, ".", 1)) {
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
    if (at_symbol(cursor_, "(")) return call(name);
    tree_.nodes.emplace_back(name);
    return tree_.nodes.size() - 1;
  }

  std::size_t call(const Name& name) {
    Call call{name, {}, {}, name.span};
    std::vector<Element> first = group();
    call.span.end = cursor_.previous_end();
    if (at_symbol(cursor_, "(")) {
      for (Element& element : first) {
        auto* parameter = std::get_if<Parameter>(&element);
        if (parameter == nullptr) nested_parameter(std::get<std::size_t>(element));
        call.parameters.push_back(std::move(*parameter));
      }
      call.inputs = inputs();
      if (at_symbol(cursor_, "(")) {
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
      const bool is_call = token.kind == TokenKind::name && at_symbol(cursor_, "(", 1);
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

/// Reads statements.
class ProgramParser {
 public:
  ProgramParser(const SourceText& source, std::vector<Diagnostic>& errors)
      : source_(source), cursor_(tokenize_calls(source, errors), errors), errors_(errors) {}

  Program run() {
    Program program;
    while (cursor_.peek().kind != TokenKind::end) {
      if (cursor_.skip_newline()) continue;
      const std::size_t start = cursor_.position();
      const bool has_word = !at_symbol(cursor_, "=", 1) && cursor_.peek(1).kind == TokenKind::name;
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
    if (at_symbol(cursor_, "=", 1)) {
      statement.what = assignment();
    } else if (at_word(cursor_, "kernel")) {
      statement.what = kernel();
    } else if (at_word(cursor_, "input")) {
      statement.what = input();
    } else if (at_word(cursor_, "scalar")) {
      statement.what = scalar();
    } else if (at_word(cursor_, "output")) {
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
    if (at_word(cursor_, "cut")) {
      cursor_.next();
      input.cut = parse_vector(cursor_);
    }
    if (at_word(cursor_, "on")) {
      cursor_.next();
      input.on_all = at_word(cursor_, "all");
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

  KernelStatement kernel() {
    cursor_.next();
    KernelStatement kernel;
    kernel.name = cursor_.expect_name("a kernel");
    KernelDefinition& definition = kernel.definition;
    definition.name = kernel.name.text;
    definition.where = kernel.name.span;
    constexpr const char* form = "a kernel is written: kernel scale(A[i,j]) -> [i,j] = 2 * A[i,j]";
    cursor_.expect("(", form);
    do {
      const Name parameter = cursor_.expect_new_name("an array");
      definition.parameters.push_back({parameter.text, bracketed(form)});
    } while (cursor_.accept(","));
    cursor_.expect(")", form);
    cursor_.expect("->", form);
    definition.result = bracketed(form);
    if (at_word(cursor_, "with")) with(definition);
    cursor_.expect("=", form);
    definition.body = body(false);
    if (!at_word(cursor_, "given")) return kernel;
    cursor_.next();
    do {
      const Name name = cursor_.expect_new_name("a value");
      KernelDefinition::Piece indices = bracketed(form);
      cursor_.expect("=", "as in `given S[i] = sum[j] A[i,j]`");
      definition.given.push_back({name.text, std::move(indices), body(true)});
    } while (cursor_.accept(","));
    return kernel;
  }

  void with(KernelDefinition& definition) {
    cursor_.next();
    do {
      const Name label = cursor_.expect_new_name("a label");
      cursor_.expect("=", "as in `with d=4`");
      if (!definition.dims.insert({label.text, cursor_.expect_extent()}).second) {
        throw SyntaxError{{fmt::format("label '{}' has two extents", label.text), {label.span}, "remove one"}};
      }
    } while (cursor_.accept(","));
  }

  /// What stands between brackets, as it is written.
  KernelDefinition::Piece bracketed(std::string_view help) {
    cursor_.expect("[", help);
    Span span{cursor_.previous_end(), cursor_.previous_end()};
    std::string words;
    while (!at_symbol(cursor_, "]")) {
      if (at_end_of_statement(cursor_)) cursor_.expect("]", "to close the bracket");
      const Token token = cursor_.next();
      if (words.empty()) span.begin = token.span.begin;
      words += (words.empty() ? "" : " ") + token.text;
      span.end = token.span.end;
    }
    cursor_.next();
    const std::string text(source_.slice(span));
    return {text.find('\n') == std::string::npos ? text : words, span};
  }

  /// An expression in the language of EinSums: up to the end of the statement or `given`; in a list, to the next comma.
  KernelDefinition::Piece body(bool in_list) {
    Span span{cursor_.peek().span.begin, cursor_.peek().span.begin};
    std::size_t open = 0;
    while (!at_end_of_statement(cursor_)) {
      if (open == 0 && (at_word(cursor_, "given") || (in_list && at_symbol(cursor_, ",")))) break;
      const Token token = cursor_.next();
      if (token.text == "(" || token.text == "[") ++open;
      if ((token.text == ")" || token.text == "]") && open > 0) --open;
      span.end = token.span.end;
    }
    if (span.end == span.begin) {
      throw SyntaxError{{fmt::format("expected an expression before {}", describe(cursor_.peek())),
                         {cursor_.peek().span},
                         "as in `= sum[j] A[i,j] * B[j,k]`"}};
    }
    return {std::string(source_.slice(span)), span};
  }

  const SourceText& source_;
  Cursor cursor_;
  std::vector<Diagnostic>& errors_;
};

}  // namespace

Program parse(const SourceText& source, std::vector<Diagnostic>& errors) { return ProgramParser(source, errors).run(); }

}  // namespace einrel::calls
