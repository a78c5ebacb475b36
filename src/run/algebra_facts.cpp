#include "run/algebra_facts.h"

#include <fmt/format.h>

#include <set>
#include <sstream>

#include "ia/print.h"
#include "tra/infer.h"
#include "tra/text/print.h"

namespace einrel {
namespace {

using Names = std::map<IaId, std::string>;

std::vector<OperationLine> tra_lines(const TraExpr& program) {
  const std::vector<RelationType> types = infer(program);
  std::vector<OperationLine> lines;
  std::istringstream text(to_text(program));
  for (std::string line; std::getline(text, line);) lines.push_back({line, "", 0});
  const std::size_t last = lines.size() - (program.outputs.empty() ? 0 : 1);
  const std::size_t first = last - types.size();  // scalars and kernels come before, one line per node
  for (std::size_t i = 0; i < types.size(); ++i) lines[first + i].note = to_string(types[i]);
  return lines;
}

IaLines ia_lines(const IaStore& store, const IaPlan& plan, const Names& names) {
  IaLines lines{{}, cost_of(store, plan)};
  for (const IaId id : nodes_of(store, plan)) {
    const IaNode& node = store[id];
    const bool is_input = std::holds_alternative<PlacedRelation>(node.op);
    lines.operations.push_back({(is_input ? "" : names.at(id) + " = ") + to_text(store, id, names),
                                (node.type.partial ? "partial, " : "") + to_string(node.type.placement),
                                node.cost.moved});
  }
  lines.operations.push_back({outputs_text(plan, names), "", 0});
  return lines;
}

std::vector<DerivationLine> derivation_lines(const IaStore& store, const Derivation& derivation, const Names& names) {
  std::vector<DerivationLine> lines;
  std::set<IaId> defined;  // what the reader has seen
  for (const IaId id : nodes_of(store, derivation.start)) defined.insert(id);
  for (const DerivationStep& step : derivation.steps) {
    const Match found = match(store, *step.rule, step.at).value();
    DerivationLine line{.rule = std::string(step.rule->name),
                        .equation = fmt::format("{} = {}", step.rule->pattern, step.rule->result),
                        .conditions = "",
                        .definitions = {},
                        .from = nested_text(store, step.at, found.relations, names),
                        .to = nested_text(store, step.by, found.relations, names),
                        .floats = step.cost.moved};
    for (const Condition& condition : step.rule->conditions)
      line.conditions += (line.conditions.empty() ? "" : "; ") + std::string(condition.text);
    for (const IaId leaf : found.relations) {
      for (const IaId id : nodes_of(store, {{"", leaf}})) {
        if (defined.insert(id).second) line.definitions.push_back(names.at(id) + " = " + to_text(store, id, names));
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

/// The kernels that the text of the TRA does not define: built-in ones and compositions.
std::map<std::string, std::string> kernels_besides(const std::vector<OperationLine>& tra, const IaStore& store,
                                                   const std::vector<IaPlan>& plans) {
  constexpr std::string_view keyword = "kernel ";
  std::set<std::string, std::less<>> defined;
  for (const OperationLine& line : tra) {
    const std::string_view text = line.text;
    if (text.starts_with(keyword)) defined.emplace(text.substr(keyword.size(), text.find('(') - keyword.size()));
  }
  std::map<std::string, std::string> kernels;
  for (const IaPlan& plan : plans) {
    for (const IaId id : nodes_of(store, plan)) {
      for (const Kernel* kernel : kernels_of(store[id].op)) {
        if (!is_identity(*kernel) && !defined.contains(kernel->name)) kernels[kernel->name] = formula(*kernel);
      }
    }
  }
  return kernels;
}

}  // namespace

std::string planner_of(const AlgebraFacts& facts) { return facts.derivation ? "ia-rules" : "table-1"; }

AlgebraFacts facts_of(const AlgebraPlan& plan) {
  const IaStore& store = plan.ia.store;
  const std::vector<IaPlan> plans = plans_of(plan);
  const Names names = names_of(store, plans);
  AlgebraFacts facts{.sites = store.sites(),
                     .planner = plan.planner,
                     .tra = tra_lines(plan.tra),
                     .start = ia_lines(store, plans.front(), names),
                     .derivation = std::nullopt,
                     .kernels = {},
                     .plan_seconds = plan.seconds};
  if (plan.derivation) {
    facts.derivation = DerivationFacts{.steps = derivation_lines(store, *plan.derivation, names),
                                       .plans_seen = plan.derivation->plans_seen,
                                       .complete = plan.derivation->complete,
                                       .found = ia_lines(store, plan.ia.plan, names)};
  }
  facts.kernels = kernels_besides(facts.tra, store, plans);
  return facts;
}

}  // namespace einrel
