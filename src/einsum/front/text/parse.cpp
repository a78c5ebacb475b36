#include "einsum/front/text/parse.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/suggest.h"
#include "einsum/front/text/lexer.h"
#include "einsum/front/text/other_notations.h"
#include "einsum/front/text/parse_expr.h"

namespace einrel {
namespace {

using namespace parsing;

build::Dims parse_dims(Cursor& cursor) {
  build::Dims dims;
  while (cursor.peek().kind == TokenKind::name || dims.dims.empty()) {
    build::Dim dim;
    dim.label = cursor.expect_new_name("a label");
    cursor.expect("=", "as in `dims b=1000`");
    dim.extent = cursor.expect_extent();
    dims.dims.push_back(std::move(dim));
    cursor.accept(",");
  }
  return dims;
}

std::vector<build::Name> parse_labels(Cursor& cursor) {
  std::vector<build::Name> labels;
  cursor.expect("[", "labels stand in brackets");
  while (!cursor.accept("]")) {
    if (!labels.empty()) cursor.expect(",", "between labels");
    labels.push_back(cursor.expect_new_name("a label"));
  }
  return labels;
}

/// With whether it is a complex type, of which the type is that of the parts.
std::pair<DType, bool> parse_dtype(Cursor& cursor) {
  const build::Name name = cursor.expect_name("a dtype");
  if (const auto dtype = dtype_named(name.text)) return {*dtype, false};
  if (const auto parts = parts_of_type_named(name.text)) return {*parts, true};
  std::vector<std::string> known;
  for (const DType dtype : all_dtypes) known.emplace_back(name_of(dtype));
  for (const DType parts : {DType::f32, DType::f64}) known.emplace_back(name_of_complex(parts));
  std::string help = other_notations::help_for_dtype(name.text);
  if (help.empty()) help = did_you_mean(name.text, known);
  if (help.empty()) help = fmt::format("the dtypes are {}", fmt::join(known, ", "));
  cursor.report({fmt::format("unknown dtype '{}'", name.text), {name.span}, std::move(help)});
  return {DType::f32, false};
}

/// X[b,f], W[f,h] : f32, I[b] : i64; a dtype holds for all names before it that have none yet.
build::Inputs parse_inputs(Cursor& cursor) {
  build::Inputs inputs;
  std::size_t untyped = 0;
  do {
    build::InputDecl input;
    input.name = cursor.expect_new_name("a tensor");
    input.labels = parse_labels(cursor);
    inputs.inputs.push_back(std::move(input));
    if (cursor.accept(":")) {
      const auto [dtype, is_complex] = parse_dtype(cursor);
      for (; untyped < inputs.inputs.size(); ++untyped) {
        inputs.inputs[untyped].dtype = dtype;
        inputs.inputs[untyped].is_complex = is_complex;
      }
    }
  } while (cursor.accept(","));
  return inputs;
}

build::Scalars parse_scalars(Cursor& cursor) {
  build::Scalars scalars;
  do {
    build::ScalarDecl scalar;
    scalar.name = cursor.expect_new_name("a scalar");
    if (cursor.accept("=")) scalar.value = cursor.expect_signed_number();
    scalars.scalars.push_back(std::move(scalar));
  } while (cursor.accept(","));
  return scalars;
}

build::MacroDef parse_macro(Cursor& cursor) {
  build::MacroDef macro;
  macro.name = cursor.expect_new_name("a macro");
  if (cursor.peek().text == "[") macro.labels = parse_labels(cursor);
  cursor.expect("(", "parameters stand in parentheses: def sqdist[j](x, y) = ...");
  while (!cursor.accept(")")) {
    if (!macro.parameters.empty()) cursor.expect(",", "between parameters");
    macro.parameters.push_back(cursor.expect_new_name("a parameter"));
  }
  cursor.expect("=", "a macro is one expression: def sqdist[j](x, y) = sum[j] sq(x - y)");
  macro.body = parse_expr(cursor);
  return macro;
}

std::vector<build::Name> parse_names(Cursor& cursor, std::string_view what) {
  std::vector<build::Name> names;
  do {
    names.push_back(cursor.expect_name(what));
  } while (cursor.accept(","));
  return names;
}

build::Gradient parse_gradient(Cursor& cursor) {
  build::Gradient gradient;
  do {
    gradient.results.push_back(cursor.expect_new_name("a tensor"));
  } while (cursor.accept(","));
  cursor.expect("=", "as in `gradient G1, G2 = loss wrt W1, W2`");
  gradient.loss = cursor.expect_name("the loss");
  const build::Name wrt = cursor.expect_name("'wrt'");
  if (wrt.text != "wrt")
    throw SyntaxError{{"'wrt' is missing", {wrt.span}, "as in `gradient G1, G2 = loss wrt W1, W2`"}};
  gradient.variables = parse_names(cursor, "a tensor");
  if (cursor.at_word("given")) {
    cursor.next();
    gradient.seed = cursor.expect_name("a tensor");
  }
  return gradient;
}

void expect_word(Cursor& cursor, std::string_view word) {
  constexpr const char* usage = "as in `minimize loss over W1, W2 by adam(0.001)`";
  if (!cursor.at_word(word)) throw SyntaxError{{fmt::format("'{}' is missing", word), {cursor.peek().span}, usage}};
  cursor.next();
}

build::Minimize parse_minimize(Cursor& cursor) {
  build::Minimize minimize;
  minimize.loss = cursor.expect_name("the loss");
  expect_word(cursor, "over");
  minimize.over = parse_names(cursor, "a state");
  expect_word(cursor, "by");
  minimize.optimiser = cursor.expect_name("an optimiser");
  cursor.expect("(", "an optimiser has its numbers in parentheses: adam(0.001)");
  while (!cursor.accept(")")) {
    if (!minimize.arguments.empty()) cursor.expect(",", "between the numbers of an optimiser");
    minimize.arguments.push_back(parse_expr(cursor));
  }
  return minimize;
}

/// W[f,h] = expression
build::Definition parse_state_value(Cursor& cursor, std::string_view statement) {
  build::Definition definition;
  definition.name = cursor.expect_new_name("a tensor");
  definition.labels = parse_labels(cursor);
  cursor.expect("=", fmt::format("as in `{} {}[i] = ...`", statement, definition.name.text));
  if (cursor.at_word("view") && cursor.peek(1).kind == TokenKind::name) {
    throw SyntaxError{{fmt::format("a view cannot be the value of `{}`", statement),
                       {cursor.peek().span},
                       "give the view a tensor of its own, and read that here"}};
  }
  definition.value = parse_expr(cursor);
  return definition;
}

}  // namespace

const std::vector<std::string>& parsing::statement_starts() {
  static const std::vector<std::string> words{"dims", "input",    "scalar",   "def",   "state",
                                              "next", "gradient", "minimize", "until", "output"};
  return words;
}

build::Group parsing::parse_group(Cursor& cursor) {
  build::Group group;
  if (cursor.peek().kind == TokenKind::number && cursor.peek().text == "1") {
    cursor.next();
  } else if (cursor.accept("(")) {
    while (!cursor.accept(")")) group.push_back(cursor.expect_new_name("a label"));
  } else {
    group.push_back(cursor.expect_new_name("a label"));
  }
  return group;
}

std::vector<build::Group> parsing::parse_groups(Cursor& cursor) {
  std::vector<build::Group> groups;
  cursor.expect("[", "the dimensions of a view stand in brackets");
  while (!cursor.accept("]")) {
    if (!groups.empty()) cursor.expect(",", dimension_help);
    groups.push_back(parse_group(cursor));
  }
  return groups;
}

namespace {

/// The labels of a definition; groups are for views only.
std::vector<build::Name> plain_labels(const std::vector<build::Group>& groups, const build::Name& name) {
  std::vector<build::Name> labels;
  for (const build::Group& group : groups) {
    if (group.size() != 1) {
      const Span where = group.empty() ? name.span : Span{group.front().span.begin, group.back().span.end};
      throw SyntaxError{
          {fmt::format("the left side of '{}' groups labels, which only a view can do", name.text),
           {where},
           fmt::format("compute it with plain labels, then merge: Y[b,(h d)] = view {}[b,h,d]", name.text)}};
    }
    labels.push_back(group.front());
  }
  return labels;
}

}  // namespace

std::variant<build::Definition, build::ViewDefinition> parsing::parse_value(Cursor& cursor, const build::Name& name,
                                                                            const std::vector<build::Group>& left) {
  if (cursor.peek().text == "view") {
    cursor.next();
    build::ViewDefinition view{name, left, cursor.expect_name("a tensor"), {}};
    view.from = parse_groups(cursor);
    return view;
  }
  return build::Definition{name, plain_labels(left, name), parse_expr(cursor)};
}

namespace {

/// The remedy for a word that does not start a statement.
std::string help_for_start(const std::string& word) {
  if (std::string help = other_notations::help_for_word(word); !help.empty()) return help;
  std::string near = did_you_mean(word, statement_starts());
  if (!near.empty()) return near;
  return fmt::format("a tensor is defined with its labels: {0}[i,j] = ..., or {0}[] for one number", word);
}

std::variant<build::Definition, build::ViewDefinition> parse_definition(Cursor& cursor) {
  const build::Name name = cursor.expect_new_name("a tensor");
  if (cursor.peek().text != "[") {
    throw SyntaxError{
        {fmt::format("'{}' does not start a statement", name.text), {name.span}, help_for_start(name.text)}};
  }
  const std::vector<build::Group> groups = parse_groups(cursor);
  cursor.expect("=", cursor.peek().text == "==" ? "a definition has one '='; '==' compares"
                                                : fmt::format("after the labels of '{}'", name.text));
  return parse_value(cursor, name, groups);
}

build::Statement parse_statement(Cursor& cursor) {
  build::Statement statement;
  const Token first = cursor.peek();
  statement.span.begin = first.span.begin;
  const auto keyword = [&](std::string_view word) {
    if (first.text != word || first.kind != TokenKind::name) return false;
    cursor.next();
    return true;
  };
  // Words that are no reserved ones: state[i] = ... defines a tensor of that name.
  const auto opens_statement = [&](std::string_view word) { return !cursor.at_symbol("[", 1) && keyword(word); };
  if (keyword("dims")) {
    statement.what = parse_dims(cursor);
  } else if (keyword("input")) {
    statement.what = parse_inputs(cursor);
  } else if (keyword("scalar")) {
    statement.what = parse_scalars(cursor);
  } else if (keyword("def")) {
    statement.what = parse_macro(cursor);
  } else if (keyword("gradient")) {
    statement.what = parse_gradient(cursor);
  } else if (opens_statement("state")) {
    statement.what = build::State{parse_state_value(cursor, "state")};
  } else if (opens_statement("next")) {
    statement.what = build::Next{parse_state_value(cursor, "next")};
  } else if (opens_statement("minimize")) {
    statement.what = parse_minimize(cursor);
  } else if (opens_statement("until")) {
    statement.what = build::Until{parse_expr(cursor)};
  } else if (keyword("output")) {
    statement.what = build::Outputs{parse_names(cursor, "a tensor")};
  } else {
    std::visit([&](auto&& what) { statement.what = std::forward<decltype(what)>(what); }, parse_definition(cursor));
  }
  statement.span.end = cursor.previous_end();
  cursor.expect_end_of_statement();
  return statement;
}

}  // namespace

build::Program parse(const SourceText& source, std::vector<Diagnostic>& errors) {
  build::Program program;
  Cursor cursor(tokenize(source, errors), errors);
  while (cursor.peek().kind != TokenKind::end) {
    if (cursor.skip_newline()) continue;
    const std::size_t start = cursor.position();
    try {
      program.statements.push_back(parse_statement(cursor));
    } catch (SyntaxError& error) {
      const bool met_bad_token = cursor.peek().kind == TokenKind::bad;
      if (!met_bad_token) errors.push_back(std::move(error.diagnostic));
      for (std::string& name : cursor.skip_statement_from(start)) program.suspects.insert(std::move(name));
    }
  }
  return program;
}

build::Expr parse_expression(const SourceText& source) {
  std::vector<Diagnostic> errors;
  Cursor cursor(tokenize(source, errors), errors);
  build::Expr expr;
  try {
    expr = parse_expr(cursor);
    cursor.expect_end_of_statement();
    cursor.skip_newline();
    cursor.expect_end_of_program();
  } catch (SyntaxError& error) {
    if (cursor.peek().kind != TokenKind::bad) errors.push_back(std::move(error.diagnostic));
  }
  if (!errors.empty()) throw ProgramError(std::move(errors), source);
  return expr;
}

}  // namespace einrel
