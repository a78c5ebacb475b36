#include "tra/text/kernel_statement.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "einsum/front/text/other_notations.h"

namespace einrel::calls {
namespace {

using parsing::Cursor;
using parsing::describe;
using parsing::SyntaxError;

/// Reads one definition.
class KernelParser {
 public:
  KernelParser(Cursor& cursor, std::vector<Diagnostic>& errors) : cursor_(cursor), errors_(errors) {}

  KernelStatement run() {
    KernelStatement kernel;
    kernel.name = cursor_.expect_name("a kernel");
    KernelDefinition& definition = kernel.definition;
    definition.name = kernel.name.text;
    definition.where = kernel.name.span;
    constexpr const char* form = "a kernel is written: kernel scale(A[i,j]) -> [i,j] = 2 * A[i,j]";
    cursor_.expect("(", form);
    std::vector<std::vector<Dimension>> dimensions;
    do {
      definition.parameters.push_back({cursor_.expect_new_name("an array"), {}});
      dimensions.push_back(this->dimensions(form));
      for (const Dimension& dimension : dimensions.back()) {
        const auto* const index = std::get_if<build::Index>(&dimension);
        definition.parameters.back().indices.push_back(index == nullptr ? std::nullopt : std::optional(*index));
      }
    } while (cursor_.accept(","));
    cursor_.expect(")", form);
    cursor_.expect("->", form);
    const std::vector<build::Group> left = groups(form);
    if (cursor_.at_word("with")) with(definition);
    cursor_.expect("=", form);
    const Name unnamed{"Z", kernel.name.span};
    const bool is_plain_view =
        cursor_.at_word("view") && (cursor_.at_end_of_statement(1) || cursor_.peek(1).text == "given");
    if (is_plain_view) cursor_.next();
    KernelDefinition::Value result =
        is_plain_view ? build::ViewDefinition{unnamed, left, definition.parameters[0].name, as_groups(dimensions[0])}
                      : value(unnamed, left, false);
    if (cursor_.at_word("given")) {
      do {
        cursor_.next();
        const Name name = cursor_.expect_new_name("a value");
        const std::vector<build::Group> labels = groups(form);
        cursor_.expect("=", "as in `given S[i] = sum[j] A[i,j]`");
        definition.values.push_back(value(name, labels, true));
      } while (cursor_.at_symbol(","));
    }
    std::visit([&](auto& made) { made.name.text = result_name(definition); }, result);
    definition.values.push_back(std::move(result));
    return kernel;
  }

 private:
  static std::string result_name(const KernelDefinition& definition) {
    std::set<std::string> taken;
    for (const KernelDefinition::Parameter& parameter : definition.parameters) taken.insert(parameter.name.text);
    for (const KernelDefinition::Value& value : definition.values)
      std::visit([&](const auto& made) { taken.insert(made.name.text); }, value);
    std::string name = "Z";
    while (taken.count(name) != 0) name += "_";
    return name;
  }

  void with(KernelDefinition& definition) {
    cursor_.next();
    do {
      const Name label = cursor_.expect_new_name("a label");
      cursor_.expect("=", "as in `with d=4`");
      const bool is_known = std::any_of(definition.dims.begin(), definition.dims.end(),
                                        [&](const build::Dim& dim) { return dim.label.text == label.text; });
      if (is_known)
        throw SyntaxError{{fmt::format("label '{}' has two extents", label.text), {label.span}, "remove one"}};
      definition.dims.push_back({label, cursor_.expect_extent()});
    } while (cursor_.accept(","));
  }

  /// A dimension of a parameter is an index, or a group as views have it.
  using Dimension = std::variant<build::Index, build::Group>;

  std::vector<Dimension> dimensions(std::string_view help) {
    std::vector<Dimension> dimensions;
    cursor_.expect("[", help);
    while (!cursor_.accept("]")) {
      if (!dimensions.empty()) cursor_.expect(",", "between indices");
      if (cursor_.at_symbol("(")) {
        dimensions.emplace_back(parsing::parse_group(cursor_));
      } else {
        dimensions.emplace_back(parsing::parse_index(cursor_));
      }
    }
    return dimensions;
  }

  static std::vector<build::Group> as_groups(const std::vector<Dimension>& dimensions) {
    std::vector<build::Group> groups;
    for (const Dimension& dimension : dimensions) {
      if (const auto* const group = std::get_if<build::Group>(&dimension)) {
        groups.push_back(*group);
        continue;
      }
      const build::Index& index = std::get<build::Index>(dimension);
      const bool is_label = index.terms.size() == 1 && index.terms[0].coefficient == 1 && index.offset == 0;
      const bool is_one = index.terms.empty() && index.offset == 1;
      if (!is_label && !is_one)
        throw SyntaxError{{"a view has labels and groups of them only", {index.span}, parsing::dimension_help}};
      groups.push_back(is_label ? build::Group{index.terms[0].label} : build::Group{});
    }
    return groups;
  }

  std::vector<build::Group> groups(std::string_view help) {
    if (!cursor_.at_symbol("[")) cursor_.expect("[", help);
    return parsing::parse_groups(cursor_);
  }

  /// What stands behind the sign of name[left] = value.
  KernelDefinition::Value value(const Name& name, const std::vector<build::Group>& left, bool in_list) {
    std::vector<Token> tokens = body(in_list);
    const Span end{cursor_.previous_end(), cursor_.previous_end()};
    tokens.push_back({TokenKind::newline, end, ""});
    tokens.push_back({TokenKind::end, end, ""});
    Cursor cursor(std::move(tokens), errors_);
    KernelDefinition::Value value = parsing::parse_value(cursor, name, left);
    cursor.expect_end_of_statement();
    return value;
  }

  /// An expression in the language of EinSums: up to the end of the statement or `given`; in a list, to the next comma.
  std::vector<Token> body(bool in_list) {
    std::vector<Token> tokens;
    std::size_t open = 0;
    while (!cursor_.at_end_of_statement()) {
      if (open == 0 && (cursor_.at_word("given") || (in_list && cursor_.at_symbol(",")))) break;
      const Token token = cursor_.next();
      if (token.text == "(" || token.text == "[") ++open;
      if ((token.text == ")" || token.text == "]") && open > 0) --open;
      if (token.text == "%" || token.text == "->" || token.text == ".") {
        throw SyntaxError{{fmt::format("'{}' is not part of the language of bodies", token.text),
                           {token.span},
                           other_notations::help_for_sign(token.text)}};
      }
      tokens.push_back(token);
    }
    if (tokens.empty()) {
      throw SyntaxError{{fmt::format("expected an expression before {}", describe(cursor_.peek())),
                         {cursor_.peek().span},
                         "as in `= sum[j] A[i,j] * B[j,k]`"}};
    }
    return tokens;
  }

  Cursor& cursor_;
  std::vector<Diagnostic>& errors_;
};

}  // namespace

KernelStatement parse_kernel(Cursor& cursor, std::vector<Diagnostic>& errors) {
  return KernelParser(cursor, errors).run();
}

}  // namespace einrel::calls
