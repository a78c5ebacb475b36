#include "ia/rules/rewrite.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace einrel {
namespace {

/// The plan with `by` wherever `at` was.
IaPlan with_replacement(IaStore& store, const IaPlan& plan, IaId at, IaId by) {
  std::map<std::size_t, IaId> changed{{at.index, by}};
  const auto now = [&](IaId id) {
    const auto found = changed.find(id.index);
    return found == changed.end() ? id : found->second;
  };
  for (const IaId id : nodes_of(store, plan)) {
    if (id <= at) continue;  // inputs come first
    std::vector<IaId> inputs = store[id].inputs;
    std::transform(inputs.begin(), inputs.end(), inputs.begin(), now);
    if (inputs != store[id].inputs) changed[id.index] = store.add(IaOp(store[id].op), std::move(inputs));
  }
  IaPlan result = plan;
  for (IaOutput& output : result) output.id = now(output.id);
  return result;
}

}  // namespace

Rewritten apply(const Rule& rule, IaStore& store, const IaPlan& plan, IaId at) {
  const std::optional<Match> found = match(store, rule, at);
  if (!found) return {{}, "the operations there are not " + std::string(rule.pattern)};
  if (std::string broken = broken_condition(rule, *found); !broken.empty()) return {{}, std::move(broken)};
  Rewritten result;
  std::vector<IaId> built;
  try {
    built = rule.build(store, *found);
  } catch (const UserError& error) {  // an extent or a key would become too large
    return {{}, error.what()};
  }
  for (const IaId by : built) {
    IaPlan changed = with_replacement(store, plan, at, by);
    const std::string fault = fault_of(store, changed);
    if (!fault.empty()) {
      result.reason = "afterwards the plan could not run: " + fault;
    } else if (changed != plan) {
      result.alternatives.push_back({by, std::move(changed)});
    }
  }
  if (result.alternatives.empty() && result.reason.empty()) result.reason = "it changes nothing there";
  return result;
}

std::vector<ApplicableRule> applicable_rules(IaStore& store, const IaPlan& plan, IaId at, SearchUse use) {
  std::vector<ApplicableRule> result;
  for (const Rule& rule : all_rules()) {
    if (rule.search != use) continue;
    Rewritten rewritten = apply(rule, store, plan, at);
    if (!rewritten.alternatives.empty()) result.push_back({&rule, at, std::move(rewritten.alternatives)});
  }
  return result;
}

}  // namespace einrel
