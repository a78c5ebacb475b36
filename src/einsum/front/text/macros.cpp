#include "einsum/front/text/macros.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/suggest.h"
#include "einsum/front/text/lexer.h"
#include "einsum/front/text/other_notations.h"
#include "einsum/front/text/parse.h"

namespace einrel {
namespace {

/// Nodes that one statement may grow to: far beyond any program written by hand, small enough for memory.
constexpr std::size_t max_statement_nodes = 200'000;
/// Nodes that all statements of a program together may grow to.
constexpr std::size_t max_program_nodes = 5'000'000;

/// Of nothing but -inf a softmax is 0, and its logarithm -inf. What is subtracted is finite then, and the divisor 1, so
/// that gradients are 0 there, too.
const std::string prelude =
    R"(def softmax[j](x) = exp(x - stop_gradient(where(f64(max[j] x) == -inf, 0, max[j] x))) / ((sum[j] exp(x - stop_gradient(where(f64(max[j] x) == -inf, 0, max[j] x)))) + ((sum[j] exp(x - stop_gradient(where(f64(max[j] x) == -inf, 0, max[j] x)))) == 0))
def logsoftmax[j](x) = where(f64(max[j] x) == -inf, -inf, x - stop_gradient(max[j] x) - log((sum[j] exp(x - stop_gradient(where(f64(max[j] x) == -inf, 0, max[j] x)))) + ((sum[j] exp(x - stop_gradient(where(f64(max[j] x) == -inf, 0, max[j] x)))) == 0)))
def norm[j](x) = sqrt(sum[j] sq(x))
def variance[j](x) = mean[j] sq(x - mean[j] x)
def layernorm[j](x, eps) = (x - mean[j] x) * rsqrt(variance[j](x) + eps)
def rmsnorm[j](x, eps) = x * rsqrt(mean[j] sq(x) + eps)
)";

bool names_one_of(const std::vector<build::Name>& names, const std::string& text) {
  return std::any_of(names.begin(), names.end(), [&](const build::Name& name) { return name.text == text; });
}

std::set<std::string> reduced_labels(const build::Expr& expr) {
  std::set<std::string> labels;
  for (const build::Node& node : expr.nodes) {
    for (const build::Name& label : build::bound_labels(node)) labels.insert(label.text);
  }
  return labels;
}

void check_parameters(const build::MacroDef& macro, std::vector<Diagnostic>& errors) {
  std::set<std::string> seen;
  for (const auto* names : {&macro.labels, &macro.parameters}) {
    for (const build::Name& name : *names) {
      if (!seen.insert(name.text).second) {
        errors.push_back({fmt::format("'{}' is a parameter twice", name.text), {name.span}, "rename one"});
      }
    }
  }
}

void check_reduced_names(const build::MacroDef& macro, std::vector<Diagnostic>& errors) {
  const std::set<std::string> reduced = reduced_labels(macro.body);
  for (const build::Name& parameter : macro.parameters) {
    if (reduced.count(parameter.text) == 0) continue;
    errors.push_back(
        {fmt::format("'{}' is a parameter and a reduced label of macro '{}'", parameter.text, macro.name.text),
         {parameter.span},
         "rename one"});
  }
  for (const build::Node& node : macro.body.nodes) {
    const auto* call = std::get_if<build::MacroCall>(&node.op);
    if (call == nullptr || call->macro.text != macro.name.text) continue;
    errors.push_back(
        {fmt::format("macro '{}' calls itself", macro.name.text), {call->macro.span}, "macros do not recur"});
  }
}

/// The names and labels of the body that mean nothing where they stand.
void check_body(const build::MacroDef& macro, const std::set<std::string>& scalars, std::vector<Diagnostic>& errors) {
  const std::vector<std::size_t> enclosing = build::enclosing_reductions(macro.body);
  const auto is_bound = [&](const std::string& label, std::size_t node) {
    for (std::size_t r = enclosing[node]; r != build::no_reduction; r = enclosing[r]) {
      if (names_one_of(build::bound_labels(macro.body.nodes[r]), label)) return true;
    }
    return names_one_of(macro.labels, label);
  };
  const auto check_label = [&](const build::Name& label, std::size_t node) {
    if (is_bound(label.text, node)) return;
    errors.push_back(
        {fmt::format("label '{}' in macro '{}' is neither a parameter nor reduced", label.text, macro.name.text),
         {label.span},
         fmt::format("make it a parameter: def {}[{}](...)", macro.name.text, label.text)});
  };
  for (std::size_t i = 0; i < macro.body.nodes.size(); ++i) {
    const build::Node& node = macro.body.nodes[i];
    if (const auto* use = std::get_if<build::NameUse>(&node.op)) {
      if (names_one_of(macro.parameters, use->name) || is_bound(use->name, i) || scalars.count(use->name) != 0)
        continue;
      errors.push_back({fmt::format("unknown name '{}' in macro '{}'", use->name, macro.name.text),
                        {node.span},
                        "a macro sees its parameters, its own reduced labels, scalars and tensors"});
    } else if (const auto* access = std::get_if<build::Access>(&node.op)) {
      for (const build::Index& index : access->indices) {
        for (const build::IndexTerm& term : index.terms) check_label(term.label, i);
      }
    } else if (const auto* opaque = std::get_if<build::OpaqueCall>(&node.op)) {
      const std::vector<build::Name> own = build::bound_labels(node);
      for (const build::Name& label : opaque->matrix) {
        if (!names_one_of(own, label.text)) check_label(label, i);
      }
    }
  }
}

/// What the labels of a macro's body become in one call: the caller's for a label parameter, else fresh names.
class Renaming {
 public:
  Renaming(const Macro& macro, const build::MacroCall& call, Span span, std::size_t instance)
      : macro_(macro),
        call_(call),
        span_(span),
        instance_(instance),
        own_labels_(reduced_labels(macro.definition.body)) {}

