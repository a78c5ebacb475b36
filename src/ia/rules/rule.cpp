#include "ia/rules/rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/suggest.h"
#include "ia/rules/conditions.h"

namespace einrel {
namespace {

bool is_called(const IaOp& op, std::string_view name) {
  if (name == "bcast") return std::holds_alternative<Bcast>(op);
  if (name == "shuf") return std::holds_alternative<Shuf>(op);
  if (name == "join") return std::holds_alternative<LocalJoin>(op);
  if (name == "agg") return std::holds_alternative<LocalAggregate>(op);
  if (name == "filter") return std::holds_alternative<LocalFilter>(op);
  if (name == "map") return std::holds_alternative<LocalMap>(op);
  throw Bug("a pattern names an unknown operation");
}

}  // namespace

const Rule& rule_named(std::string_view name) {
  const std::vector<Rule>& rules = all_rules();
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const Rule& rule) { return rule.name == name; });
  if (found != rules.end()) return *found;
  std::vector<std::string> known;
  for (const Rule& rule : rules) known.emplace_back(rule.name);
  throw UserError(fmt::format("there is no rule '{}'; {}", name, did_you_mean(name, known)));
}

std::optional<Match> match(const IaStore& store, const Rule& rule, IaId at) {
  Match result{store, {}, {}};
  std::vector<IaId> expected{at};  // the next one last
  const std::string_view pattern = rule.pattern;
  for (std::size_t begin = 0; begin < pattern.size();) {
    std::size_t end = begin;
    while (end < pattern.size() && std::isalpha(static_cast<unsigned char>(pattern[end])) != 0) ++end;
    const std::string_view word = pattern.substr(begin, end - begin);
    begin = std::max(end, begin + 1);
    if (word.empty()) continue;
    const IaId id = expected.back();
    expected.pop_back();
    if (std::isupper(static_cast<unsigned char>(word.front())) != 0) {
      result.relations.push_back(id);
      continue;
    }
    if (!is_called(store[id].op, word)) return std::nullopt;
    result.nodes.push_back(id);
    expected.insert(expected.end(), store[id].inputs.rbegin(), store[id].inputs.rend());
  }
  return expected.empty() ? std::optional(std::move(result)) : std::nullopt;  // else a join of more relations
}

std::string broken_condition(const Rule& rule, const Match& match) {
  for (const IaId id : match.nodes) {
    const auto* shuffle = std::get_if<Shuf>(&match.store[id].op);
    if (shuffle != nullptr && copies_of(shuffle->grid) > 1)
      return "it applies when shuffles give each tuple one site; one is on " + to_string(shuffle->grid);
  }
  for (const Condition& condition : rule.conditions) {
    const std::string broken = condition.broken(match);
    if (!broken.empty()) return fmt::format("it applies when {}; {}", condition.text, broken);
  }
  const std::string useless = rule.worthwhile ? rule.worthwhile->broken(match) : "";
  return useless.empty() ? "" : fmt::format("it is of use when {}; {}", rule.worthwhile->text, useless);
}

namespace rules {

const Kernel* single_kernel(const LocalMap& map) {
  return map.numbers.outputs.empty() ? std::get_if<Kernel>(&map.arrays) : nullptr;
}

}  // namespace rules
}  // namespace einrel
