#include "einsum/check/einsum_notation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/suggest.h"
#include "base/text.h"
#include "einsum/front/text/other_notations.h"
#include "einsum/front/text/parse.h"

namespace einrel {
namespace {

/// One operand's or the output's subscripts: labels in order, and where the ellipsis stands among them.
struct Term {
  Span span;
  std::vector<build::Name> labels;
  std::optional<std::size_t> ellipsis;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Reads and resolves the subscripts; every complaint points into them.
class Subscripts {
 public:
  Subscripts(const SourceText& source, const std::vector<BoundInput>& operands) : source_(source), operands_(operands) {
    split();
    if (terms_.size() != operands.size()) {
      fail(fmt::format("the subscripts name {} operand{}, but {} {} given", terms_.size(),
                       terms_.size() == 1 ? "" : "s", operands.size(), operands.size() == 1 ? "is" : "are"),
           {0, source.text().size()}, "separate the operands' subscripts by commas");
    }
    for (std::size_t i = 0; i < terms_.size(); ++i) fill_ellipsis(i);
    for (std::size_t i = 0; i < terms_.size(); ++i) note_extents(i);
    resolve_output();
  }

  const std::vector<build::Name>& output() const { return output_.labels; }

  /// The labels that operands have and the output has not, in order of appearance.
  std::vector<build::Name> reduced() const {
    std::vector<build::Name> labels;
    std::set<std::string> seen;
    for (const build::Name& label : output_.labels) seen.insert(label.text);
    for (const Term& term : terms_) {
      for (const build::Name& label : term.labels) {
        if (seen.insert(label.text).second) labels.push_back(label);
      }
    }
    return labels;
  }

  /// The read of operand `i`; a dimension of extent 1 under a longer label is read at 0.
  build::Access access(std::size_t i) const {
    build::Access access;
    access.tensor = {operand_name(i, terms_.size()), terms_[i].span};
    for (std::size_t d = 0; d < terms_[i].labels.size(); ++d) {
      const build::Name& label = terms_[i].labels[d];
      build::Index index{{}, 0, label.span};
      const bool broadcast = operands_[i].shape[d] == Extent(1) && extents_.at(label.text) != 1;
      if (!broadcast) index.terms.push_back({1, label});
      access.indices.push_back(std::move(index));
    }
    return access;
  }

 private:
  [[noreturn]] void fail(std::string message, Span where, std::string help) const {
    throw ProgramError({{std::move(message), {where}, std::move(help)}}, source_);
  }

  void split() {
    const std::string& text = source_.text();
    const std::size_t arrow = text.find("->");
    const std::size_t end = arrow == std::string::npos ? text.size() : arrow;
    std::size_t begin = 0;
    while (true) {
      const std::size_t comma = std::min(text.find(',', begin), end);
      terms_.push_back(read_term({begin, comma}));
      if (comma == end) break;
      begin = comma + 1;
    }
    explicit_output_ = arrow != std::string::npos;
    if (explicit_output_) output_ = read_term({arrow + 2, text.size()});
  }

  Term read_term(Span span) const {
    const std::string& text = source_.text();
    Term term{span, {}, std::nullopt};
    for (std::size_t at = span.begin; at < span.end; ++at) {
      if (text[at] == ' ') continue;
      if (is_letter(text[at])) {
        term.labels.push_back({std::string(1, text[at]), {at, at + 1}});
      } else if (text.compare(at, 3, "...") == 0 && at + 3 <= span.end) {
        if (term.ellipsis) fail("one '...' per operand", {at, at + 3}, "remove one");
        term.ellipsis = term.labels.size();
        at += 2;
      } else {
        const std::string_view rest = std::string_view(text).substr(at, span.end - at);
        const std::string_view character = rest.substr(0, std::max<std::size_t>(utf8_length(rest), 1));
        fail(fmt::format("'{}' is not a subscript", printable(character)), {at, at + character.size()},
             "subscripts are letters, '...', ',' and one '->'");
      }
    }
    return term;
  }

  /// Gives the dimensions behind '...' labels of their own: e0, e1, ..., counted from the right.
  void fill_ellipsis(std::size_t i) {
    Term& term = terms_[i];
    const std::size_t rank = operands_[i].shape.size();
    const std::size_t named = term.labels.size();
    if (named > rank || (named < rank && !term.ellipsis)) {
      fail(fmt::format("operand {} has {} dimension{} ({}), but its subscripts name {}", i + 1, rank,
                       rank == 1 ? "" : "s", operands_[i].origin, named),
           term.span,
           named < rank ? "name every dimension, or write '...' for the others" : "name one label per dimension");
    }
    if (!term.ellipsis) return;
    const std::size_t hidden = rank - named;
    broadcast_rank_ = std::max(broadcast_rank_, hidden);
    std::vector<build::Name> labels;
    for (std::size_t d = 0; d < hidden; ++d) labels.push_back({fmt::format("e{}", hidden - 1 - d), term.span});
    term.labels.insert(term.labels.begin() + static_cast<std::ptrdiff_t>(*term.ellipsis), labels.begin(), labels.end());
  }

