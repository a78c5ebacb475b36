#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "kernel/registry.h"
#include "kernel/workers.h"
#include "support/kernel_run.h"
#include "support/random_join.h"
#include "support/typical_specs.h"

namespace einrel::test {
namespace {

/// Runs specs with several numbers of workers and compares the bytes of the results.
class SameBits : public testing::Test {
 protected:
  /// Of every kernel that takes it and is not too slow for it.
  void expect_same_bits(const KernelSpec& spec, const std::vector<const std::byte*>& operands,
                        const std::string& about) {
    const LoopNest nest = make_nest(spec);
    for (const KernelInfo& kernel : all_kernels()) {
      const std::variant<Offer, Refusal> answer = kernel.offer(spec, nest);
      const auto* const offer = std::get_if<Offer>(&answer);
      if (offer == nullptr || offer->seconds > most_seconds) continue;
      const PreparedKernel prepared = offer->prepare();
      for (const Stage& stage : prepared.stages) {
        most_parts_[kernel.name] = std::max(most_parts_[kernel.name], stage.parts);
      }
      most_stages_[kernel.name] = std::max(most_stages_[kernel.name], prepared.stages.size());
      std::vector<std::byte> alone;
      for (const std::unique_ptr<Workers>& workers : teams_) {
        Random noise(1);
        ResultMemory result(noise, spec.result.dtype, spec.result.shape, true);
        if (spec.accumulate) result.fill(noise, false);
        workers->run(prepared, {operands.data(), result.data()});
        const std::vector<std::byte> bytes = result.snapshot();
        if (alone.empty()) alone = bytes;
        ASSERT_TRUE(bytes == alone) << about << "\n" << kernel.name << " with " << workers->threads() << " threads";
      }
    }
  }

  std::map<std::string_view, std::int64_t> most_parts_;
  std::map<std::string_view, std::size_t> most_stages_;

 private:
  static constexpr double most_seconds = 5e-3;

  static std::vector<std::unique_ptr<Workers>> make_teams() {
    std::vector<std::unique_ptr<Workers>> teams;
    for (const std::size_t threads : {1U, 2U, 3U, 5U}) teams.push_back(std::make_unique<Workers>(threads));
    return teams;
  }
  std::vector<std::unique_ptr<Workers>> teams_ = make_teams();
};

/// Row-major, of numbers that round when they are added.
Tensor random_values(Random& random, DType dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  with_stored_type(dtype, [&]<class Stored>() {
    for (std::int64_t i = 0; i < tensor.count(); ++i) {
      const auto value =
          narrow<Stored>(is_float(dtype) ? random.real() - 0.4 : static_cast<double>(random.between(-9, 9)));
      std::memcpy(tensor.mutable_data() + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
    }
  });
  return tensor;
}

TEST_F(SameBits, OfTypicalSpecsWithAnyNumberOfThreads) {
  Random random(1);
  for (const TypicalSpec& typical : typical_specs()) {
    std::vector<Tensor> operands;
    for (const ArrayLayout& operand : typical.spec.operands) {
      operands.push_back(random_values(random, operand.dtype, operand.shape));
    }
    expect_same_bits(typical.spec, data_of(operands), typical.name);
    if (typical.spec.einsum.reducer == Reducer::sum) {
      KernelSpec accumulating = typical.spec;
      accumulating.accumulate = true;
      expect_same_bits(accumulating, data_of(operands), typical.name + ", accumulating");
    }
  }
  for (const KernelInfo& kernel : all_kernels()) EXPECT_GT(most_parts_[kernel.name], 1) << kernel.name;
  EXPECT_GT(most_stages_["blocks"], 1) << "no reduction was cut into pieces";
  EXPECT_GT(most_stages_["packed"], 2) << "no columns were packed for all parts";
}

TEST_F(SameBits, OfRandomSpecsWithAnyNumberOfThreads) {
  int large = 0;
  for (std::uint64_t seed = 0; large < 40; ++seed) {
    const RandomEinsum random = random_join(seed, 1000000);
    double positions = 1;
    for (const Label& label : random.einsum().labels) positions *= static_cast<double>(label.extent.value());
    if (positions < 200000) continue;
    ++large;
    KernelSpec spec = kernel_spec(random, row_major_layout(random.vertex.dtype, random.vertex.bound), false);
    spec.large_result = seed % 2 == 0;
    expect_same_bits(spec, data_of(random.operands), describe(random));
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(most_parts_["blocks"], 4);
}

}  // namespace
}  // namespace einrel::test
