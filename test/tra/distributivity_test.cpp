#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support/compare.h"
#include "support/random_einsum.h"
#include "tra/interpret.h"
#include "tra/kernel.h"
#include "tra/named_kernels.h"
#include "tra/written_kernel.h"

namespace einrel::test {
namespace {

/// Kernels of one square matrix, by their bodies.
std::map<std::string, Kernel> outer_kernels(DType dtype) {
  std::map<std::string, Kernel> kernels{{"id", identity_kernel(dtype)}};
  for (const char* name : {"relu", "step", "negate", "rowSum", "diag", "transpose"})
    kernels[name] = named_kernel(name, {dtype}, {2});
  const std::vector<std::string> written{"rowMax(A[i,j]) -> [i] = max[j] A[i,j]",
                                         "rowMin(A[i,j]) -> [i] = min[j] A[i,j]",
                                         "twice(A[i,j]) -> [i,j] = 2 * A[i,j]",
                                         "minus_three_times(A[i,j]) -> [i,j] = A[i,j] * (-3)",
                                         "absolute(A[i,j]) -> [i,j] = abs(A[i,j])",
                                         "square(A[i,j]) -> [i,j] = sq(A[i,j])",
                                         "plus_one(A[i,j]) -> [i,j] = A[i,j] + 1",
                                         "down(A[i,j]) -> [i,j] = floor(A[i,j])",
                                         "sum_of_squares(A[i,j]) -> [i] = sum[j] sq(A[i,j])",
                                         "product(A[i,j]) -> [i] = prod[j] A[i,j]"};
  for (const std::string& statement : written) {
    Kernel kernel = define(statement, {dtype});
    kernels[kernel.name] = std::move(kernel);
  }
  return kernels;
}

constexpr std::array inner_names{"matAdd", "matSub", "elemMul", "max", "min"};

/// Whether outer(inner(x, y)) = inner'(outer(x), outer(y)) for some arrays of small integers, NaN and infinities
/// included where `specials`.
bool equal_on(const Kernel& outer, const Kernel& inner, Random& random, DType dtype, bool specials) {
  const auto matrix = [&] {
    std::vector<double> values;
    for (int i = 0; i < 9; ++i) {
      const bool special = specials && random.chance(0.2);
      values.push_back(special ? random.one_of(std::array{std::nan(""), 1.0 / 0.0, -1.0 / 0.0})
                               : static_cast<double>(random.between(-4, 4)));
    }
    return tensor_of(dtype, make_shape({3, 3}), values);
  };
  const Tensor x = matrix();
  const Tensor y = matrix();
  const Tensor whole = evaluate(outer, {evaluate(inner, {x, y}, {})}, {});
  const Tensor parts = evaluate(after(inner, outer), {evaluate(outer, {x}, {}), evaluate(outer, {y}, {})}, {});
  return agree(parts, whole, std::vector<double>(static_cast<std::size_t>(whole.count()), 0));
}

TEST(DistributesOver, IsSaidOfKernelsThatDoOnly) {
  for (const DType dtype : {DType::f64, DType::i64}) {
    for (const auto& [name, outer] : outer_kernels(dtype)) {
      for (const char* inner_name : inner_names) {
        const Kernel inner = named_kernel(inner_name, {dtype, dtype}, {2, 2});
        if (!distributes_over(outer, inner)) continue;
        Random random(1);
        // Sums of infinities of both signs are NaN in one order and not in the other, as with any re-association.
        const bool specials =
            dtype == DType::f64 && (std::string(inner_name) == "max" || std::string(inner_name) == "min");
        for (int i = 0; i < 200; ++i)
          ASSERT_TRUE(equal_on(outer, inner, random, dtype, specials)) << name << " over " << inner_name;
      }
    }
  }
}

TEST(DistributesOver, IsSaidOfAllThatAreKnownTo) {
  const std::map<std::string, std::set<std::string>> expected{
      {"id", {"matAdd", "matSub", "elemMul", "max", "min"}},
      {"diag", {"matAdd", "matSub", "elemMul", "max", "min"}},
      {"transpose", {"matAdd", "matSub", "elemMul", "max", "min"}},
      {"rowSum", {"matAdd", "matSub"}},
      {"negate", {"matAdd", "matSub"}},
      {"twice", {"matAdd", "matSub"}},
      {"minus_three_times", {"matAdd", "matSub"}},
      {"rowMax", {"max"}},
      {"rowMin", {"min"}},
      {"relu", {"max", "min"}},
      {"step", {"max", "min"}},
      {"down", {"max", "min"}},
      {"absolute", {}},
      {"square", {}},
      {"plus_one", {}},
      {"sum_of_squares", {}},
      {"product", {}},
  };
  for (const auto& [name, outer] : outer_kernels(DType::f64)) {
    std::set<std::string> found;
    for (const char* inner : inner_names) {
      if (distributes_over(outer, named_kernel(inner, {DType::f64, DType::f64}, {2, 2}))) found.insert(inner);
    }
    EXPECT_EQ(found, expected.at(name)) << name;
  }
}

TEST(DistributesOver, HoldsForCompositionsOfSuchKernels) {
  const std::map<std::string, Kernel> outer = outer_kernels(DType::f64);
  const Kernel add = named_kernel("matAdd", {DType::f64, DType::f64}, {2, 2});
  EXPECT_TRUE(distributes_over(compose(outer.at("rowSum"), outer.at("twice")), add));
  EXPECT_TRUE(distributes_over(compose(outer.at("diag"), outer.at("transpose")), add));
  EXPECT_FALSE(distributes_over(compose(outer.at("rowSum"), outer.at("relu")), add));
}

}  // namespace
}  // namespace einrel::test
