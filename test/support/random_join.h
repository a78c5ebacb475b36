#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/random_einsum.h"

namespace einrel::test {

/// Random EinSums of two operands, Z[...] = reducer body(A[...], B[...]), of a size that blocks and vectors have:
/// contractions in any label order, convolutions, and the same with other joins and reducers; a quarter of one operand:
/// copies, transposes, reductions. `most_positions` bounds the product of all extents. Data and layouts as
/// random_einsum makes them; all bodies are of exactly rounded steps.
class JoinGenerator {
 public:
  JoinGenerator(std::uint64_t seed, std::int64_t most_positions) : random_(seed), most_positions_(most_positions) {
    result_.seed = seed;
    result_.scalars["s"] = static_cast<double>(random_.between(-3, 3));
  }

  RandomEinsum generate() && {
    specials_ = random_.chance(0.25);
    plain_ = random_.chance(0.4);
    const bool alone = random_.chance(0.25);
    make_labels(alone);
    make_operand(0);
    if (alone) {
      make_body_of_one();
    } else {
      make_operand(1);
      make_body_of_two();
    }
    finish();
    return std::move(result_);
  }

 private:
  /// Where a label stands.
  struct Role {
    bool a = false;
    bool b = false;
    bool z = false;
  };

  void make_labels(bool alone) {
    const double kept = !alone ? 0 : random_.chance(0.3) ? 1 : 0.5;
    static constexpr Role batch{true, true, true};
    static constexpr Role row{true, false, true};
    static constexpr Role column{false, true, true};
    static constexpr Role inner{true, true, false};
    const std::int64_t count = random_.between(1, 6);
    std::int64_t positions = 1;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t extent = random_extent();
      if (positions * extent > most_positions_) extent = random_.between(1, 3);
      positions *= std::max<std::int64_t>(extent, 1);
      einsum_.labels.push_back({std::string(1, static_cast<char>('a' + i)), Extent(extent)});
      if (alone) {
        roles_.push_back({random_.chance(0.95), false, random_.chance(kept)});
      } else if (random_.chance(0.9)) {
        roles_.push_back(random_.one_of(std::array{batch, row, row, column, column, inner, inner, inner}));
      } else {
        roles_.push_back({random_.chance(0.5), random_.chance(0.5), random_.chance(0.5)});
      }
      (roles_.back().z ? einsum_.output : einsum_.reduced).push_back(static_cast<std::size_t>(i));
    }
    random_.shuffle(einsum_.output);
    random_.shuffle(einsum_.reduced);
  }

  std::int64_t random_extent() {
    if (random_.chance(0.02)) return 0;
    const double kind = random_.real();
    if (kind < 0.15) return 1;
    if (kind < 0.55) return random_.between(2, 9);
    if (kind < 0.8) return random_.between(10, 40);
    return random_.one_of(std::array<std::int64_t, 13>{63, 64, 65, 96, 127, 128, 129, 255, 256, 300, 511, 512, 513});
  }

  void make_operand(std::size_t operand) {
    std::vector<Index> indices;
    for (std::size_t label = 0; label < roles_.size(); ++label) {
      if (operand == 0 ? roles_[label].a : roles_[label].b) indices.push_back({0, {{1, label}}});
    }
    random_.shuffle(indices);
    const bool pad = random_.chance(0.1);
    while (indices.size() >= 2 && random_.chance(0.1)) merge_into_window(indices);
    if (random_.chance(0.03)) indices.push_back({0, {}});
    if (!indices.empty() && random_.chance(0.03)) indices.push_back(indices.front());  // a diagonal
    Access access;
    Shape shape;
    for (Index& index : indices) {
      std::int64_t highest = index.offset;
      for (const IndexTerm& term : index.terms) {
        highest += term.coefficient * std::max<std::int64_t>(einsum_.labels[term.label].extent.value() - 1, 0);
      }
      const std::int64_t before = pad && random_.chance(0.5) ? random_.between(0, 2) : 0;
      const std::int64_t beyond = pad && random_.chance(0.5) ? random_.between(0, 2) : 0;
      index.offset -= before;
      shape.emplace_back(std::max<std::int64_t>(highest + 1 - before - beyond, 1));
      access.indices.push_back(std::move(index));
    }
    if (pad) access.pad = static_cast<double>(random_.between(-1, 1));
    const Tensor tensor = random_tensor(random_, stored_type(), shape, specials_);
    result_.operands.push_back(plain_ ? tensor.row_major() : tensor);
    einsum_.operands.push_back(std::move(access));
  }

