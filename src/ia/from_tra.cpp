#include "ia/from_tra.h"

#include <fmt/format.h>

#include "base/error.h"
#include "tra/infer.h"
#include "tra/repartition.h"

namespace einrel {
namespace {

/// The program with every Repartition written out.
TraExpr without_repartitions(const TraExpr& program, const std::vector<RelationType>& types) {
  TraExpr result;
  result.scalars = program.scalars;
  std::vector<TraId> moved;
  for (const TraNode& node : program.nodes) {
    std::vector<TraId> inputs;
    for (const TraId input : node.inputs) inputs.push_back(moved[input.index]);
    if (const auto* op = std::get_if<Repartition>(&node.op)) {
      const RelationType& in = types[node.inputs.front().index];
      Shape bound;
      for (std::size_t d = 0; d < in.rank; ++d) {
        std::int64_t extent = 0;
        for (std::int64_t part = 0; part < op->from[d].parts; ++part) {
          Key key(in.rank, 0);
          key[d] = part;
          extent += find_chunk(in, key)->bound[d].value();
        }
        bound.emplace_back(extent);
      }
      moved.push_back(expand_repartition(result, inputs.front(), *op, bound));
    } else {
      moved.push_back(result.add(node.op, std::move(inputs), node.name, node.where));
    }
  }
  for (const TraOutput& output : program.outputs) result.output(output.name, moved[output.id.index]);
  return result;
}

/// The first position that is cut, or none.
KeyPositions first_cut(const Key& front) {
  for (std::size_t i = 0; i < front.size(); ++i) {
    if (front[i] > 1) return {i};
  }
  return {};
}

Key values_at(const Key& front, const KeyPositions& positions) { return project(front, positions); }

/// Adds the operations of Table 1 for one node.
class Table1 {
 public:
  Table1(IaStore& store, const std::vector<IaId>& inputs, const InputLayouts& layouts)
      : store_(store), inputs_(inputs), layouts_(layouts) {}

  IaId operator()(const StoredRelation& op) const {
    const Key front = frontier(relation_type(op.dtype, op.bound, op.cut));
    const auto wanted = layouts_.find(op.name);
    if (wanted != layouts_.end() && std::holds_alternative<Everywhere>(wanted->second))
      return store_.add(PlacedRelation{op, Everywhere{}});
    const KeyPositions positions = wanted == layouts_.end() ? first_cut(front) : std::get<KeyPositions>(wanted->second);
    try {
      check_positions(positions, front.size(), "the list");
    } catch (const UserError& error) {
      throw UserError(fmt::format("the layout of input {}: {}", op.name, error.what()));
    }
    return store_.add(PlacedRelation{op, Partitioned{positions, spread(values_at(front, positions), store_.sites())}});
  }
  IaId operator()(const LabelPositions& op) const { return store_.add(op); }
  IaId operator()(const Aggregate& op) const {
    return store_.add(LocalAggregate{op.group_by, op.kernel, std::nullopt}, {shuffled(op.group_by)});
  }
  IaId operator()(const Join& op) const {
    const std::size_t arity = arity_of(0) + arity_of(1) - op.keys_left.size();
    const IaId left = store_.add(Bcast{}, {inputs_[0]});
    return store_.add(LocalJoin{op.keys_left, op.keys_right, op.kernel, identity_map(arity)}, {left, inputs_[1]});
  }
  IaId operator()(const ReKey& op) const {
    return store_.add(LocalMap{op.map, identity_kernel(store_[inputs_[0]].type.relation.dtype)}, inputs_);
  }
  IaId operator()(const Filter& op) const { return store_.add(LocalFilter{op.predicate}, inputs_); }
  IaId operator()(const Transform& op) const {
    return store_.add(LocalMap{identity_map(arity_of(0)), op.kernel}, inputs_);
  }
  IaId operator()(const Tile& op) const { return store_.add(LocalMap{identity_map(arity_of(0) + 1), op}, inputs_); }
  IaId operator()(const Concat& op) const {
    const KeyPositions rest = complement({op.key_position}, arity_of(0));
    return store_.add(LocalAggregate{rest, ConcatArrays{op.key_position, op.array_dim}, std::nullopt},
                      {shuffled(rest)});
  }
  IaId operator()(const Repartition&) const { throw Bug("repartitions were written out before"); }

 private:
  std::size_t arity_of(std::size_t input) const { return store_[inputs_[input]].type.relation.key_arity; }
  IaId shuffled(const KeyPositions& positions) const {
    const Key front = frontier(store_[inputs_[0]].type.relation);
    return store_.add(Shuf{positions, spread(values_at(front, positions), store_.sites())}, {inputs_[0]});
  }
  IaStore& store_;
  const std::vector<IaId>& inputs_;
  const InputLayouts& layouts_;
};

}  // namespace

IaProgram compile_by_table_1(const TraExpr& program, std::int64_t sites, const InputLayouts& layouts) {
  if (sites < 1 || sites > most_sites)
    throw UserError(fmt::format("a program runs on 1 to {} sites, not {}", most_sites, sites));
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
