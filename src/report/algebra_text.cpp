#include "report/algebra_text.h"

#include <fmt/format.h>

#include "base/text.h"

namespace einrel {
namespace {

/// A line with a remark in the next column, or below it when the line is long.
std::string remarked(const std::string& line, const std::string& remark) {
  constexpr std::size_t column = 72;
  if (remark.empty()) return fmt::format("  {}\n", line);
  if (line.size() < column) return fmt::format("  {:<{}}{}\n", line, column, remark);
  return fmt::format("  {}\n      {}\n", line, remark);
}

std::string tra_section(const std::vector<OperationLine>& tra) {
  std::string text = "\ntensor relational algebra (each operation with the type of its relation)\n";
  for (const OperationLine& line : tra) text += remarked(line.text, line.note);
  return text;
}

std::string plan_section(const IaLines& plan, std::int64_t sites, const std::string& planner) {
  std::string text =
      fmt::format("\nimplementation algebra for {}, by {} (each operation with the placement of its tuples)\n",
                  counted(static_cast<std::size_t>(sites), "site"), planner);
  for (const OperationLine& line : plan.operations) {
    const std::string moved = line.floats == 0 ? "" : fmt::format(", {} moved", floats_text(line.floats));
    text += remarked(line.text, line.note.empty() ? "" : line.note + moved);
  }
  const PlanCost& cost = plan.cost;
  const std::string exact = floats_text(cost.moved);
  const std::string by_frontier = floats_text(cost.moved_each_key_once);
  text += fmt::format("  in all {} moved", exact);
  if (by_frontier != exact) text += fmt::format("; counted as in the paper, each key once: {}", by_frontier);
  if (cost.work_once > 0)
    text += fmt::format("; the busiest site has {:.3g} % of the work", 100 * cost.busiest / cost.work_once);
  return text + "\n";
}

std::string kernel_section(const std::map<std::string, std::string>& kernels) {
  std::string text = kernels.empty() ? "" : "\nkernels (A, B: the arrays that they take)\n";
  for (const auto& [name, definition] : kernels) text += fmt::format("  {}: {}\n", name, definition);
  return text;
}

std::string derivation_section(const DerivationFacts& derivation, const IaLines& start) {
  std::string text =
      fmt::format("\nderivation by ia-rules ({} plans seen{})\n", derivation.plans_seen,
                  derivation.complete               ? ", all that the rules reach"
                  : derivation.found.cost.moved > 0 ? "; then the budget was spent, so there may be much better plans"
                                                    : "");
  text += fmt::format("  {:<8} {:>16}\n", "Table 1", floats_text(start.cost.moved));
  for (const DerivationLine& line : derivation.steps) {
    text += fmt::format("  {:<8} {:>16}   {}\n", line.rule, floats_text(line.floats), line.equation);
    if (!line.conditions.empty()) text += fmt::format("      since {}\n", line.conditions);
    for (const std::string& definition : line.definitions) text += fmt::format("      with {}\n", definition);
    text += fmt::format("      from {}\n      to   {}\n", line.from, line.to);
  }
  if (derivation.steps.empty()) text += "  no rule makes it cheaper\n";
  return text;
}

}  // namespace

std::string algebra_text(const AlgebraFacts& facts) {
  std::string text = tra_section(facts.tra) + plan_section(facts.start, facts.sites, facts.planner);
  if (facts.derivation) {
    text += derivation_section(*facts.derivation, facts.start) +
            plan_section(facts.derivation->found, facts.sites, "ia-rules");
  }
  return text + kernel_section(facts.kernels);
}

}  // namespace einrel
