#include "kernel/products/windows.h"

#include "support/rounds.h"

// clang-format off: before anything of Highway.
#include "kernel/targets.h"
// clang-format on

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "einsum/reference.h"
#include "hwy/targets.h"
#include "kernel/evaluate.h"
#include "kernel/kernels.h"
#include "support/compare.h"
#include "support/error_bound.h"
#include "support/kernel_check.h"
#include "support/kernel_run.h"
#include "support/only_target.h"
#include "support/program.h"

namespace einrel::test {
namespace {

using namespace contraction;

/// The last statement of a program with random operands.
RandomEinsum last_of(const std::string& text, Random& random, bool permuted) {
  const EinGraph graph = einrel::graph_of(text);
  RandomEinsum result;
  result.vertex = graph.vertices.back();
  for (const VertexId input : result.vertex.inputs) {
    const Tensor tensor = random_tensor(random, graph[input].dtype, graph[input].bound, false);
    result.operands.push_back(permuted ? tensor : tensor.row_major());
  }
  return result;
}

/// Runs a plan for a row-major result and compares with what the reference gives.
testing::AssertionResult gives(const WindowPlan& plan, const RandomEinsum& random, const Tensor& want,
                               const std::vector<double>& allowed) {
  Random noise(5);
  ResultMemory result(noise, random.vertex.dtype, random.vertex.bound, true);
  const PreparedKernel prepared = prepare(plan);
  const std::vector<const std::byte*> operands = data_of(random.operands);
  const std::vector<std::byte> before = result.snapshot();
  testing::AssertionResult ran = run_guarded(prepared, {operands.data(), result.data()}, noise);
  if (!ran) return ran << "\n" << describe(random);
  if (result.changes_outside(before) != 0) {
    return testing::AssertionFailure() << "it wrote outside of its result\n" << describe(random);
  }
  testing::AssertionResult same = agree(result.tensor(), want, allowed);
  return same ? same : same << "\n" << describe(random);
}

std::variant<WindowPlan, std::string> plan_of(const RandomEinsum& random, const WindowSizes& sizes) {
  const KernelSpec spec = kernel_spec(random, row_major_layout(random.vertex.dtype, random.vertex.bound), false);
  return plan_windows(std::get<Product>(as_product(spec, make_nest(spec))), sizes);
}

/// "x=13 "
std::string extent(const std::string& label, std::int64_t value) { return label + "=" + std::to_string(value) + " "; }

/// "2*y+1*p-1"
std::string window(const std::string& outer, std::int64_t stride, const std::string& inner, std::int64_t dilation,
                   std::int64_t offset) {
  const auto with_sign = [](std::int64_t value) { return (value < 0 ? "" : "+") + std::to_string(value); };
  return std::to_string(stride) + "*" + outer + with_sign(dilation) + "*" + inner + with_sign(offset);
}

/// One dimension of an image and of a filter: where windows begin, and how much of the image they cover.
struct Dimension {
  std::int64_t results = 1;
  std::int64_t taps = 1;
  std::int64_t offset = 0;
  std::int64_t extent = 1;
};

/// Padded or not; a negative dilation walks backwards.
Dimension random_dimension(Random& random, std::int64_t stride, std::int64_t dilation, bool pad) {
  static constexpr std::array<std::int64_t, 8> widths{1, 5, 6, 7, 13, 14, 15, 29};
  Dimension dimension{random.one_of(widths), random.between(2, 4), 0, 1};
  const std::int64_t taps = std::abs(dilation) * (dimension.taps - 1);
  dimension.offset = dilation < 0 ? taps : 0;
  dimension.extent = stride * (dimension.results - 1) + taps + 1;
  if (pad) {
    dimension.offset -= random.between(0, 2);
    dimension.extent = std::max<std::int64_t>(dimension.extent - random.between(0, 4), 1);
  }
  return dimension;
}

/// "n,c,y,x", in any order.
std::string shuffled(std::vector<std::string> labels, Random& random) {
  if (random.chance(0.5)) random.shuffle(labels);
  std::string text;
  for (const std::string& label : labels) text += (text.empty() ? "" : ",") + label;
  return text;
}

/// A convolution of random extents, strides, dilations, padding and order of indices, or its gradient with respect to
/// the filter.
std::string random_convolution(Random& random) {
  // The reference takes a while where both are large.
  const bool wide = random.chance(0.5);
  static constexpr std::array<std::int64_t, 6> few{1, 1, 2, 3, 4, 5};
  static constexpr std::array<std::int64_t, 6> many{8, 15, 16, 17, 32, 33};
  const std::int64_t stride = random.between(1, 3);
  const std::int64_t dilation = random.one_of(std::array{1, 1, 1, 2, -1, -2});
  const bool pad = random.chance(0.6);
  const Dimension y = random_dimension(random, stride, dilation, pad);
  const Dimension x = random_dimension(random, stride, dilation, pad);
  const std::string dtype = random.one_of(std::array{" : f32", " : f32", " : f64", " : bf16", " : f16"});
  std::string text = "dims " + extent("n", random.between(1, 2)) + extent("c", random.one_of(wide ? few : many)) +
                     extent("o", random.one_of(wide ? many : few)) + extent("y", y.results) + extent("x", x.results) +
                     extent("p", y.taps) + extent("q", x.taps) + extent("v", y.extent) + extent("u", x.extent);
  const std::string read = "X[n,c," + window("y", stride, "p", dilation, y.offset) + "," +
                           window("x", stride, "q", dilation, x.offset) + "]";
  const std::string image = pad ? "pad(" + read + ", -1)" : read;
  text += "\ninput X[n,c,v,u]" + dtype;
  const bool gradient = random.chance(0.3);
  const std::string results = shuffled({"n", "o", "y", "x"}, random);
  const std::string filter = shuffled({"o", "c", "p", "q"}, random);
  text += "\ninput Y[" + (gradient ? results : filter) + "]" + dtype;
  text += "\nZ[" + (gradient ? filter : results) + "] = sum[" + (gradient ? "n,y,x" : "c,p,q") + "] 0.5 * " + image +
          " * Y[" + (gradient ? results : filter) + "]\n";
  return text;
}

/// Parts as small as they can be, and ones that hold everything.
constexpr std::array<WindowSizes, 2> all_sizes{{{64, 16 << 10, 128 << 10, 0}, {3072, 2 << 20, 7 << 20, 1}}};

TEST(Windows, AgreeWithTheReferenceOnEveryInstructionSet) {
  std::size_t cut = 0;
  std::array<std::size_t, 3> stores{};
  for (int seed = 0; seed < rounds(80); ++seed) {
    Random random(static_cast<std::uint64_t>(seed));
    const RandomEinsum convolution = last_of(random_convolution(random), random, random.chance(0.3));
    const Tensor want = evaluate_reference(convolution.vertex, convolution.operands, convolution.scalars);
    const std::vector<double> allowed = allowed_errors(convolution, want, DType::f32);
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      const OnlyTarget only(target);
      for (const WindowSizes& sizes : all_sizes) {
        const std::variant<WindowPlan, std::string> plan = plan_of(convolution, sizes);
        const auto* const found = std::get_if<WindowPlan>(&plan);
        if (found == nullptr) continue;
        cut += parts(*found) > 1 && found->inner_block < found->inner ? 1U : 0U;
        ++stores.at(static_cast<std::size_t>(store_of(*found)));
        const double modelled = image_size(found->axes, found->part_rows, found->product.inner);
        ASSERT_EQ(static_cast<double>(found->shape.size), modelled) << "more would be written than the workspace has";
        ASSERT_TRUE(gives(*found, convolution, want, allowed)) << hwy::TargetName(target);
      }
    }
  }
  EXPECT_TRUE(came_up(cut, 20)) << cut;
  for (const std::size_t count : stores) EXPECT_TRUE(came_up(count, 2)) << count;
}

TEST(Windows, AreRefusedWhereTheyDoNotOverlap) {
  Random random(1);
  const auto reason = [&](const std::string& text) {
    return std::get<std::string>(plan_of(last_of(text, random, false), {}));
  };
  EXPECT_EQ(reason("dims i=64 j=64 k=64\ninput A[i,k], B[k,j]\nZ[i,j] = sum[k] A[i,k] * B[k,j]\n"),
            "it reads no windows that overlap");
  EXPECT_EQ(reason("dims c=8 o=8 y=20 x=20 p=2 q=2 v=40 u=40\ninput X[c,v,u], W[o,c,p,q]\n"
                   "Z[o,y,x] = sum[c,p,q] X[c,2*y+p,2*x+q] * W[o,c,p,q]\n"),
            "it reads no windows that overlap");
  EXPECT_EQ(reason("dims i=64 j=64 k=64 l=130\ninput A[l], B[k,j]\nZ[i,j] = max[k] A[i+k] * B[k,j]\n"),
            "it is no sum of a product of two floats");
}

TEST(Windows, CopyEachElementAboutOnce) {
  Random random(1);
  const RandomEinsum convolution = last_of(
      "dims n=1 c=3 o=64 y=55 x=55 p=11 q=11 v=224 u=224\ninput X[n,c,v,u], W[o,c,p,q]\n"
      "Z[n,o,y,x] = sum[c,p,q] pad(X[n,c,4*y+p-2,4*x+q-2], 0) * W[o,c,p,q]\n",
      random, false);
  const WindowPlan plan = std::get<WindowPlan>(plan_of(convolution, {3072, 2 << 20, 7 << 20, 1}));
  EXPECT_EQ(parts(plan), 1);
  std::vector<std::int64_t> extents = plan.shape.extents;
  std::sort(extents.begin(), extents.end());
  EXPECT_EQ(extents.back(), 227);
  EXPECT_LT(plan.shape.size, 1.1 * 3 * 227 * 227);
}

/// Diagonals of a padded operand: two coordinates move together and are checked apart.
TEST(Windows, ReadsPaddedDiagonals) {
  for (const char* const window : {"X[i+k-2,i]", "X[i+k-2,i+k-1]", "X[i+k-2,i+l-1]"}) {
    Random random(3);
    const std::string text = "dims i=30 o=17 k=5 l=3 v=30\ninput X[v,v], W[o,k,l]\nZ[i,o] = sum[k,l] pad(" +
                             std::string(window) + ", 0) * W[o,k,l]\n";
    const RandomEinsum einsum = last_of(text, random, false);
    std::map<std::string_view, int> taken;
    EXPECT_TRUE(KernelCheck(einsum, {}).run(taken)) << window;
  }
}

TEST(Windows, SaysWhyItRefuses) {
  const auto reason = [](const std::string& text) {
    const EinGraph graph = einrel::graph_of(text);
    const auto& vertex = graph.vertices.back();
    std::vector<ArrayLayout> operands;
    for (const VertexId input : vertex.inputs) operands.push_back(row_major_layout(vertex.dtype, graph[input].bound));
    const KernelSpec spec = *spec_of(vertex, operands, {});
    const auto answer = windows_kernel().offer(spec, make_nest(spec));
    return std::holds_alternative<Refusal>(answer) ? std::get<Refusal>(answer).reason : "";
  };
  EXPECT_EQ(reason("dims y=200 z=300 u=499 o=64\ninput X[u], W[o]\nZ[y,z,o] = X[y+z] * W[o]\n"), "it reduces nothing");
  EXPECT_EQ(reason("dims y=64 k=270000 u=270063 o=64\ninput X[u], W[o,k]\nZ[y,o] = sum[k] X[y+k] * W[o,k]\n"),
            "it reduces too many positions");
}

}  // namespace
}  // namespace einrel::test
