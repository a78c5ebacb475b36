#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "kernel/registry.h"
#include "support/kernel_run.h"
#include "support/random_join.h"

namespace einrel::test {
namespace {

// What kernels promise before they run: workspaces of a stated bound, whatever the extents. Nothing is run here, so
// that extents may be of any size.

constexpr std::int64_t most_elements = std::int64_t{1} << 61U;

/// Row-major or in random order; once there are more than fit, the dimensions left read the same elements.
ArrayLayout random_layout(Random& random, DType dtype, const Shape& shape) {
  ArrayLayout layout{dtype, shape, Strides(shape.size(), 0), random.chance(0.8)};
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::reverse(order.begin(), order.end());
  if (random.chance(0.3)) random.shuffle(order);
  std::int64_t distance = 1;
  for (const std::size_t d : order) {
    if (shape[d].value() > most_elements / distance) break;
    layout.strides[d] = distance;
    distance *= shape[d].value();
  }
  return layout;
}

/// The EinSum with extents of up to a million for every label, and operands of the shapes that it then reads.
KernelSpec enlarged(const RandomEinsum& small, Random& random) {
  KernelSpec spec = kernel_spec(small, {}, false);
  spec.operands.clear();
  std::int64_t positions = 1;
  for (Label& label : spec.einsum.labels) {
    std::int64_t extent = random.one_of(std::array<std::int64_t, 9>{1, 2, 7, 100, 513, 1000, 4096, 65537, 1000000});
    if (extent > most_elements / positions) extent = 1;
    positions *= extent;
    label.extent = Extent(extent);
  }
  for (std::size_t i = 0; i < spec.einsum.operands.size(); ++i) {
    Access& access = spec.einsum.operands[i];
    Shape shape;
    for (Index& index : access.indices) {
      std::int64_t low = 0;
      std::int64_t high = 0;
      for (const IndexTerm& term : index.terms) {
        (term.coefficient < 0 ? low : high) += term.coefficient * (spec.einsum.labels[term.label].extent.value() - 1);
      }
      index.offset = access.pad ? -low - random.between(0, 3) : -low;
      shape.emplace_back(high - low + 1);
    }
    spec.operands.push_back(random_layout(random, small.operands[i].dtype(), shape));
  }
  Shape bound;
  for (const std::size_t label : spec.einsum.output) bound.push_back(spec.einsum.labels[label].extent);
  spec.result = random_layout(random, small.vertex.dtype, bound);
  return spec;
}

void expect_sound_offers(const KernelSpec& spec, const std::string& about) {
  const LoopNest nest = make_nest(spec);
  for (const KernelInfo& kernel : all_kernels()) {
    const std::variant<Offer, Refusal> answer = kernel.offer(spec, nest);
    if (const auto* offer = std::get_if<Offer>(&answer)) {
      EXPECT_EQ(defect_of(*offer, offer->prepare()), "") << kernel.name << ", " << offer->path << "\n" << about;
    } else {
      EXPECT_NE(std::get<Refusal>(answer).reason, "") << kernel.name << "\n" << about;
    }
  }
}

TEST(Offers, StayInsideTheBoundOfWorkspaces) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const RandomEinsum small = seed % 3 == 0 ? random_einsum(seed) : random_join(seed, 300);
    const KernelSpec spec = enlarged(small, random);
    std::string extents = "enlarged to";
    for (const Label& label : spec.einsum.labels) extents += " " + std::to_string(label.extent.value());
    expect_sound_offers(spec, extents + ": " + describe(small));
    ASSERT_FALSE(HasFailure());
  }
}

TEST(Offers, StayInsideTheBoundForExtentsOf63Bits) {
  for (const bool reduced : {false, true}) {
    const Extent most(std::numeric_limits<std::int64_t>::max());
    KernelSpec spec;
    spec.einsum.labels = {{"i", most}};
    (reduced ? spec.einsum.reduced : spec.einsum.output) = {0};
    if (reduced) spec.einsum.reducer = Reducer::sum;
    spec.einsum.body.steps = {{DType::i64, LabelValue{0}}};
    const Shape bound = reduced ? Shape{} : Shape{most};
    spec.result = {DType::i64, bound, Strides(bound.size(), 1), true};
    expect_sound_offers(spec, reduced ? "reduced" : "output");
  }
}

}  // namespace
}  // namespace einrel::test
