#include "einsum/graph/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <sstream>

#include "einsum/check/expand.h"
#include "einsum/front/text/parse.h"
#include "einsum/front/text/print_program.h"
#include "einsum/graph/vertex_facts.h"
#include "lang/corpus.h"

namespace einrel::test {
namespace {

std::string text_of(const std::vector<build::Name>& names) {
  std::string text;
  for (const build::Name& name : names) text += name.text + " ";
  return text;
}

/// What a node says, without where it stands.
struct Said {
  std::string operator()(const build::Number& number) const {
    return number.integer ? std::to_string(*number.integer) : fmt::format("{} as a float", number.value);
  }
  std::string operator()(const build::NameUse& use) const { return use.name; }
  std::string operator()(const build::Access& access) const {
    std::string text = access.tensor.text;
    for (const build::Index& index : access.indices) {
      text += index.is_computed ? "[computed" : "[";
      for (const build::IndexTerm& term : index.terms) text += fmt::format("{} {} ", term.coefficient, term.label.text);
      text += fmt::format("{}]", index.offset);
    }
    return access.pad ? fmt::format("{} padded {}", text, *access.pad) : text;
  }
  std::string operator()(const build::Unary& unary) const {
    return fmt::format("unary {}", static_cast<int>(unary.function));
  }
  std::string operator()(const build::Binary& binary) const {
    return fmt::format("binary {}", static_cast<int>(binary.function));
  }
  std::string operator()(const build::Where&) const { return "where"; }
  std::string operator()(const build::Cast& cast) const {
    return fmt::format("cast {}", cast.is_complex ? name_of_complex(cast.type) : name_of(cast.type));
  }
  std::string operator()(const build::Reduce& reduce) const {
    return fmt::format("{} {}", name_of(reduce.reducer), text_of(reduce.labels));
  }
  std::string operator()(const build::Random& random) const {
    return fmt::format("{} of stream {}", name_of(random.function),
                       random.stream ? std::to_string(*random.stream) : "");
  }
  std::string operator()(const build::InRange& range) const {
    return fmt::format("in range {} {}[{}]", range.extent, range.tensor, fmt::join(range.shape, ","));
  }
  std::string operator()(const build::OpaqueCall& call) const {
    return fmt::format("{} {}", name_of(call.result), text_of(call.matrix));
  }
  std::string operator()(const build::ComplexCall& call) const { return std::string(name_of(call.function)); }
  std::string operator()(const build::MacroCall& call) const {
    return fmt::format("{} {}of {}", call.macro.text, text_of(call.labels), call.arguments);
  }
};

std::string said(const build::Expr& expr, std::size_t first, std::size_t last) {
  std::string text;
  for (std::size_t n = first; n <= last; ++n) text += std::visit(Said{}, expr.nodes[n].op) + "\n";
  return text;
}
std::string said(const build::Expr& expr) { return said(expr, 0, expr.nodes.size() - 1); }

const build::Expr* right_side(const build::Statement& statement) {
  if (const auto* const definition = std::get_if<build::Definition>(&statement.what)) return &definition->value;
  if (const auto* const macro = std::get_if<build::MacroDef>(&statement.what)) return &macro->body;
  if (const auto* const state = std::get_if<build::State>(&statement.what)) return &state->initial.value;
  if (const auto* const next = std::get_if<build::Next>(&statement.what)) return &next->value.value;
  if (const auto* const until = std::get_if<build::Until>(&statement.what)) return &until->condition;
  return nullptr;
}

build::Program parsed(const SourceText& source) {
  std::vector<Diagnostic> errors;
  build::Program program = parse(source, errors);
  EXPECT_TRUE(errors.empty()) << errors.front().message << "\n" << source.text();
  return program;
}

class PrintedProgram : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(PrintedProgram, ReadsAsTheSameAndSaysWhereItsPartsStand) {
  std::vector<Diagnostic> errors;
  build::Program program = parse(read_source(GetParam()), errors);
  if (!errors.empty()) return;  // a document about errors
  const build::Program before = program;
  const SourceText text("printed", print(program));
  const build::Program again = parsed(text);
  ASSERT_EQ(again.statements.size(), before.statements.size()) << text.text();
  for (std::size_t s = 0; s < before.statements.size(); ++s) {
    EXPECT_EQ(again.statements[s].what.index(), before.statements[s].what.index());
    EXPECT_EQ(again.statements[s].span, program.statements[s].span);
    const build::Expr* const wanted = right_side(before.statements[s]);
    if (wanted == nullptr) continue;
    EXPECT_EQ(said(*right_side(again.statements[s])), said(*wanted)) << text.slice(program.statements[s].span);
    const build::Expr& printed = *right_side(program.statements[s]);
    const std::vector<std::size_t> starts = subexpression_starts(printed);
    for (std::size_t n = 0; n < printed.nodes.size(); ++n) {
      const SourceText part("part", std::string(text.slice(printed.nodes[n].span)));
      EXPECT_EQ(said(parse_expression(part)), said(printed, starts[n], n)) << part.text();
    }
  }
  build::Program last = again;
  EXPECT_EQ(print(last), text.text());
}

/// A vertex without what is only for people.
Vertex bare(Vertex vertex) {
  vertex.where = {};
  if (EinSum* const einsum = einsum_of(vertex)) {  // f32(x) of what is f32
    for (std::size_t s = einsum->body.steps.size(); s-- > 1;) {
      const auto step = einsum->body.steps.begin() + static_cast<std::ptrdiff_t>(s);
      if (std::holds_alternative<Convert>(step->op) && step->type == (step - 1)->type) einsum->body.steps.erase(step);
    }
    const auto* const last = std::get_if<Round>(&einsum->body.steps.back().op);  // storing rounds, too
    if (last != nullptr && last->to == vertex.dtype && !einsum->reducer) einsum->body.steps.pop_back();
  }
  const auto strip = [](auto& op) {
    if constexpr (requires { op.labels; }) {
      for (Label& label : op.labels) label.name.clear();
    }
  };
  std::visit(strip, vertex.op);
  return vertex;
}

class ExpandedProgram : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(ExpandedProgram, IsAProgramOfTheSameVertices) {
  const bool is_example = GetParam().parent_path() != std::filesystem::path(EINREL_LANG_DOCUMENTS);
  const Document document = is_example ? Document{read_source(GetParam()), {}, 1, {}, {}, {}, {}, {}, {}, {}, {}, {}}
                                       : read_document(read_source(GetParam()));
  if (!document.errors.empty()) return;
  const CheckedProgram checked = check_document(document, is_example ? small_extents(GetParam()) : document.dims);
  build::Program program = expanded(checked);
  const SourceText text("expanded", print(program));
  const CheckedProgram reread = parse_and_check(text, {});
  const EinGraph& again = *reread.graph;
  const EinGraph& graph = *checked.graph;
  ASSERT_EQ(again.steps.states.size(), graph.steps.states.size()) << text.text();
  EXPECT_EQ(again.steps.until.has_value(), graph.steps.until.has_value()) << text.text();
  EXPECT_EQ(reread.initial.has_value(), checked.initial.has_value()) << text.text();
  for (std::size_t s = 0; s < graph.steps.states.size(); ++s) {
    EXPECT_EQ(again[again.steps.states[s].now].name, graph[graph.steps.states[s].now].name) << text.text();
    EXPECT_EQ(again.steps.states[s].next.has_value(), graph.steps.states[s].next.has_value()) << text.text();
  }
  ASSERT_EQ(again.vertices.size(), graph.vertices.size()) << text.text();
  // Inputs come first in it.
  std::map<std::string, const Vertex*> by_name;
  for (const Vertex& vertex : again.vertices) by_name[vertex.name] = &vertex;
  for (const Vertex& vertex : graph.vertices) {
    ASSERT_EQ(by_name.count(vertex.name), 1) << text.text();
    Vertex found = bare(*by_name.at(vertex.name));
    Vertex wanted = bare(vertex);
    ASSERT_EQ(found.inputs.size(), wanted.inputs.size()) << formula(vertex, graph) << "\n" << text.text();
    for (std::size_t i = 0; i < wanted.inputs.size(); ++i)
      EXPECT_EQ(again[found.inputs[i]].name, graph[wanted.inputs[i]].name);
    found.inputs = wanted.inputs;
    EXPECT_TRUE(found == wanted) << formula(vertex, graph) << "\n"
                                 << formula(*by_name.at(vertex.name), again) << "\n"
                                 << name_of(wanted.dtype) << " " << name_of(found.dtype) << "\n"
                                 << text.text();
  }
}

std::string name_of_file(const testing::TestParamInfo<std::filesystem::path>& info) { return info.param.stem(); }

INSTANTIATE_TEST_SUITE_P(Documents, PrintedProgram, testing::ValuesIn(ein_files(EINREL_LANG_DOCUMENTS)), name_of_file);
INSTANTIATE_TEST_SUITE_P(Examples, PrintedProgram, testing::ValuesIn(examples()), name_of_file);
INSTANTIATE_TEST_SUITE_P(Documents, ExpandedProgram, testing::ValuesIn(ein_files(EINREL_LANG_DOCUMENTS)), name_of_file);
INSTANTIATE_TEST_SUITE_P(Examples, ExpandedProgram, testing::ValuesIn(examples()), name_of_file);

}  // namespace
}  // namespace einrel::test
