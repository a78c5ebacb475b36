#include "kernel/registry.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/kernel_run.h"
#include "support/typical_specs.h"

namespace einrel::test {
namespace {

TEST(Registry, NamesItsKernels) {
  std::set<std::string_view> names;
  for (const KernelInfo& kernel : all_kernels()) {
    EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name << " stands twice";
    EXPECT_FALSE(kernel.name.empty());
    EXPECT_FALSE(kernel.computes.empty()) << kernel.name;
    EXPECT_FALSE(kernel.library.empty()) << kernel.name;
  }
}

TEST(Registry, ChoosesTheLowestModelledTimeAndSaysWhatElseThereWas) {
  for (const TypicalSpec& typical : typical_specs()) {
    const Choice choice = choose_kernel(typical.spec);
    ASSERT_EQ(choice.considered.size(), all_kernels().size());
    for (std::size_t i = 0; i < choice.considered.size(); ++i) {
      const Considered& considered = choice.considered[i];
      EXPECT_EQ(considered.kernel, all_kernels()[i].name);
      if (const auto* seconds = std::get_if<double>(&considered.outcome)) {
        EXPECT_GE(*seconds, choice.offer.seconds) << typical.name << ": " << considered.kernel;
        EXPECT_TRUE(considered.kernel != choice.kernel || *seconds == choice.offer.seconds) << typical.name;
      } else {
        EXPECT_NE(considered.kernel, choice.kernel) << typical.name;
        EXPECT_NE(std::get<std::string>(considered.outcome), "") << typical.name << ": " << considered.kernel;
      }
    }
    EXPECT_EQ(defect_of(choice.offer, choice.offer.prepare()), "") << typical.name << ": " << choice.kernel;
  }
}

TEST(Registry, ChoosesEveryKernelForSomething) {
  std::map<std::string_view, int> chosen;
  for (const TypicalSpec& typical : typical_specs()) ++chosen[choose_kernel(typical.spec).kernel];
  for (const KernelInfo& kernel : all_kernels()) {
    EXPECT_GT(chosen[kernel.name], 0) << kernel.name
                                      << ": nobody would miss it; or typical_specs.h lacks what it is for";
  }
}

TEST(Registry, RefusesIndicesBeyond63Bits) {
  KernelSpec spec = typical_specs().front().spec;
  for (Label& label : spec.einsum.labels) label.extent = Extent(std::int64_t{1} << 62U);
  for (ArrayLayout& operand : spec.operands) {
    operand.shape.assign(operand.shape.size(), Extent(std::int64_t{1} << 62U));
    operand.strides.assign(operand.strides.size(), 0);
  }
  EXPECT_THROW(choose_kernel(spec), UserError);
}

}  // namespace
}  // namespace einrel::test