  void note_extents(std::size_t i) {
    std::map<std::string, std::int64_t> own;
    for (std::size_t d = 0; d < terms_[i].labels.size(); ++d) {
      const build::Name& label = terms_[i].labels[d];
      const std::int64_t extent = operands_[i].shape[d].value();
      const auto [first, is_new] = own.insert({label.text, extent});
      if (!is_new && first->second != extent) {
        fail(fmt::format("label '{}' has extents {} and {} in operand {}", label.text, first->second, extent, i + 1),
             label.span, "a diagonal needs equal extents");
      }
      const auto [known, is_first] = extents_.insert({label.text, extent});
      if (!is_first && known->second == 1) known->second = extent;
      if (known->second != extent && extent != 1) {
        fail(fmt::format("label '{}' has extent {} before, but {} in operand {} ({})", shown(label), known->second,
                         extent, i + 1, operands_[i].origin),
             label.span, "extents under one label are equal, or 1");
      }
    }
  }

  static std::string shown(const build::Name& label) { return label.text.size() > 1 ? "..." : label.text; }

  void resolve_output() {
    std::map<std::string, int> occurrences;
    for (const Term& term : terms_) {
      for (const build::Name& label : term.labels) {
        if (label.text.size() == 1) ++occurrences[label.text];
      }
    }
    std::vector<build::Name> broadcast;
    for (std::size_t d = broadcast_rank_; d-- > 0;) broadcast.push_back({fmt::format("e{}", d), output_.span});
    if (!explicit_output_) {
      output_.labels = broadcast;
      for (const auto& [label, count] : occurrences) {  // a map: in alphabetical order, as NumPy puts them
        if (count == 1) output_.labels.push_back({label, {0, 0}});
      }
      return;
    }
    std::set<std::string> seen;
    for (const build::Name& label : output_.labels) {
      if (!seen.insert(label.text).second)
        fail(fmt::format("label '{}' stands twice in the output", label.text), label.span, "name it once");
      if (occurrences.count(label.text) == 0) {
        fail(fmt::format("output label '{}' is in no operand", label.text), label.span, "remove it");
      }
    }
    if (!output_.ellipsis && broadcast_rank_ > 0) {
      fail("the output needs '...': operands have dimensions behind it", output_.span,
           "write '...' in the output, or name the labels");
    }
    if (output_.ellipsis) {
      output_.labels.insert(output_.labels.begin() + static_cast<std::ptrdiff_t>(*output_.ellipsis), broadcast.begin(),
                            broadcast.end());
    }
  }

  const SourceText& source_;
  const std::vector<BoundInput>& operands_;
  std::vector<Term> terms_;
  Term output_;
  bool explicit_output_ = false;
  std::size_t broadcast_rank_ = 0;
  std::map<std::string, std::int64_t> extents_;
};

Reducer choose_reducer(const EinsumRequest& request, bool logical) {
  if (!request.reduce) return logical ? Reducer::any : Reducer::sum;
  if (const auto reducer = reducer_named(*request.reduce)) return *reducer;
  std::vector<std::string> known;
  for (const FunctionInfo& info : all_functions()) {
    if (reducer_named(info.name)) known.emplace_back(info.name);
  }
  const std::string near = did_you_mean(*request.reduce, known);
  throw UserError(
      fmt::format("unknown reduction '{}'{}{}", printable(*request.reduce), near.empty() ? "" : "; ", near));
}

/// The product of all reads; bools combine by 'and', as in NumPy.
build::Expr product_of_reads(const Subscripts& subscripts, const std::vector<DType>& dtypes, bool logical) {
  DType common = dtypes.front();
  for (const DType dtype : dtypes) common = promote(common, dtype);
  build::Expr expr;
  for (std::size_t i = 0; i < dtypes.size(); ++i) {
    build::Access access = subscripts.access(i);
    const Span span = access.tensor.span;
    expr.nodes.push_back({span, std::move(access)});
    // Beside numbers a bool is one of them whatever the order of the operands, as in NumPy.
    if (!logical && dtypes[i] == DType::boolean) expr.nodes.push_back({span, build::Cast{common}});
    const auto function = logical ? BinaryFunction::minimum : BinaryFunction::multiply;
    if (i > 0) expr.nodes.push_back({span, build::Binary{function}});
  }
  return expr;
}

std::vector<std::string> operand_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(operand_name(i, count));
  return names;
}

std::optional<std::size_t> find_operand(const std::string& name, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (name == operand_name(i, count) || name == fmt::format("x{}", i + 1)) return i;
  }
  return std::nullopt;
}

/// The join expression with the operands' names replaced by their reads.
build::Expr joined_reads(const SourceText& source, const Subscripts& subscripts, std::size_t count) {
  build::Expr expr = parse_expression(source);
  std::vector<bool> used(count, false);
  const auto fail = [&](std::string message, Span where, std::string help) {
    throw ProgramError({{std::move(message), {where}, std::move(help)}}, source);
  };
  for (build::Node& node : expr.nodes) {
    if (const auto* call = std::get_if<build::MacroCall>(&node.op); call != nullptr && call->labels.empty()) {
      std::vector<std::string> known;
      for (const FunctionInfo& info : all_functions()) known.emplace_back(info.name);
      std::string help = other_notations::help_for_function(call->macro.text);
      if (help.empty()) help = did_you_mean(call->macro.text, known);
      fail(fmt::format("unknown function '{}'", call->macro.text), call->macro.span, std::move(help));
    }
    const bool is_scalar_step = !std::holds_alternative<build::Access>(node.op) &&
                                !std::holds_alternative<build::Reduce>(node.op) &&
                                !std::holds_alternative<build::MacroCall>(node.op);
    if (!is_scalar_step) fail("a join combines single values", node.span, "use the operands' names and functions only");
    const auto* use = std::get_if<build::NameUse>(&node.op);
    if (use == nullptr) continue;
    const std::optional<std::size_t> operand = find_operand(use->name, count);
    if (!operand) {
      fail(fmt::format("unknown name '{}'", use->name), node.span,
           fmt::format("the operands are called {}", fmt::join(operand_names(count), ", ")));
    }
    build::Access access = subscripts.access(*operand);
    access.tensor.span = node.span;
    for (build::Index& index : access.indices) index.span = node.span;
    node.op = std::move(access);
    used[*operand] = true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (used[i]) continue;
    throw ProgramError({{fmt::format("the join does not use operand {}, '{}'", i + 1, operand_name(i, count)),
                         {{0, source.text().size()}},
                         "combine every operand, or leave it out"}},
                       source);
  }
  return expr;
}

}  // namespace

