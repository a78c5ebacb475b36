#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "support/compare.h"
#include "support/random_einsum.h"
#include "tra/infer.h"
#include "tra/interpret.h"
#include "tra/layout.h"
#include "tra/named_kernels.h"
#include "tra/tra_expr.h"

namespace einrel::test {

/// A program in the TRA whose outputs are tensors, with whole numbers for it, so that sums are exact in any order.
struct RandomTra {
  TraExpr program;
  InputLayouts layouts;
  TensorBindings inputs;
};

/// Draws operations until some fit: each is kept when the program with it can still be inferred.
class RandomTraMaker {
 public:
  explicit RandomTraMaker(std::uint64_t seed) : random_(seed), dtype_(random_.chance(0.5) ? DType::f64 : DType::i64) {}

  RandomTra make() {
    do {
      made_ = {};
      types_.clear();
      products_ = 0;
      for (std::int64_t& parts : parts_) parts = random_.between(1, 3);
      const std::int64_t inputs = random_.between(1, 3);
      for (std::int64_t i = 0; i < inputs; ++i) add_input();
      const std::int64_t operations = random_.between(2, 7);
      for (std::int64_t tries = 0, added = 0; tries < 60 && added < operations; ++tries)
        added += add_operation() ? 1 : 0;
      add_outputs();
    } while (made_.program.outputs.empty());
    return made_;
  }

