#include "tra/interpret.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "einsum/reference.h"
#include "tra/infer.h"

namespace einrel {
namespace {

/// Runs one node on the relations of its inputs.
class NodeInterpreter {
 public:
  NodeInterpreter(const TraNode& node, const std::vector<Relation>& relations, const TensorBindings& inputs,
                  const ScalarBindings& scalars)
      : node_(node), relations_(relations), inputs_(inputs), scalars_(scalars) {}

  Relation operator()(const StoredRelation& op) const { return cut_tensor(bound_input(op, inputs_), op.cut); }
  Relation operator()(const LabelPositions& op) const { return positions_relation(op); }
  Relation operator()(const Aggregate& op) const {
    Relation result;
    for (const auto& [key, array] : in()) {
      const auto [group, is_new] = result.emplace(project(key, op.group_by), array);
      if (!is_new) group->second = evaluate(op.kernel, {group->second, array}, scalars_);
    }
    return result;
  }
  Relation operator()(const Join& op) const {
    std::vector<const Relation*> relations;
    for (const TraId input : node_.inputs) relations.push_back(&relations_[input.index]);
    Relation result;
    for_each_match(relations, op.keys_left, op.keys_right, [&](const Key& key, const auto& tuples) {
      std::vector<Tensor> arrays;
      for (const auto* const tuple : tuples) arrays.push_back(tuple->second);
      result.emplace(key, evaluate(op.kernel, with_numbers(std::move(arrays), key, op.numbers), scalars_));
    });
    return result;
  }
  Relation operator()(const ReKey& op) const {
    Relation result;
    for (const auto& [key, array] : in()) result.emplace(evaluate(op.map, key), array);
    return result;
  }
  Relation operator()(const Filter& op) const {
    Relation result;
    for (const auto& [key, array] : in()) {
      if (evaluate(op.predicate, key) != 0) result.emplace(key, array);
    }
    return result;
  }
  Relation operator()(const Transform& op) const {
    Relation result;
    for (const auto& [key, array] : in())
      result.emplace(key, evaluate(op.kernel, with_numbers({array}, key, op.numbers), scalars_));
    return result;
  }
  Relation operator()(const Tile& op) const {
    Relation result;
    for (const auto& [key, array] : in()) {
      for (std::int64_t tile = 0; tile < tile_count(array.shape()[op.dim], op); ++tile) {
        Key tiled = key;
        tiled.push_back(tile);
        result.emplace(std::move(tiled), tile_of(array, op, tile));
      }
    }
    return result;
  }
  Relation operator()(const Concat& op) const {
    std::map<Key, std::vector<Tensor>> groups;  // keys ascend, so the arrays of a group are in order
    for (const auto& [key, array] : in())
      groups[project(key, complement({op.key_position}, key.size()))].push_back(array);
    Relation result;
    for (const auto& [key, arrays] : groups) result.emplace(key, concatenate(arrays, op.array_dim));
    return result;
  }
  Relation operator()(const Repartition& op) const {
    const Relation& relation = in();
    return cut_tensor(assemble(relation, relation.begin()->second.dtype(), op.to.size()), cut_of_all(op.to));
  }

 private:
  const Relation& in() const { return relations_[node_.inputs.front().index]; }
  const TraNode& node_;
  const std::vector<Relation>& relations_;
  const TensorBindings& inputs_;
  const ScalarBindings& scalars_;
};

}  // namespace

const Tensor& bound_input(const StoredRelation& op, const TensorBindings& inputs) {
  const auto found = inputs.find(op.name);
  if (found == inputs.end()) throw UserError(fmt::format("input {} is not bound to a tensor", op.name));
  const Tensor& tensor = found->second;
  if (tensor.dtype() != op.dtype || tensor.shape() != op.bound) {
    throw UserError(fmt::format("input {} is {} {}, but bound to {} {}", op.name, name_of(op.dtype),
                                to_string(op.bound), name_of(tensor.dtype()), to_string(tensor.shape())));
  }
  return tensor;
}

Tensor evaluate_by(const VertexEvaluator& evaluator, const Kernel& kernel, const std::vector<Tensor>& arguments) {
  std::vector<Shape> bounds;
  for (const Tensor& argument : arguments) bounds.push_back(argument.shape());
  std::vector<Tensor> values = arguments;
  const std::vector<Vertex> vertices = vertices_of(kernel, std::move(bounds));
  for (std::size_t i = 0; i < vertices.size(); ++i) {
    std::vector<Tensor> operands;
    for (const std::size_t read : kernel.steps[i].reads) operands.push_back(values[read]);
    values.push_back(evaluator(vertices[i], operands));
  }
  return vertices.empty() ? values.front() : values.back();
}

Tensor evaluate(const Kernel& kernel, const std::vector<Tensor>& arguments, const ScalarBindings& scalars) {
  const auto reference = [&](const Vertex& vertex, const std::vector<Tensor>& operands) {
    return evaluate_reference(vertex, operands, scalars);
  };
  return evaluate_by(reference, kernel, arguments);
}

Tensor tile_of(const Tensor& array, const Tile& op, std::int64_t tile) {
  Shape bound = array.shape();
  bound[op.dim] = Extent(std::min(op.size, bound[op.dim].value() - tile * op.size));
  std::vector<std::int64_t> begin(array.rank(), 0);
  begin[op.dim] = tile * op.size;
  return array.box(begin, std::move(bound));
}

Tensor concatenate(const std::vector<Tensor>& arrays, std::size_t dim) {
  const std::size_t rank = arrays.front().rank();
  Relation relation;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    Key key(rank, 0);
    key[dim] = static_cast<std::int64_t>(i);
    relation.emplace(std::move(key), arrays[i]);
  }
  return assemble(relation, arrays.front().dtype(), rank);
}

std::vector<Tensor> with_numbers(std::vector<Tensor> arrays, const Key& key, const KeyMap& numbers) {
  for (const std::int64_t number : numbers_of(key, numbers)) {
    Tensor scalar(DType::i64, {});
    std::memcpy(scalar.mutable_data(), &number, sizeof(number));
    arrays.push_back(std::move(scalar));
  }
  return arrays;
}

Relation positions_relation(const LabelPositions& op) {
  Tensor positions(DType::i64, {op.extent});
  for (std::int64_t i = 0; i < op.extent.value(); ++i)
    std::memcpy(positions.mutable_data() + i * static_cast<std::int64_t>(sizeof(i)), &i, sizeof(i));
  return cut_tensor(positions, cut_of_all({op.cut}));
}

std::map<std::string, Relation> interpret(const TraExpr& program, const TensorBindings& inputs,
                                          const ScalarBindings& scalars) {
  infer(program);
  std::vector<Relation> relations;
  for (const TraNode& node : program.nodes)
    relations.push_back(std::visit(NodeInterpreter(node, relations, inputs, scalars), node.op));
  std::map<std::string, Relation> outputs;
  for (const TraOutput& output : program.outputs) outputs[output.name] = relations[output.id.index];
  return outputs;
}

}  // namespace einrel
