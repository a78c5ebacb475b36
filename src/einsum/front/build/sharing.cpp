#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "einsum/front/build/formula.h"
#include "einsum/front/build/visit.h"
#include "einsum/front/text/macros.h"
#include "einsum/graph/ein_graph.h"

namespace einrel::build {
namespace {

/// Labels of a formula.
struct Labels {
  std::vector<std::string> free;  ///< not reduced in it, as they first stand there
  std::set<std::string> plain;    ///< index an element as they are, which gives them their extent

  void add(const std::string& label) {
    if (std::find(free.begin(), free.end(), label) == free.end()) free.push_back(label);
  }
  void add(const Labels& labels) {
    for (const std::string& label : labels.free) add(label);
    plain.insert(labels.plain.begin(), labels.plain.end());
  }
  void add(const Access& access) {
    for (const Index& index : access.indices) {
      for (const IndexTerm& term : index.terms) add(term.label.text);
      if (is_plain(index) && !access.pad) plain.insert(index.terms.front().label.text);
    }
  }
  /// What has its extent from the rows and columns of a matrix.
  void give(const std::string& label) {
    add(label);
    plain.insert(label);
  }
  void reduce(const std::vector<Name>& labels) {
    for (const Name& label : labels) std::erase(free, label.text);
  }
};

/// In additions, about.
double work_of(const Operation& op) {
  constexpr double dear = 16;
  const auto* const unary = std::get_if<Unary>(&op);
  const bool is_dear = unary != nullptr && !keeps_integers(unary->function);
  return is_dear || std::holds_alternative<Reduce>(op) || std::holds_alternative<MacroCall>(op) ||
                 std::holds_alternative<OpaqueCall>(op)
             ? dear
             : 1;
}

class Sharing {
 public:
  /// What statements that are no equations say.
  void note(const Statement& statement) {
    if (const auto* const dims = std::get_if<Dims>(&statement.what)) {
      for (const Dim& dim : dims->dims) known_extents_.insert(dim.label.text);
    } else if (const auto* const scalars = std::get_if<Scalars>(&statement.what)) {
      for (const ScalarDecl& scalar : scalars->scalars) scalars_.insert(scalar.name.text);
    } else if (const auto* const inputs = std::get_if<Inputs>(&statement.what)) {
      for (const InputDecl& input : inputs->inputs) taken_.insert(input.name.text);
    } else if (const auto* const view = std::get_if<ViewDefinition>(&statement.what)) {
      taken_.insert(view->name.text);
    }
  }

  void note(const Equation& equation) {
    if (equation.kind == Equation::Kind::state) taken_.insert(initial_name(equation.name));
    taken_.insert(equation.kind == Equation::Kind::next ? next_name(equation.name) : equation.name);
    ++uses_[equation.value];
    const auto known = [&](const Formula& formula) { return is_counted_.count(formula) != 0; };
    visit_after_arguments(equation.value, known, [&](const Formula& formula) {
      is_counted_.insert(formula);
      for (const Formula& argument : formula.arguments()) ++uses_[argument];
    });
  }

  void add(const Equation& equation, Program& program) {
    const auto known = [&](const Formula& formula) { return facts_.count(formula) != 0; };
    visit_after_arguments(equation.value, known, [&](const Formula& formula) {
      Facts& facts = facts_[formula];
      facts.work = work_of(formula.op());
      for (const Formula& argument : formula.arguments()) {
        facts.nodes += facts_.at(argument).nodes;
        facts.work += facts_.at(argument).work;
        facts.reads = facts.reads || facts_.at(argument).reads;
        facts.labels.add(facts_.at(argument).labels);
      }
      add_operation(formula.op(), facts);
      if (const std::optional<Formula> read = shared(formula, facts, equation.name, program)) {
        facts.nodes = 1;
        facts.work = 1;
        read_as_.emplace(formula, *read);
      }
    });
    constexpr double most_nodes = 1e7;
    if (facts_.at(equation.value).nodes > most_nodes) {
      throw UserError(
          fmt::format("the formula of '{}' repeats parts of it, {:.1e} operations in all\n  help: define "
                      "what it repeats",
                      equation.name, facts_.at(equation.value).nodes));
    }
    program.statements.push_back({{}, statement_of(equation)});
  }

 private:
  decltype(Statement::what) statement_of(const Equation& equation) const {
    Definition definition{{equation.name, {}}, names(equation.labels), flat(equation.value)};
    switch (equation.kind) {
      case Equation::Kind::state: return State{std::move(definition)};
      case Equation::Kind::next: return Next{std::move(definition)};
      case Equation::Kind::until: return Until{std::move(definition.value)};
      case Equation::Kind::definition: break;
    }
    return definition;
  }

  struct Facts {
    double nodes = 1;
    double work = 1;
    bool reads = false;  ///< a tensor
    Labels labels;
  };

