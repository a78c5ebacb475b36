#include "tra/tra_expr.h"

#include <fmt/format.h>

#include <algorithm>

namespace einrel {
namespace {

struct OperationName {
  const char* operator()(const StoredRelation&) const { return "input"; }
  const char* operator()(const LabelPositions&) const { return "positions"; }
  const char* operator()(const Aggregate&) const { return "aggregate"; }
  const char* operator()(const Join&) const { return "join"; }
  const char* operator()(const ReKey&) const { return "rekey"; }
  const char* operator()(const Filter&) const { return "filter"; }
  const char* operator()(const Transform&) const { return "transform"; }
  const char* operator()(const Tile&) const { return "tile"; }
  const char* operator()(const Concat&) const { return "concat"; }
  const char* operator()(const Repartition&) const { return "repartition"; }
};

}  // namespace

TraId TraExpr::add(TraOp op, std::vector<TraId> inputs, std::string name, Span where) {
  for (const TraId input : inputs) invariant(input.index < nodes.size(), "inputs come before their users");
  nodes.push_back({std::move(op), std::move(inputs), std::move(name), where});
  return {nodes.size() - 1};
}

std::int64_t tile_count(Extent extent, const Tile& op) {
  return std::max<std::int64_t>(1, extent.value() / op.size + (extent.value() % op.size != 0 ? 1 : 0));
}

std::string describe(const TraExpr& program, TraId id) {
  const TraNode& node = program[id];
  if (const auto* stored = std::get_if<StoredRelation>(&node.op)) return fmt::format("input {}", stored->name);
  const char* operation = std::visit(OperationName{}, node.op);
  if (!node.name.empty()) return fmt::format("{} {}", operation, node.name);
  std::string of;
  for (const TraId input : node.inputs) {
    const auto* stored = std::get_if<StoredRelation>(&program[input].op);
    const std::string& name = stored != nullptr ? stored->name : program[input].name;
    of += (of.empty() ? " of " : " and ") +
          (name.empty() ? "the " + std::string(std::visit(OperationName{}, program[input].op)) : name);
  }
  return fmt::format("the {}{}", operation, of);
}

}  // namespace einrel
