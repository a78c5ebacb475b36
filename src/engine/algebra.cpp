#include "engine/algebra.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <sstream>

#include "base/source.h"
#include "base/text.h"
#include "ia/from_tra.h"
#include "ia/parse.h"
#include "ia/print.h"
#include "ia/rules/rewrite.h"
#include "plan/lower.h"
#include "tra/from_einsum.h"
#include "tra/infer.h"
#include "tra/text/print.h"

namespace einrel {
namespace {

/// "1.6e+10 floats", exact below a million.
std::string floats_text(double floats) {
  return floats < 1e6 ? fmt::format("{:.0f} floats", floats) : fmt::format("{:.3g} floats", floats);
}

/// A line with a remark in the next column, or below it when the line is long.
std::string remarked(const std::string& line, const std::string& remark) {
  constexpr std::size_t column = 72;
  if (line.size() < column) return fmt::format("  {:<{}}{}\n", line, column, remark);
  return fmt::format("  {}\n      {}\n", line, remark);
}

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// All plans of a derivation, or the only one.
std::vector<IaPlan> plans_of(const AlgebraPlan& plan) {
  if (!plan.derivation) return {plan.ia.plan};
  std::vector<IaPlan> plans{plan.derivation->start};
  for (const DerivationStep& step : plan.derivation->steps) plans.push_back(step.plan);
  return plans;
}

std::vector<OperationLine> lines_of(const IaStore& store, const IaPlan& plan,
                                    const std::map<IaId, std::string>& names) {
  std::vector<OperationLine> lines;
  for (const IaId id : nodes_of(store, plan)) {
    const IaNode& node = store[id];
    const bool is_input = std::holds_alternative<PlacedRelation>(node.op);
    lines.push_back({(is_input ? "" : names.at(id) + " = ") + to_text(store, id, names),
                     (node.type.partial ? "partial, " : "") + to_string(node.type.placement), node.cost.moved});
  }
  lines.push_back({outputs_text(plan, names), "", 0});
  return lines;
}

std::string tra_section(const TraExpr& program) {
  std::string text = "\ntensor relational algebra (each operation with the type of its relation)\n";
  for (const OperationLine& line : tra_lines(program))
    text += line.note.empty() ? fmt::format("  {}\n", line.text) : remarked(line.text, line.note);
  return text;
}

std::string plan_section(const IaStore& store, const IaPlan& plan, const std::map<IaId, std::string>& names,
                         const std::string& how) {
  std::string text =
      fmt::format("\nimplementation algebra for {}, {} (each operation with the placement of its tuples)\n",
                  counted(static_cast<std::size_t>(store.sites()), "site"), how);
  for (const OperationLine& line : lines_of(store, plan, names)) {
    const std::string moved = line.floats == 0 ? "" : fmt::format(", {} moved", floats_text(line.floats));
    text += line.note.empty() ? fmt::format("  {}\n", line.text) : remarked(line.text, line.note + moved);
  }
  const PlanCost cost = cost_of(store, plan);
  const std::string exact = floats_text(cost.moved);
  const std::string by_frontier = floats_text(cost.moved_each_key_once);
  text += fmt::format("  in all {} moved", exact);
  if (by_frontier != exact) text += fmt::format("; counted as in the paper, each key once: {}", by_frontier);
  if (cost.work_once > 0)
    text += fmt::format("; the busiest site has {:.3g} % of the work", 100 * cost.busiest / cost.work_once);
  return text + "\n";
}

/// The kernels that the text of the TRA does not define: built-in ones and compositions.
std::string kernel_section(const IaStore& store, const std::vector<IaPlan>& plans, const std::string& tra) {
  std::map<std::string, std::string> kernels;
  for (const IaPlan& plan : plans) {
    for (const IaId id : nodes_of(store, plan)) {
      for (const Kernel* kernel : kernels_of(store[id].op)) {
        const bool is_defined = tra.find(fmt::format("\n  kernel {}(", kernel->name)) != std::string::npos;
        if (!is_identity(*kernel) && !is_defined) kernels[kernel->name] = formula(*kernel);
      }
    }
  }
  std::string text = kernels.empty() ? "" : "\nkernels (A, B: the arrays that they take)\n";
  for (const auto& [name, definition] : kernels) text += fmt::format("  {}: {}\n", name, definition);
  return text;
}

std::string derivation_section(const AlgebraPlan& plan) {
  const Derivation& derivation = *plan.derivation;
  std::string text =
      fmt::format("\nderivation by ia-rules ({} plans seen{})\n", derivation.plans_seen,
                  derivation.complete           ? ", all that the rules reach"
                  : derivation.cost().moved > 0 ? "; then the budget was spent, so there may be much better plans"
                                                : "");
  text += fmt::format("  {:<8} {:>16}\n", "Table 1", floats_text(derivation.start_cost.moved));
  for (const DerivationLine& line : derivation_lines(plan)) {
    text += fmt::format("  {:<8} {:>16}   {}\n", line.rule, floats_text(line.floats), line.equation);
    if (!line.conditions.empty()) text += fmt::format("      since {}\n", line.conditions);
    for (const std::string& definition : line.definitions) text += fmt::format("      with {}\n", definition);
    text += fmt::format("      from {}\n      to   {}\n", line.from, line.to);
  }
  if (derivation.steps.empty()) text += "  no rule makes it cheaper\n";
  return text;
}

}  // namespace

TraExpr algebra_of(const Compiled& compiled, std::int64_t sites) {
  return from_einsum(compiled.graph, default_cuts(compiled.graph, sites));
}

AlgebraPlan plan_algebra(TraExpr program, std::int64_t sites, const InputLayouts& layouts, bool search) {
  AlgebraPlan plan{std::move(program), {IaStore(1), {}, {}}, std::nullopt, "Table 1"};
  plan.ia = compile_by_table_1(plan.tra, sites, layouts);
  if (search) {
    plan.derivation = cheapest_plan(plan.ia.store, plan.ia.plan);
    plan.ia.plan = plan.derivation->plan();
  }
  return plan;
}

AlgebraPlan algebra_of(const EinGraph& graph, const Plan& plan) {
  LoweredPlan lowered = lower(graph, plan);
  return {std::move(lowered.tra), std::move(lowered.ia), std::nullopt, plan.planner};
}

std::vector<OperationLine> tra_lines(const TraExpr& program) {
  const std::vector<RelationType> types = infer(program);
  std::vector<OperationLine> lines;
  const std::vector<std::string> text = split_lines(to_text(program));
  const std::size_t last = text.size() - (program.outputs.empty() ? 0 : 1);
  const std::size_t first = last - program.nodes.size();  // scalars and kernels come before, one line per node
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_node = i >= first && i < last;
    lines.push_back({text[i], is_node ? to_string(types[i - first]) : "", 0});
  }
  return lines;
}