  /// X[...,u,...,v,...] becomes X[...,stride*u + dilation*v,...].
  void merge_into_window(std::vector<Index>& indices) {
    Index window = std::move(indices.back());
    indices.pop_back();
    Index& kept = indices[static_cast<std::size_t>(random_.between(0, static_cast<std::int64_t>(indices.size()) - 1))];
    for (IndexTerm& term : window.terms) term.coefficient *= random_.between(1, 2);
    for (IndexTerm& term : kept.terms) term.coefficient *= random_.between(1, 2);
    kept.terms.insert(kept.terms.end(), window.terms.begin(), window.terms.end());
  }

  DType stored_type() {
    if (result_.operands.empty() && plain_) {
      computed_ = random_.one_of(std::array{DType::f32, DType::f32, DType::f64, DType::i32});
    } else if (result_.operands.empty()) {
      computed_ = random_.one_of(std::array{DType::f32, DType::f32, DType::f32, DType::f64, DType::f64, DType::i32,
                                            DType::i64, DType::boolean});
    }
    if (plain_) return computed_;
    if (random_.chance(0.1)) return random_.one_of(all_dtypes);
    if (computed_ == DType::f32 && random_.chance(0.4)) return random_.chance(0.5) ? DType::bf16 : DType::f16;
    return computed_;
  }

  void push(DType type, decltype(ScalarStep::op) op) { einsum_.body.steps.push_back({type, std::move(op)}); }

  void push_operand(std::size_t operand) {
    const DType stored = result_.operands[operand].dtype();
    const DType arrives = stored == DType::bf16 || stored == DType::f16 ? DType::f32 : stored;
    push(arrives, OperandValue{operand});
    if (arrives != computed_) push(computed_, Convert{});
  }

  /// Mostly A itself.
  void make_body_of_one() {
    push_operand(0);
    if (random_.chance(0.3)) push(computed_, ApplyUnary{random_.chance(0.5) ? UnaryFunction::sq : UnaryFunction::abs});
  }

  /// Mostly A * B.
  void make_body_of_two() {
    using B = BinaryFunction;
    const std::size_t first = random_.chance(0.3) ? 1 : 0;
    push_operand(first);
    push_operand(1 - first);
    const double kind = plain_ ? 0 : random_.real();
    if (kind < 0.55) {
      push(computed_, ApplyBinary{computed_ == DType::boolean ? B::minimum : B::multiply});
    } else if (kind < 0.85) {
      push(computed_, ApplyBinary{random_.one_of(std::array{B::add, B::subtract, B::maximum, B::minimum})});
      if (random_.chance(0.5)) {
        push(computed_, ApplyUnary{random_.chance(0.5) ? UnaryFunction::sq : UnaryFunction::abs});
      }
    } else {
      push(DType::boolean, ApplyBinary{random_.chance(0.5) ? B::less : B::equal});
      if (random_.chance(0.5)) push(computed_, Convert{});
    }
    if (!plain_ && random_.chance(0.1) && einsum_.body.type() == computed_) {
      push(computed_, ScalarValue{"s"});
      push(computed_, ApplyBinary{computed_ == DType::boolean ? B::maximum : B::multiply});
    }
  }

  void finish() {
    bool empty = false;
    for (const std::size_t label : einsum_.reduced) empty = empty || einsum_.labels[label].extent == Extent(0);
    if (!einsum_.reduced.empty() || random_.chance(0.1)) {
      auto reducer = Reducer::sum;
      if (!plain_ && random_.chance(0.6)) {
        reducer = static_cast<Reducer>(random_.between(0, static_cast<std::int64_t>(Reducer::logsumexp)));
      }
      const bool is_extreme = reducer == Reducer::max || reducer == Reducer::min || reducer == Reducer::argmax ||
                              reducer == Reducer::argmin;
      einsum_.reducer = empty && is_extreme ? Reducer::sum : reducer;
    }
    const DType type = einsum_.body.type();
    result_.vertex.name = "Z";
    result_.vertex.dtype = einsum_.reducer ? reduced_type(*einsum_.reducer, type) : type;
    if (!plain_ && result_.vertex.dtype == DType::f32 && random_.chance(0.2)) {
      result_.vertex.dtype = random_.chance(0.5) ? DType::bf16 : DType::f16;
    }
    for (const std::size_t label : einsum_.output) result_.vertex.bound.push_back(einsum_.labels[label].extent);
    result_.vertex.op = std::move(einsum_);
  }

  Random random_;
  std::int64_t most_positions_;
  RandomEinsum result_;
  EinSum einsum_;
  std::vector<Role> roles_;
  DType computed_ = DType::f32;
  bool specials_ = false;
  bool plain_ = false;
};

inline RandomEinsum random_join(std::uint64_t seed, std::int64_t most_positions) {
  return JoinGenerator(seed, most_positions).generate();
}

}  // namespace einrel::test