  void add_operation(const Operation& op, Facts& facts) {
    if (const auto* const access = std::get_if<Access>(&op)) {
      facts.reads = true;
      facts.labels.add(*access);
    } else if (const auto* const use = std::get_if<NameUse>(&op)) {
      if (scalars_.count(use->name) == 0) facts.labels.add(use->name);
    } else if (std::holds_alternative<Reduce>(op)) {
      facts.labels.reduce(bound_labels({{}, op}));
    } else if (const auto* const opaque = std::get_if<OpaqueCall>(&op)) {
      facts.labels.reduce(bound_labels({{}, op}));
      for (std::size_t l = 2; l < opaque->matrix.size(); ++l) facts.labels.give(opaque->matrix[l].text);
    } else if (const auto* const macro = std::get_if<MacroCall>(&op)) {
      if (reduces_labels(*macro)) facts.labels.reduce(macro->labels);
    }
  }

  /// Built-in macros reduce all of their labels, as norm does, or none, as softmax.
  bool reduces_labels(const MacroCall& macro) {
    const auto [known, is_new] = reducing_macros_.try_emplace(macro.macro.text, false);
    if (!is_new || macro.labels.empty()) return known->second;
    Access element{{"X", {}}, {}, std::nullopt};
    for (const Name& label : macro.labels) element.indices.push_back(index(label.text));
    Expr expr;
    for (std::size_t a = 0; a < macro.arguments; ++a) expr.nodes.push_back({{}, element});
    expr.nodes.push_back({{}, macro});
    std::vector<Diagnostic> errors;  // check() says them
    macros_.expand(expr, errors);
    const std::vector<std::size_t> enclosing = enclosing_reductions(expr);
    known->second = true;
    for (std::size_t n = 0; n < expr.nodes.size(); ++n) {
      const bool reads = std::holds_alternative<Access>(expr.nodes[n].op);
      if (reads && enclosing[n] == no_reduction) known->second = false;
    }
    return known->second;
  }

  /// As it is read where it becomes a tensor, after its definition has been added.
  std::optional<Formula> shared(const Formula& formula, const Facts& facts, const std::string& tensor,
                                Program& program) {
    constexpr double little_work = 16;  // is done again
    const auto copies = static_cast<double>(uses_[formula] - 1);
    if (!facts.reads || facts.nodes == 1 || copies * facts.work <= little_work) return std::nullopt;
    const std::vector<std::string>& free = facts.labels.free;
    const bool has_extents = std::all_of(free.begin(), free.end(), [&](const std::string& label) {
      return known_extents_.count(label) != 0 || facts.labels.plain.count(label) != 0;
    });
    if (!has_extents) return std::nullopt;
    std::string name = tensor + "_shared";
    for (std::size_t number = 2; !taken_.insert(name).second; ++number)
      name = fmt::format("{}_shared{}", tensor, number);
    program.statements.push_back({{}, Definition{{name, {}}, names(free), flat(formula)}});
    program.unnamed.insert(name);
    std::vector<Index> indices;
    for (const std::string& label : free) indices.push_back(index(label));
    return element(name, std::move(indices));
  }

  /// In postorder, with reads of what is a tensor of its own.
  Expr flat(const Formula& formula) const {
    Expr expr;
    visit_after_arguments(
        formula,
        [&](const Formula& each) {
          const auto found = read_as_.find(each);
          if (found == read_as_.end()) return false;
          expr.nodes.push_back({{}, found->second.op()});
          return true;
        },
        [&](const Formula& each) {
          expr.nodes.push_back({{}, each.op()});
        });
    return expr;
  }

  std::set<std::string> known_extents_;
  std::set<std::string> scalars_;
  std::set<std::string> taken_;
  MacroTable macros_;
  std::map<std::string, bool> reducing_macros_;
  std::map<Formula, std::size_t> uses_;
  std::set<Formula> is_counted_;
  std::map<Formula, Facts> facts_;
  std::map<Formula, Formula> read_as_;
};

}  // namespace

double operations_of(const Formula& formula) {
  std::map<Formula, double> operations;
  const auto known = [&](const Formula& part) { return operations.count(part) != 0; };
  visit_after_arguments(formula, known, [&](const Formula& part) {
    double all = 1;
    for (const Formula& argument : part.arguments()) all += operations.at(argument);
    operations.insert({part, all});
  });
  return operations.at(formula);
}

Expr expr_of(const Formula& formula) {
  Expr expr;
  visit_after_arguments(
      formula, [](const Formula&) { return false; },
      [&](const Formula& each) {
        expr.nodes.push_back({{}, each.op()});
      });
  return expr;
}

Program program_of(const std::vector<std::variant<Statement, Equation>>& statements) {
  Sharing sharing;
  for (const auto& statement : statements) std::visit([&](const auto& each) { sharing.note(each); }, statement);
  Program program;
  for (const auto& statement : statements) {
    if (const auto* const equation = std::get_if<Equation>(&statement)) {
      sharing.add(*equation, program);
    } else {
      program.statements.push_back(std::get<Statement>(statement));
    }
  }
  return program;
}

}  // namespace einrel::build