  build::Node apply(build::Node node) const {
    node.span = span_;
    if (auto* use = std::get_if<build::NameUse>(&node.op)) {
      const bool is_label = own_labels_.count(use->name) != 0 || names_one_of(macro_.definition.labels, use->name);
      if (is_label) use->name = rename({use->name, span_}).front().text;
    } else if (auto* access = std::get_if<build::Access>(&node.op)) {
      rename_indices(*access);
    } else if (auto* opaque = std::get_if<build::OpaqueCall>(&node.op)) {
      for (build::Name& label : opaque->matrix) label = rename(label).front();
    } else if (auto* reduce = std::get_if<build::Reduce>(&node.op)) {
      std::vector<build::Name> labels;
      for (const build::Name& label : reduce->labels) {
        for (build::Name& name : rename(label)) labels.push_back(std::move(name));
      }
      reduce->labels = std::move(labels);
    }
    return node;
  }

 private:
  std::vector<build::Name> rename(const build::Name& label) const {
    const std::vector<build::Name>& parameters = macro_.definition.labels;
    if (macro_.built_in && names_one_of(parameters, label.text)) return call_.labels;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (parameters[i].text == label.text) return {call_.labels[i]};
    }
    return {{fmt::format("{}'{}", label.text, instance_), span_}};
  }

  void rename_indices(build::Access& access) const {
    access.tensor.span = span_;
    for (build::Index& index : access.indices) {
      index.span = span_;
      for (build::IndexTerm& term : index.terms) term.label = rename(term.label).front();
    }
  }

  const Macro& macro_;
  const build::MacroCall& call_;
  Span span_;
  std::size_t instance_;
  std::set<std::string> own_labels_;
};

}  // namespace

MacroTable::MacroTable() : budget_(max_program_nodes) {
  std::vector<Diagnostic> errors;
  const SourceText source("<built in>", prelude);
  for (build::Statement& statement : parse(source, errors).statements) {
    auto& macro = std::get<build::MacroDef>(statement.what);
    expand(macro.body, errors);
    const std::string name = macro.name.text;
    macros_[name] = {std::move(macro), true};
  }
  invariant(errors.empty(), "the built-in macros are correct");
}

void MacroTable::define(build::MacroDef macro, const std::set<std::string>& scalars, std::vector<Diagnostic>& errors) {
  const std::size_t before = errors.size();
  if (const auto known = macros_.find(macro.name.text); known != macros_.end()) {
    const bool built_in = known->second.built_in;
    errors.push_back({fmt::format("macro '{}' {}", macro.name.text, built_in ? "is built in" : "is defined twice"),
                      {macro.name.span},
                      "choose another name"});
    if (!built_in) errors.back().marks.push_back(known->second.definition.name.span);
  }
  check_parameters(macro, errors);
  check_body(macro, scalars, errors);
  check_reduced_names(macro, errors);
  if (errors.size() > before || !expand(macro.body, errors)) macro.body.nodes.clear();  // known, but of no use
  const std::string name = macro.name.text;
  macros_.insert({name, {std::move(macro), false}});
}

std::vector<std::string> MacroTable::names() const {
  std::vector<std::string> names;
  for (const auto& [name, macro] : macros_) names.push_back(name);
  return names;
}