std::vector<OperationLine> ia_lines(const AlgebraPlan& plan) {
  return lines_of(plan.ia.store, plan.ia.plan, names_of(plan.ia.store, plans_of(plan)));
}

std::vector<DerivationLine> derivation_lines(const AlgebraPlan& plan) {
  std::vector<DerivationLine> lines;
  if (!plan.derivation) return lines;
  const IaStore& store = plan.ia.store;
  const std::map<IaId, std::string> names = names_of(store, plans_of(plan));
  std::set<IaId> defined;  // what the reader has seen
  for (const IaId id : nodes_of(store, plan.derivation->start)) defined.insert(id);
  for (const DerivationStep& step : plan.derivation->steps) {
    const Match found = match(store, *step.rule, step.at).value();
    DerivationLine line{std::string(step.rule->name),
                        fmt::format("{} = {}", step.rule->pattern, step.rule->result),
                        "",
                        {},
                        "",
                        "",
                        step.cost.moved};
    for (const Condition& condition : step.rule->conditions)
      line.conditions += (line.conditions.empty() ? "" : "; ") + std::string(condition.text);
    for (const IaId leaf : found.relations) {
      for (const IaId id : nodes_of(store, {{"", leaf}})) {
        if (defined.insert(id).second) line.definitions.push_back(names.at(id) + " = " + to_text(store, id, names));
      }
    }
    line.from = nested_text(store, step.at, found.relations, names);
    line.to = nested_text(store, step.by, found.relations, names);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string algebra_text(const AlgebraPlan& plan) {
  const IaStore& store = plan.ia.store;
  const std::vector<IaPlan> plans = plans_of(plan);
  const std::map<IaId, std::string> names = names_of(store, plans);
  const std::string tra = tra_section(plan.tra);
  std::string text = tra + plan_section(store, plans.front(), names, "by " + plan.planner);
  if (plan.derivation) text += derivation_section(plan) + plan_section(store, plan.ia.plan, names, "by ia-rules");
  return text + kernel_section(store, plans, tra);
}

std::string rules_text() {
  constexpr std::int64_t example_sites = 2;
  std::string text = "Two plans are equal when they hold the same (key, array) pairs, wherever these lie.\n";
  for (const Rule& rule : all_rules()) {
    text += fmt::format("\n{:<6} {} = {}\n       {}\n", rule.name, rule.pattern, rule.result, rule.reference);
    for (const Condition& condition : rule.conditions) text += fmt::format("       when {}\n", condition.text);
    if (rule.worthwhile) text += fmt::format("       of use when {}\n", rule.worthwhile->text);
    IaProgram example = parse_ia(SourceText(std::string(rule.name), std::string(rule.example)), example_sites);
    const IaId at = example.plan.front().id;
    const Rewritten rewritten = apply(rule, example.store, example.plan, at);
    invariant(!rewritten.alternatives.empty(), "every rule applies to its example");
    const Alternative& first = rewritten.alternatives.front();
    const std::map<IaId, std::string> names = names_of(example.store, {example.plan, first.plan});
    text += fmt::format("       e.g. {}\n", nested_text(example.store, at, {}, names));
    text += fmt::format("       =    {}\n", nested_text(example.store, first.by, {}, names));
  }
  return text;
}

}  // namespace einrel