std::string operand_name(std::size_t position, std::size_t count) {
  if (count <= 3) return std::string(1, "xyz"[position]);
  return fmt::format("x{}", position + 1);
}

namespace {

/// The operands with the dimensions that subscripts name: not that of the parts of complex numbers.
std::vector<BoundInput> without_parts(std::vector<BoundInput> operands) {
  for (BoundInput& operand : operands) {
    if (operand.is_complex) operand.shape.pop_back();
  }
  return operands;
}

}  // namespace

SourceText einsum_source(const EinsumRequest& request) {
  return request.join ? SourceText("<join>", *request.join) : SourceText("<subscripts>", request.subscripts);
}

void check_reduction(const EinsumRequest& request) { choose_reducer(request, false); }

build::Definition einsum_definition(const EinsumRequest& request) {
  const std::size_t count = request.operands.size();
  const SourceText source("<subscripts>", request.subscripts);
  const std::vector<BoundInput> operands = without_parts(request.operands);
  const Subscripts subscripts(source, operands);
  const SourceText shown = einsum_source(request);
  const bool logical =
      !request.join && std::all_of(request.operands.begin(), request.operands.end(), [](const BoundInput& operand) {
        return operand.readable_as.front() == DType::boolean;
      });

  std::vector<DType> dtypes;
  for (const BoundInput& operand : request.operands) dtypes.push_back(operand.readable_as.front());
  build::Definition definition;
  definition.name = {einsum_result, {}};
  definition.labels = subscripts.output();
  definition.value =
      request.join ? joined_reads(shown, subscripts, count) : product_of_reads(subscripts, dtypes, logical);
  const std::vector<build::Name> reduced = subscripts.reduced();
  const Reducer reducer = choose_reducer(request, logical);
  if (!reduced.empty()) definition.value.nodes.push_back({{0, shown.text().size()}, build::Reduce{reducer, reduced}});
  return definition;
}

EinGraph einsum_graph(const EinsumRequest& request) {
  const std::size_t count = request.operands.size();
  const SourceText shown = einsum_source(request);
  build::Program program;
  Environment environment;
  build::Inputs inputs;
  const std::vector<BoundInput> seen = without_parts(request.operands);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = operand_name(i, count);
    build::InputDecl input{{name, {}}, {}, seen[i].readable_as.front(), seen[i].is_complex};
    for (std::size_t d = 0; d < seen[i].shape.size(); ++d) input.labels.push_back({fmt::format("{}_{}", name, d), {}});
    inputs.inputs.push_back(std::move(input));
    environment.inputs[name] = request.operands[i];
  }
  program.statements.push_back({{}, std::move(inputs)});
  program.statements.push_back({{0, shown.text().size()}, einsum_definition(request)});
  return *check(program, shown, environment).graph;
}

}  // namespace einrel
