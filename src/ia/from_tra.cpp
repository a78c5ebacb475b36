#include "ia/from_tra.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "tra/infer.h"
#include "tra/repartition.h"

namespace einrel {
namespace {

/// The program with every Repartition written out that makes no chunks which overlap.
TraExpr without_repartitions(const TraExpr& program, const std::vector<RelationType>& types) {
  TraExpr result;
  result.scalars = program.scalars;
  std::vector<TraId> moved;
  for (const TraNode& node : program.nodes) {
    std::vector<TraId> inputs;
    for (const TraId input : node.inputs) inputs.push_back(moved[input.index]);
    if (const auto* op = std::get_if<Repartition>(&node.op); op != nullptr && !has_windows(op->to)) {
      moved.push_back(expand_repartition(result, inputs.front(), *op, tensor_bound(types[node.inputs.front().index])));
    } else {
      moved.push_back(result.add(node.op, std::move(inputs), node.name, node.where));
    }
  }
  for (const TraOutput& output : program.outputs) result.output(output.name, moved[output.id.index]);
  return result;
}

/// Adds the operations of Table 1 for one node.
class Table1 {
 public:
  Table1(IaStore& store, const std::vector<IaId>& inputs, const InputLayouts& layouts)
      : store_(store), inputs_(inputs), layouts_(layouts) {}

  IaId operator()(const StoredRelation& op) const {
    const auto wanted = layouts_.find(op.name);
    const std::optional<InputLayout> layout = wanted == layouts_.end() ? std::nullopt : std::optional(wanted->second);
    return store_.add(placed(op, layout, store_.sites()));
  }
  IaId operator()(const LabelPositions& op) const { return store_.add(op); }
  IaId operator()(const Aggregate& op) const {
    return store_.add(LocalAggregate{op.group_by, op.kernel, std::nullopt}, {shuffled(op.group_by)});
  }
  IaId operator()(const Join& op) const {
    std::vector<IaId> inputs;
    std::size_t arity = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      arity += arity_of(i);
      inputs.push_back(i + 1 < inputs_.size() ? store_.add(Bcast{}, {inputs_[i]}) : inputs_[i]);
    }
    return store_.add(
        LocalJoin{op.keys_left, op.keys_right, op.kernel, identity_map(arity - op.keys_left.size()), op.numbers},
        std::move(inputs));
  }
  IaId operator()(const ReKey& op) const {
    return store_.add(LocalMap{op.map, identity_kernel(store_[inputs_[0]].type.relation.dtype)}, inputs_);
  }
  IaId operator()(const Filter& op) const { return store_.add(LocalFilter{op.predicate}, inputs_); }
  IaId operator()(const Transform& op) const {
    return store_.add(LocalMap{identity_map(arity_of(0)), op.kernel, op.numbers}, inputs_);
  }
  IaId operator()(const Tile& op) const { return store_.add(LocalMap{identity_map(arity_of(0) + 1), op}, inputs_); }
  IaId operator()(const Concat& op) const {
    const KeyPositions rest = complement({op.key_position}, arity_of(0));
    return store_.add(LocalAggregate{rest, ConcatArrays{op.key_position, op.array_dim}, std::nullopt},
                      {shuffled(rest)});
  }
  IaId operator()(const Repartition& op) const {
    std::vector<std::int64_t> parts;
    for (const DimensionCut& cut : op.to) parts.push_back(cut.parts);
    return store_.add(Repart{op.from, op.to, spread(parts, store_.sites())}, inputs_);
  }

 private:
  std::size_t arity_of(std::size_t input) const { return store_[inputs_[input]].type.relation.key_arity; }
  IaId shuffled(const KeyPositions& positions) const {
    const Key front = frontier(store_[inputs_[0]].type.relation);
    return store_.add(Shuf{positions, spread(project(front, positions), store_.sites())}, {inputs_[0]});
  }
  IaStore& store_;
  const std::vector<IaId>& inputs_;
  const InputLayouts& layouts_;
};

}  // namespace

PlacedRelation placed(const StoredRelation& stored, const std::optional<InputLayout>& layout, std::int64_t sites) {
  if (layout && std::holds_alternative<Everywhere>(*layout)) return {stored, Everywhere{}};
  std::vector<std::int64_t> parts;
  for (const DimensionCut& cut : stored.cut.cuts) parts.push_back(cut.parts);
  const auto first_cut = std::find_if(parts.begin(), parts.end(), [](std::int64_t n) { return n > 1; });
  KeyPositions positions;
  if (first_cut != parts.end()) positions = {static_cast<std::size_t>(first_cut - parts.begin())};
  if (layout) positions = std::get<KeyPositions>(*layout);
  try {
    check_positions(positions, parts.size(), "the list");
  } catch (const UserError& error) {
    throw UserError(fmt::format("the layout of input {}: {}", stored.name, error.what()));
  }
  return {stored, Partitioned{positions, spread(project(parts, positions), sites)}};
}

void check_sites(std::int64_t sites) {
  if (sites < 1 || sites > most_sites)
    throw UserError(fmt::format("a program runs on 1 to {} sites, not {}", most_sites, sites));
}

IaProgram compile_by_table_1(const TraExpr& program, std::int64_t sites, const InputLayouts& layouts) {
  check_sites(sites);
  const TraExpr written_out = without_repartitions(program, infer(program));
  IaProgram result{IaStore(sites), {}, program.scalars};
  std::vector<IaId> ids;
  for (const TraNode& node : written_out.nodes) {
    std::vector<IaId> inputs;
    for (const TraId input : node.inputs) inputs.push_back(ids[input.index]);
    ids.push_back(std::visit(Table1(result.store, inputs, layouts), node.op));
    const std::string& fault = result.store[ids.back()].fault;
    if (!fault.empty()) throw UserError(fmt::format("{}: {}", node.name.empty() ? "an operation" : node.name, fault));
  }
  for (const TraOutput& output : written_out.outputs) result.plan.push_back({output.name, ids[output.id.index]});
  return result;
}

}  // namespace einrel
