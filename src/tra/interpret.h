#pragma once

#include <functional>
#include <map>
#include <string>

#include "tra/tra_expr.h"

namespace einrel {

/// Runs a program tuple by tuple with the reference kernels: slow and obvious, the oracle of everything below.
/// `inputs` binds every StoredRelation by name (throws UserError when one is missing or has another type).
/// One relation per output, by name.
std::map<std::string, Relation> interpret(const TraExpr& program, const TensorBindings& inputs,
                                          const ScalarBindings& scalars);

/// What computes one vertex from its operands.
using VertexEvaluator = std::function<Tensor(const Vertex& vertex, const std::vector<Tensor>& operands)>;
/// One call of a kernel, step by step. Throws as vertices_of and the evaluator do.
Tensor evaluate_by(const VertexEvaluator& evaluator, const Kernel& kernel, const std::vector<Tensor>& arguments);
/// The same by the reference evaluator.
Tensor evaluate(const Kernel& kernel, const std::vector<Tensor>& arguments, const ScalarBindings& scalars);

// The operations on data that the interpreter of the IA shares.
/// The tensor that an input is bound to; throws UserError when there is none or it has another type or bound.
const Tensor& bound_input(const StoredRelation& op, const TensorBindings& inputs);
/// Tile number `tile` of an array, as a view.
Tensor tile_of(const Tensor& array, const Tile& op, std::int64_t tile);
/// The arrays one after the other along `dim`.
Tensor concatenate(const std::vector<Tensor>& arrays, std::size_t dim);
/// What a kernel is called with: arrays, and numbers of a key.
std::vector<Tensor> with_numbers(std::vector<Tensor> arrays, const Key& key, const KeyMap& numbers);
/// The tuples of a LabelPositions.
Relation positions_relation(const LabelPositions& op);

}  // namespace einrel
