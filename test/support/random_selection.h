#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "einsum/check/typing.h"
#include "support/random_einsum.h"

namespace einrel::test {

/// A random EinSum that selects labels (einsum/graph/selection.h): one or two labels, in the output or reduced, at
/// elements, at forms of other labels, or at both, sometimes beyond their extents; conditions as where() or as factors.
/// What is selected is one operand, windows and padding included, or a number.
class SelectionGenerator {
 public:
  SelectionGenerator(std::uint64_t seed, std::int64_t most_positions) : random_(seed), most_positions_(most_positions) {
    result_.seed = seed;
    result_.scalars["s"] = 0;
  }

  RandomEinsum generate() && {
    const std::int64_t selected = random_.between(1, 2);
    const std::int64_t others = random_.between(1, 4);
    for (std::int64_t l = 0; l < selected + others; ++l) add_label();
    make_output();
    type_ = random_.one_of(std::array{DType::f32, DType::f64, DType::i32, DType::i64});
    const bool as_factors = random_.chance(0.3);
    std::vector<ScalarStep>& steps = einsum_.body.steps;
    std::vector<ScalarStep> value = make_value(static_cast<std::size_t>(selected));
    for (std::int64_t l = 0; l < selected; ++l) {
      std::vector<ScalarStep> condition =
          make_condition(static_cast<std::size_t>(l), static_cast<std::size_t>(selected));
      steps.insert(steps.end(), condition.begin(), condition.end());
      if (as_factors) push(type_, Convert{});
    }
    steps.insert(steps.end(), value.begin(), value.end());
    for (std::int64_t l = 0; l < selected; ++l) {
      if (as_factors) {
        push(type_, ApplyBinary{BinaryFunction::multiply});
      } else {
        steps.push_back(is_float(type_) ? ScalarStep{type_, Constant{0.0}}
                                        : ScalarStep{type_, Constant{std::int64_t{0}}});
        push(type_, ApplyWhere{});
      }
    }
    finish();
    return std::move(result_);
  }

 private:
  void push(DType type, decltype(ScalarStep::op) op) { einsum_.body.steps.push_back({type, std::move(op)}); }
  std::int64_t extent(std::size_t label) const { return einsum_.labels[label].extent.value(); }

  void add_label() {
    std::int64_t size = random_.chance(0.3) ? random_.between(5, 40) : random_.between(1, 6);
    if (positions_ * size > most_positions_) size = 1;
    positions_ *= size;
    einsum_.labels.push_back({std::string(1, static_cast<char>('a' + einsum_.labels.size())), Extent(size)});
  }

  void make_output() {
    for (std::size_t label = 0; label < einsum_.labels.size(); ++label)
      (random_.chance(0.6) ? einsum_.output : einsum_.reduced).push_back(label);
    random_.shuffle(einsum_.output);
    random_.shuffle(einsum_.reduced);
    einsum_.reducer = Reducer::sum;
    if (einsum_.reduced.empty()) {
      einsum_.reduced.push_back(einsum_.output.back());
      einsum_.output.pop_back();
    }
  }

  std::size_t other_label(std::size_t selected) {
    return static_cast<std::size_t>(
        random_.between(static_cast<std::int64_t>(selected), static_cast<std::int64_t>(einsum_.labels.size()) - 1));
  }

  /// label == a form of labels that are not selected, of elements over them, and of a number.
  std::vector<ScalarStep> make_condition(std::size_t label, std::size_t selected) {
    std::vector<ScalarStep> form{{DType::i64, Constant{random_.chance(0.5) ? 0 : random_.between(-2, 2)}}};
    const auto add = [&](std::vector<ScalarStep> steps, BinaryFunction function) {
      form.insert(form.end(), steps.begin(), steps.end());
      form.push_back({DType::i64, ApplyBinary{function}});
    };
    const bool has_element = random_.chance(0.7);
    if (has_element) add(make_element(label, selected), BinaryFunction::add);
    if (!has_element || random_.chance(0.3)) {
      const std::int64_t factor = random_.one_of(std::array<std::int64_t, 4>{1, 1, 2, 3});
      add({{DType::i64, Constant{factor}},
           {DType::i64, LabelValue{other_label(selected)}},
           {DType::i64, ApplyBinary{BinaryFunction::multiply}}},
          random_.chance(0.8) ? BinaryFunction::add : BinaryFunction::subtract);
    }
    const std::vector<ScalarStep> value{{DType::i64, LabelValue{label}}};
    std::vector<ScalarStep> both = random_.chance(0.5) ? value : form;
    const std::vector<ScalarStep>& second = both == value ? form : value;
    both.insert(both.end(), second.begin(), second.end());
    both.push_back({DType::boolean, ApplyBinary{BinaryFunction::equal}});
    return both;
  }