 private:
  std::size_t below(std::size_t count) {
    return static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(count) - 1));
  }

  void add_input() {
    const std::string name = "X" + std::to_string(made_.inputs.size());
    Shape bound;
    TensorCut cut;
    const auto rank = static_cast<std::size_t>(random_.between(1, 2));
    for (std::size_t d = 0; d < rank; ++d) {
      const std::size_t which = below(2);
      bound.emplace_back(which == 0 ? 5 : 6);
      if (random_.chance(0.1)) continue;  // not in the key
      cut.dims.push_back(d);
      cut.cuts.push_back({random_.chance(0.1) ? random_.between(1, 3) : parts_[which], 1});
    }
    std::vector<double> values;
    for (std::int64_t i = 0; i < element_count(bound); ++i)
      values.push_back(static_cast<double>(random_.between(-3, 3)));
    made_.inputs[name] = tensor_of(dtype_, bound, values);
    if (random_.chance(0.2)) made_.layouts[name] = Everywhere{};
    if (random_.chance(0.5)) made_.layouts[name] = some_positions(cut.dims.size());
    add(StoredRelation{name, dtype_, bound, cut}, {}, name);
  }

  bool add(TraOp op, std::vector<TraId> inputs, const std::string& name = "") {
    TraExpr with = made_.program;
    with.add(std::move(op), std::move(inputs), name);
    try {
      types_ = infer(with);
    } catch (const UserError&) {
      return false;
    }
    made_.program = std::move(with);
    return true;
  }

  KeyPositions some_positions(std::size_t arity) {
    KeyPositions positions = all_positions(arity);
    random_.shuffle(positions);
    positions.resize(below(arity + 1));
    return positions;
  }

  bool add_operation() {
    const TraId in{below(made_.program.nodes.size())};
    const RelationType type = types_[in.index];
    switch (random_.between(0, 9)) {
      case 0:
      case 1: return add_aggregate(in, type);
      case 2:
      case 3:
      case 4: return add_join(in, type);
      case 5: {
        KeyMap map = identity_map(type.key_arity);
        random_.shuffle(map.outputs);
        if (random_.chance(0.3)) map.outputs.push_back(key_constant(0));
        return add(ReKey{map}, {in});
      }
      case 6: {
        if (type.key_arity == 0) return false;
        const KeyExpr limit = random_.chance(0.5) ? key_constant(1) : key_position(type.key_arity - 1);
        return add(Filter{key_call(KeyFunction::less_equal, key_position(0), limit)}, {in});
      }
      case 7: return add_transform(in, type);
      case 8:
        if (random_.chance(0.5)) return add(Tile{below(type.rank + 1), random_.between(1, 3)}, {in});
        return type.key_arity > 0 && add(Concat{below(type.key_arity), below(type.rank + 1)}, {in});
      default: return add_repartition(in, type);
    }
  }

  bool add_aggregate(TraId in, const RelationType& type) {
    const std::string fold = random_.one_of(std::array{"matAdd", "matAdd", "max", "min"});
    return add(Aggregate{some_positions(type.key_arity), kernel(fold, {type, type})}, {in});
  }

  bool add_join(TraId left, const RelationType& l) {
    const TraId right{below(made_.program.nodes.size())};
    const RelationType r = types_[right.index];
    Join join;
    if (l.rank == 2 && r.rank == 2 && random_.chance(0.5)) {
      if (products_ == 2 || l.key_arity == 0 || r.key_arity == 0) return false;
      join = {{l.key_arity - 1}, {0}, kernel("matMul", {l, r}), {}};
      if (!add(join, {left, right})) return false;
      ++products_;
      if (l.key_arity != 2 || r.key_arity != 2 || random_.chance(0.3)) return true;
      const TraId products{made_.program.nodes.size() - 1};
      const RelationType type = types_.back();
      return add(Aggregate{{0, 2}, kernel("matAdd", {type, type})}, {products});
    } else {
      if (l.rank != r.rank) return false;
      const std::string combine = random_.one_of(std::array{"matAdd", "matSub", "max", "min"});
      const KeyPositions shared = all_positions(std::min(l.key_arity, r.key_arity));
      join = {shared, shared, kernel(combine, {l, r}), {}};
    }
    return add(join, {left, right});
  }

  bool add_transform(TraId in, const RelationType& type) {
    const std::string name = random_.one_of(std::array{"relu", "negate", "transpose", "diag", "rowSum"});
    const bool wants_matrix = name == "transpose" || name == "diag";
    if ((wants_matrix && type.rank != 2) || (name == "rowSum" && type.rank == 0)) return false;
    return add(Transform{kernel(name, {type})}, {in});
  }

  bool add_repartition(TraId in, const RelationType& type) {
    if (type.key_arity != type.rank || type.chunks.empty()) return false;
    Repartition op;
    for (const std::int64_t parts : frontier(type)) {
      op.from.push_back({parts, 1});
      op.to.push_back({random_.between(1, 3), 1});
    }
    return add(op, {in});
  }

  static Kernel kernel(const std::string& name, const std::vector<RelationType>& arguments) {
    std::vector<DType> dtypes;
    std::vector<std::size_t> ranks;
    for (const RelationType& type : arguments) {
      dtypes.push_back(type.dtype);
      ranks.push_back(type.rank);
    }
    return named_kernel(name, dtypes, ranks);
  }

  /// All that are tensors, but for inputs; an input now and then.
  void add_outputs() {
    for (std::size_t n = 0; n < made_.program.nodes.size(); ++n) {
      const std::string name = "Z" + std::to_string(n);
      const bool is_input = made_.program.nodes[n].inputs.empty();
      if (why_no_tensor(types_[n], name) || (is_input && !random_.chance(0.05))) continue;
      made_.program.output(name, {n});
    }
  }

  Random random_;
  DType dtype_;
  std::array<std::int64_t, 2> parts_{};  ///< of extents 5 and 6, mostly: so that relations can be joined
  int products_ = 0;
  RandomTra made_;
  std::vector<RelationType> types_;
};

inline RandomTra random_tra(std::uint64_t seed) { return RandomTraMaker(seed).make(); }

/// What the interpreter makes of a program whose outputs are tensors, put together.
inline std::map<std::string, Tensor> interpreted(const TraExpr& program, const TensorBindings& inputs,
                                                 const ScalarBindings& scalars = {}) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [name, relation] : interpret(program, inputs, scalars)) {
    const Tensor& first = relation.begin()->second;
    tensors.emplace(name, relation.size() == 1 ? first : assemble(relation, first.dtype(), first.rank()));
  }
  return tensors;
}

}  // namespace einrel::test
