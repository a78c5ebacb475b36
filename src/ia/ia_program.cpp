#include "ia/ia_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/error.h"
#include "ia/infer.h"

namespace einrel {
namespace {

void mix(std::size_t& hash, std::size_t value) { hash ^= value + 0x9e3779b97f4a7c15U + (hash << 6U) + (hash >> 2U); }

void mix(std::size_t& hash, const KeyPositions& positions) {
  mix(hash, positions.size());
  for (const std::size_t position : positions) mix(hash, position);
}

void mix(std::size_t& hash, const Kernel& kernel) {
  mix(hash, std::hash<std::string>{}(kernel.name));
  mix(hash, kernel.steps.size());
}

/// Not every member, but enough to tell most nodes apart; equality decides.
struct OpHash {
  std::size_t& hash;
  void operator()(const PlacedRelation& op) const { mix(hash, std::hash<std::string>{}(op.stored.name)); }
  void operator()(const LabelPositions& op) const { mix(hash, static_cast<std::size_t>(op.extent.value())); }
  void operator()(const Bcast&) const {}
  void operator()(const Shuf& op) const { mix(hash, op.positions); }
  void operator()(const Repart& op) const {
    for (const DimensionCut& cut : op.to) mix(hash, static_cast<std::size_t>(cut.parts));
  }
  void operator()(const LocalJoin& op) const { mix(hash, op.keys_left); }
  void operator()(const LocalAggregate& op) const { mix(hash, op.group_by); }
  void operator()(const LocalFilter& op) const { mix(hash, op.predicate.steps.size()); }
  void operator()(const LocalMap& op) const { mix(hash, op.key_map.outputs.size()); }
};

std::size_t hash_of(const IaOp& op, const std::vector<IaId>& inputs) {
  std::size_t hash = op.index();
  std::visit(OpHash{hash}, op);
  for (const Kernel* const kernel : kernels_of(op)) mix(hash, *kernel);
  for (const IaId input : inputs) mix(hash, input.index);
  return hash;
}

}  // namespace

IaId IaStore::add(IaOp op, std::vector<IaId> inputs) {
  const std::size_t hash = hash_of(op, inputs);
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto same = first; same != last; ++same) {
    const IaNode& node = nodes_[same->second];
    if (node.inputs == inputs && node.op == op) return {same->second};
  }
  IaNode node{std::move(op), std::move(inputs), {}, {}, ""};
  std::vector<const IaNode*> read;
  for (const IaId input : node.inputs) {
    read.push_back(&nodes_.at(input.index));
    if (node.fault.empty()) node.fault = read.back()->fault;
  }
  if (node.fault.empty() && tuples_ >= most_store_tuples)
    node.fault =
        fmt::format("its relations have more than {} tuples together; cut into fewer chunks", most_store_tuples);
  if (node.fault.empty()) {
    try {
      infer_node(node, read, sites_);
    } catch (const UserError& error) {
      node.fault = error.what();
    }
  }
  tuples_ += node.type.relation.chunks.size() + node.type.tuples.size() + node.cost.work.size();
  nodes_.push_back(std::move(node));
  by_hash_.emplace(hash, nodes_.size() - 1);
  return {nodes_.size() - 1};
}

std::vector<const Kernel*> kernels_of(const IaOp& op) {
  std::vector<const Kernel*> kernels;
  if (const auto* join = std::get_if<LocalJoin>(&op)) kernels.push_back(&join->kernel);
  if (const auto* map = std::get_if<LocalMap>(&op)) {
    if (const auto* kernel = std::get_if<Kernel>(&map->arrays)) kernels.push_back(kernel);
  }
  if (const auto* aggregate = std::get_if<LocalAggregate>(&op)) {
    if (const auto* fold = std::get_if<Kernel>(&aggregate->fold)) kernels.push_back(fold);
    if (aggregate->finaliser) kernels.push_back(&*aggregate->finaliser);
  }
  return kernels;
}

std::vector<IaId> nodes_of(const IaStore& store, const IaPlan& plan) {
  std::set<IaId> needed;
  std::vector<IaId> waiting;
  for (const IaOutput& output : plan) waiting.push_back(output.id);
  while (!waiting.empty()) {
    const IaId id = waiting.back();
    waiting.pop_back();
    if (!needed.insert(id).second) continue;
    const std::vector<IaId>& inputs = store[id].inputs;
    waiting.insert(waiting.end(), inputs.begin(), inputs.end());
  }
  return {needed.begin(), needed.end()};
}

std::string fault_of(const IaStore& store, const IaPlan& plan) {
  for (const IaOutput& output : plan) {
    const IaNode& node = store[output.id];
    if (!node.fault.empty()) return node.fault;
    if (node.type.partial) {
      return fmt::format("the output {} would hold partial aggregates, which {} has still to fold", output.name,
                         node.type.partial->name);
    }
  }
  return "";
}

PlanCost cost_of(const IaStore& store, const IaPlan& plan) {
  PlanCost cost;
  std::vector<double> work;
  double everywhere = 0;
  for (const IaId id : nodes_of(store, plan)) {
    const NodeCost& node = store[id].cost;
    cost.moved += node.moved;
    cost.moved_each_key_once += node.moved_each_key_once;
    everywhere += node.work_everywhere;
    cost.even_share += node.even_share;
    if (work.size() < node.work.size()) work.resize(node.work.size(), 0);
    for (std::size_t site = 0; site < node.work.size(); ++site) work[site] += node.work[site];
  }
  for (const double at : work) {
    cost.busiest = std::max(cost.busiest, at);
    cost.work += at;
  }
  cost.work_once = cost.work + everywhere;
  cost.busiest += everywhere;
  cost.work += everywhere * static_cast<double>(store.sites());
  return cost;
}

}  // namespace einrel
