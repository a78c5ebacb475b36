#include "report/lists.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/source.h"
#include "ia/parse.h"
#include "ia/print.h"
#include "ia/rules/rewrite.h"
#include "kernel/lapack.h"
#include "kernel/registry.h"

namespace einrel {

std::string kernels_text() {
  std::string text;
  const auto add = [&text](const auto& kernel) {
    text += fmt::format("{:<10} {}\n{:<10} by {}\n", kernel.name, kernel.computes, "", kernel.library);
  };
  for (const KernelInfo& kernel : all_kernels()) add(kernel);
  add(lapack_note());
  text +=
      "\nThe kernel of the lowest modelled time computes a vertex; `einrel explain PROGRAM --json` says for each "
      "vertex what the\n"
      "others would take, or why they do not apply. Vertices that work in proportion to their data, and short products "
      "that only\n"
      "they read, run together: slab by slab, so that what lies between them stays in the cache.\n";
  return text;
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
