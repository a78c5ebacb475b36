#include "tra/signature.h"

#include <algorithm>

namespace einrel {
namespace {

class Visitor {
 public:
  explicit Visitor(const std::vector<Signature>& inputs) : inputs_(inputs) {}

  Signature operator()(const StoredRelation& op) const { return {op.cut.dims.size(), op.bound.size(), op.dtype}; }
  Signature operator()(const LabelPositions&) const { return {1, 1, DType::i64}; }
  Signature operator()(const Aggregate& op) const { return {op.group_by.size(), in().rank, in().dtype}; }
  Signature operator()(const Join& op) const {
    std::size_t arity = 0;
    std::vector<std::size_t> ranks;
    for (const Signature& input : inputs_) {
      arity += input.key_arity;
      ranks.push_back(input.rank);
    }
    return {arity - std::min(arity, op.keys_right.size()), result_rank(op.kernel, ranks), result_dtype(op.kernel)};
  }
  Signature operator()(const ReKey& op) const { return {op.map.outputs.size(), in().rank, in().dtype}; }
  Signature operator()(const Filter&) const { return in(); }
  Signature operator()(const Transform& op) const {
    return {in().key_arity, result_rank(op.kernel, {in().rank}), result_dtype(op.kernel)};
  }
  Signature operator()(const Tile&) const { return {in().key_arity + 1, in().rank, in().dtype}; }
  Signature operator()(const Concat&) const {
    return {in().key_arity == 0 ? 0 : in().key_arity - 1, in().rank, in().dtype};
  }
  Signature operator()(const Repartition&) const { return in(); }

 private:
  const Signature& in() const { return inputs_[0]; }
  const std::vector<Signature>& inputs_;
};

}  // namespace

std::vector<Signature> with_numbers(std::vector<Signature> arrays, const KeyMap& numbers) {
  arrays.resize(arrays.size() + numbers.outputs.size(), {0, 0, DType::i64});
  return arrays;
}

Signature signature_of(const TraOp& op, const std::vector<Signature>& inputs) {
  return std::visit(Visitor(inputs), op);
}

}  // namespace einrel