const Macro* MacroTable::find(const build::MacroCall& call, Span span, std::vector<Diagnostic>& errors) const {
  const auto found = macros_.find(call.macro.text);
  if (found == macros_.end()) {
    std::string near = other_notations::help_for_function(call.macro.text);
    if (near.empty() && errors.size() < 100) {  // see CheckState::suggest
      std::vector<std::string> known = names();
      for (const FunctionInfo& info : all_functions()) known.emplace_back(info.name);
      near = did_you_mean(call.macro.text, known);
    }
    errors.push_back(
        {fmt::format("unknown function or macro '{}'", call.macro.text),
         {call.macro.span},
         !near.empty() ? near : "a macro is defined before its use: def name[j](x) = ...; a tensor has brackets only"});
    return nullptr;
  }
  const build::MacroDef& definition = found->second.definition;
  const bool labels_fit = call.labels.size() == definition.labels.size() ||
                          (found->second.built_in && !definition.labels.empty() && !call.labels.empty());
  if (!labels_fit || call.arguments != definition.parameters.size()) {
    errors.push_back(
        {fmt::format("macro '{}' takes {} label{} and {} argument{}, not {} and {}", definition.name.text,
                     definition.labels.size(), definition.labels.size() == 1 ? "" : "s", definition.parameters.size(),
                     definition.parameters.size() == 1 ? "" : "s", call.labels.size(), call.arguments),
         {span},
         "labels stand in brackets, expressions in parentheses: softmax[j](X[i,j])"});
    return nullptr;
  }
  return &found->second;
}

bool MacroTable::instantiate(const Macro& macro, const build::MacroCall& call, Span span,
                             const std::vector<build::Expr>& arguments, build::Expr& out,
                             std::vector<Diagnostic>& errors) {
  const std::vector<build::Name>& parameters = macro.definition.parameters;
  const Renaming renaming(macro, call, span, ++fresh_);
  for (const build::Node& node : macro.definition.body.nodes) {
    const auto* use = std::get_if<build::NameUse>(&node.op);
    const auto parameter = std::find_if(parameters.begin(), parameters.end(), [&](const build::Name& name) {
      return use != nullptr && name.text == use->name;
    });
    if (parameter != parameters.end()) {
      const build::Expr& argument = arguments[static_cast<std::size_t>(parameter - parameters.begin())];
      out.nodes.insert(out.nodes.end(), argument.nodes.begin(), argument.nodes.end());
    } else {
      out.nodes.push_back(renaming.apply(node));
    }
    if (out.nodes.size() > max_statement_nodes) {
      errors.push_back({fmt::format("this expands to more than {} operations", max_statement_nodes),
                        {span},
                        "compute parts of it in statements of their own"});
      return false;
    }
  }
  return true;
}

bool MacroTable::expand(build::Expr& expr, std::vector<Diagnostic>& errors) {
  const auto is_call = [](const build::Node& node) { return std::holds_alternative<build::MacroCall>(node.op); };
  if (std::none_of(expr.nodes.begin(), expr.nodes.end(), is_call)) return !expr.nodes.empty();
  build::Expr out;
  std::vector<std::size_t> starts;  // of the subexpressions of `out` that no node has taken yet
  bool good = true;
  for (build::Node& node : expr.nodes) {
    const std::size_t first = starts.size() - build::arity(node);
    const std::size_t begin = first < starts.size() ? starts[first] : out.nodes.size();
    const auto* call = std::get_if<build::MacroCall>(&node.op);
    if (call == nullptr) {
      out.nodes.push_back(std::move(node));
    } else {
      std::vector<build::Expr> arguments(call->arguments);
      for (std::size_t a = 0; a < call->arguments; ++a) {
        const std::size_t end = first + a + 1 < starts.size() ? starts[first + a + 1] : out.nodes.size();
        arguments[a].nodes.assign(out.nodes.begin() + static_cast<std::ptrdiff_t>(starts[first + a]),
                                  out.nodes.begin() + static_cast<std::ptrdiff_t>(end));
      }
      out.nodes.resize(begin);
      const Macro* macro = find(*call, node.span, errors);
      const bool usable = macro != nullptr && !macro->definition.body.nodes.empty();
      if (!usable || !instantiate(*macro, *call, node.span, arguments, out, errors)) {
        good = false;
        out.nodes.resize(begin);
        out.nodes.push_back({node.span, build::Number{}});  // a placeholder, so that the other calls are looked at too
      }
    }
    starts.resize(first);
    starts.push_back(begin);
  }
  if (good && out.nodes.size() > budget_) {
    errors.push_back({fmt::format("the macros of this program expand to more than {} operations", max_program_nodes),
                      {expr.nodes.back().span},
                      "name common parts in statements of their own"});
    good = false;
  }
  budget_ -= std::min(budget_, out.nodes.size());
  expr = std::move(out);
  return good;
}

std::string display_label(const std::string& label) { return label.substr(0, label.find('\'')); }

const std::string& built_in_macro_text() { return prelude; }

}  // namespace einrel
