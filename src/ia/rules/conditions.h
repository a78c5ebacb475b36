#pragma once

#include "ia/rules/rule.h"

/// Conditions and parts of templates that several rules share.
namespace einrel::rules {

/// The alternatives of a rule whose match holds ids that stay good while nodes are added.
inline std::vector<IaId> one(IaId id) { return {id}; }

/// The kernel of a map with one output per input, nullptr for the others.
const Kernel* single_kernel(const LocalMap& map);
/// Whether the map gives one output per input and leaves its key as it is.
bool keeps_keys(const LocalMap& map, const PhysicalType& in);

/// Condition on the map at node `map` of the pattern.
template <std::size_t map>
std::string not_single(const Match& match) {
  return single_kernel(match.op<LocalMap>(map)) != nullptr ? "" : "it makes several outputs per input";
}
template <std::size_t map>
std::string not_identity_map(const Match& match) {
  const IaNode& node = match.store[match.nodes[map]];
  const PhysicalType& in = match.store[node.inputs.front()].type;
  const LocalMap& op = std::get<LocalMap>(node.op);
  return keeps_keys(op, in) ? "" : "it is " + to_string(op.key_map, in.relation.key_arity);
}
template <std::size_t join>
std::string not_plain_join(const Match& match) {
  const IaNode& node = match.store[match.nodes[join]];
  const LocalJoin& op = std::get<LocalJoin>(node.op);
  const std::size_t arity = match.store[node.inputs[0]].type.relation.key_arity +
                            match.store[node.inputs[1]].type.relation.key_arity - op.keys_left.size();
  return is_identity(op.key_map, arity) ? "" : "it is " + to_string(op.key_map, arity);
}
template <std::size_t aggregate>
std::string not_fold(const Match& match) {
  const bool folds = std::holds_alternative<Kernel>(match.op<LocalAggregate>(aggregate).fold);
  return folds ? "" : "it concatenates";
}

}  // namespace einrel::rules
