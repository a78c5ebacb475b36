#pragma once

#include "ia/rules/rule.h"

/// Conditions and parts of templates that several rules share.
namespace einrel::rules {

/// Where most rules come from.
inline constexpr std::string_view table_2 = "TRA paper, Table 2";

/// The alternatives of a rule that has one.
inline std::vector<IaId> one(IaId id) { return {id}; }

/// The kernel of a map with one output per input that depends on the array alone, nullptr for the others.
const Kernel* single_kernel(const LocalMap& map);

/// Condition on the map at node `map` of the pattern.
template <std::size_t map>
std::string not_single(const Match& match) {
  return single_kernel(match.op<LocalMap>(map)) != nullptr
             ? ""
             : "it makes several outputs per input, or takes numbers of the key";
}
template <std::size_t map>
std::string not_identity_map(const Match& match) {
  const IaNode& node = match.store[match.nodes[map]];
  const std::size_t arity = match.store[node.inputs.front()].type.relation.key_arity;
  const LocalMap& op = std::get<LocalMap>(node.op);
  if (single_kernel(op) == nullptr) return "it makes several outputs per input, or takes numbers of the key";
  return is_identity(op.key_map, arity) ? "" : "it is " + to_string(op.key_map, arity);
}
template <std::size_t join>
std::string not_plain_join(const Match& match) {
  const IaNode& node = match.store[match.nodes[join]];
  const LocalJoin& op = std::get<LocalJoin>(node.op);
  const std::size_t arity = match.store[node.inputs[0]].type.relation.key_arity +
                            match.store[node.inputs[1]].type.relation.key_arity - op.keys_left.size();
  if (!op.numbers.outputs.empty()) return "its kernel takes numbers of the key";
  return is_identity(op.key_map, arity) ? "" : "it is " + to_string(op.key_map, arity);
}
template <std::size_t aggregate>
std::string not_fold(const Match& match) {
  const bool folds = std::holds_alternative<Kernel>(match.op<LocalAggregate>(aggregate).fold);
  return folds ? "" : "it concatenates";
}

}  // namespace einrel::rules
