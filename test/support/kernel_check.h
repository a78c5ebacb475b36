#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "einsum/reference.h"
#include "kernel/registry.h"
#include "support/compare.h"
#include "support/error_bound.h"
#include "support/kernel_run.h"
#include "support/random_einsum.h"

namespace einrel::test {

/// The type that a kernel adds and multiplies the values of f32 bodies in.
inline DType reduces_in(std::string_view kernel) {
  return kernel == "blocks" || kernel == "select" ? DType::f64 : DType::f32;
}

/// A row-major tensor of these values, rounded or wrapped to the dtype.
template <class Number>
Tensor narrowed(DType dtype, const Shape& shape, const std::vector<Number>& values) {
  Tensor tensor(dtype, shape);
  with_stored_type(dtype, [&]<class Stored>() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto value = narrow<Stored>(values[i]);
      std::memcpy(tensor.mutable_data() + i * sizeof value, &value, sizeof value);
    }
  });
  return tensor;
}

/// onto (+) the reference.
inline Tensor reference_onto(const RandomEinsum& random, const Tensor& onto) {
  const BinaryFunction function = *continuation(random.einsum().reducer);
  const DType dtype = random.vertex.dtype;
  Vertex vertex = random.vertex;
  vertex.dtype = is_float(dtype) ? DType::f64 : DType::i64;
  const Tensor reduced = evaluate_reference(vertex, random.operands, random.scalars);
  const auto combined = [&](auto values, const auto& more) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = apply(function, values[i], more[i]);
    return narrowed(dtype, vertex.bound, values);
  };
  return is_float(dtype) ? combined(values_of(onto), values_of(reduced))
                         : combined(integers_of(onto), integers_of(reduced));
}

/// One random EinSum, offered to every kernel with a result of one layout; those that take it are run and compared
/// with the reference.
class KernelCheck {
 public:
  struct Result {
    bool row_major = true;
    bool accumulate = false;  ///< onto random values
    bool large = false;       ///< the spec says that it stays in no cache
  };

  /// `random` has no empty label and must outlive this.
  KernelCheck(const RandomEinsum& random, Result result)
      : random_(random), result_(result), spec_(kernel_spec(random, new_result().layout(), result.accumulate)) {
    spec_.large_result = result.large;
    if (result.accumulate) {
      const Tensor onto = new_result().tensor();
      want_ = reference_onto(random, onto);
      if (is_float(onto.dtype())) onto_ = values_of(onto);
    } else {
      want_ = evaluate_reference(random.vertex, random.operands, random.scalars);
    }
  }

  /// Counts in `taken` the kernels that took it.
  testing::AssertionResult run(std::map<std::string_view, int>& taken) {
    const LoopNest nest = make_nest(spec_);
    for (const KernelInfo& kernel : all_kernels()) {
      const std::variant<Offer, Refusal> answer = kernel.offer(spec_, nest);
      if (const auto* refusal = std::get_if<Refusal>(&answer)) {
        if (refusal->reason.empty()) return failure(kernel) << "it does not say why it refuses";
        continue;
      }
      ++taken[kernel.name];
      const auto& offer = std::get<Offer>(answer);
      const testing::AssertionResult ran = run(kernel, offer);
      if (!ran) return failure(kernel) << offer.path << ": " << ran.message();
    }
    return testing::AssertionSuccess();
  }

 private:
  /// The same noise and values every time.
  ResultMemory new_result() const {
    Random random(random_.seed + 1);
    ResultMemory memory(random, random_.vertex.dtype, random_.vertex.bound, result_.row_major);
    const std::optional<Reducer> reducer = random_.einsum().reducer;
    if (result_.accumulate) memory.fill(random, reducer == Reducer::max || reducer == Reducer::min);
    return memory;
  }

  testing::AssertionResult run(const KernelInfo& kernel, const Offer& offer) {
    const PreparedKernel prepared = offer.prepare();
    if (const std::string defect = defect_of(offer, prepared); !defect.empty()) {
      return testing::AssertionFailure() << defect;
    }
    ResultMemory result = new_result();
    const std::vector<std::byte> before = result.snapshot();
    const std::vector<const std::byte*> operands = data_of(random_.operands);
    Random order(random_.seed);
    const testing::AssertionResult ran = run_guarded(prepared, {operands.data(), result.data()}, order);
    if (!ran) return ran;
    if (const std::int64_t changes = result.changes_outside(before); changes != 0) {
      return testing::AssertionFailure() << "it changed " << changes << " bytes outside of the result";
    }
    return agree(result.tensor(), want_, allowed(reduces_in(kernel.name)));
  }

  const std::vector<double>& allowed(DType reduces_in) {
    std::vector<double>& known = allowed_[reduces_in];
    if (known.empty()) known = allowed_errors(random_, want_, reduces_in, onto_);
    return known;
  }

  testing::AssertionResult failure(const KernelInfo& kernel) const {
    std::string strides;
    for (const std::int64_t stride : spec_.result.strides) strides += " " + std::to_string(stride);
    return testing::AssertionFailure() << describe(random_) << "  Z strides" << strides
                                       << (spec_.result.aligned ? "" : " misaligned")
                                       << (result_.accumulate ? ", accumulating" : "")
                                       << (result_.large ? ", large" : "") << "\n  kernel \"" << kernel.name << "\": ";
  }

  const RandomEinsum& random_;
  Result result_;
  KernelSpec spec_;
  Tensor want_;
  std::vector<double> onto_;
  std::map<DType, std::vector<double>> allowed_;
};

}  // namespace einrel::test