  /// An element over some of the labels that are not selected, mostly a position of `label`.
  std::vector<ScalarStep> make_element(std::size_t label, std::size_t selected) {
    Access access;
    Shape shape;
    for (std::size_t other = selected; other < einsum_.labels.size(); ++other) {
      if (random_.chance(0.5)) continue;
      access.indices.push_back({0, {{1, other}}});
      shape.push_back(einsum_.labels[other].extent);
    }
    const DType type = random_.chance(0.5) ? DType::i32 : DType::i64;
    Tensor tensor(type, shape);
    with_stored_type(type, [&]<class Stored>() {
      for (std::int64_t i = 0; i < element_count(shape); ++i) {
        const auto position = narrow<Stored>(random_.between(-1, extent(label)));
        std::memcpy(tensor.mutable_data() + i * static_cast<std::int64_t>(sizeof(Stored)), &position, sizeof(Stored));
      }
    });
    std::vector<ScalarStep> steps{{type, OperandValue{einsum_.operands.size()}}};
    if (type != DType::i64) steps.push_back({DType::i64, Convert{}});
    einsum_.operands.push_back(std::move(access));
    result_.operands.push_back(std::move(tensor));
    return steps;
  }

  std::vector<ScalarStep> make_value(std::size_t selected) {
    if (random_.chance(0.15)) {
      return {{type_, is_float(type_) ? Constant{0.5} : Constant{std::int64_t{3}}}};
    }
    Access access;
    Shape shape;
    std::vector<std::size_t> labels;
    for (std::size_t label = 0; label < einsum_.labels.size(); ++label) {
      if (random_.chance(label < selected ? 0.5 : 0.7)) labels.push_back(label);
    }
    random_.shuffle(labels);
    const bool pads = random_.chance(0.2);
    if (pads) access.pad = 0;
    for (const std::size_t label : labels) {
      Index index{0, {{1, label}}};
      std::int64_t size = extent(label);
      if (random_.chance(0.15)) {
        const std::size_t second = other_label(selected);
        index.terms.push_back({2, second});
        size += 2 * (extent(second) - 1);
      }
      if (pads && random_.chance(0.5)) index.offset = random_.between(-2, 2);
      if (size > 200) return make_value(selected);
      access.indices.push_back(std::move(index));
      shape.emplace_back(size);
    }
    const bool is_narrow = type_ == DType::f32 && random_.chance(0.3);
    stored_ = is_narrow ? random_.one_of(std::array{DType::bf16, DType::f16}) : type_;
    const std::size_t operand = einsum_.operands.size();
    einsum_.operands.push_back(std::move(access));
    result_.operands.push_back(random_tensor(random_, stored_, shape, false));
    return {{type_, OperandValue{operand}}};
  }

  void finish() {
    result_.vertex.name = "Z";
    result_.vertex.dtype = compute_type(stored_) == type_ && random_.chance(0.5) ? stored_ : type_;
    for (const std::size_t label : einsum_.output) result_.vertex.bound.push_back(einsum_.labels[label].extent);
    result_.vertex.op = einsum_;
  }

  Random random_;
  std::int64_t most_positions_;
  std::int64_t positions_ = 1;
  RandomEinsum result_;
  EinSum einsum_;
  DType type_ = DType::f32;
  DType stored_ = DType::f32;
};

inline RandomEinsum random_selection(std::uint64_t seed, std::int64_t most_positions) {
  return SelectionGenerator(seed, most_positions).generate();
}

}  // namespace einrel::test
