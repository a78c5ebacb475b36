#include "einsum/expr/functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "base/error.h"
#include "support/special_values.h"

namespace einrel {
namespace {

using test::infinity;
using test::nan;
constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t high = std::numeric_limits<std::int64_t>::max();

using U = UnaryFunction;
using B = BinaryFunction;

TEST(Functions, AreFoundByTheirNames) {
  for (int f = 1; f <= static_cast<int>(U::floor); ++f) {
    EXPECT_EQ(unary_named(name_of(static_cast<U>(f))), static_cast<U>(f));
  }
  for (int r = 0; r <= static_cast<int>(Reducer::logsumexp); ++r) {
    EXPECT_EQ(reducer_named(name_of(static_cast<Reducer>(r))), static_cast<Reducer>(r));
  }
  EXPECT_EQ(unary_named("gelu"), U::gelu);
  EXPECT_EQ(binary_named("max"), B::maximum);
  EXPECT_EQ(binary_named("min"), B::minimum);
  EXPECT_EQ(reducer_named("argmin"), Reducer::argmin);
}

TEST(Functions, OperatorsHaveNoNameToCallThemBy) {
  EXPECT_EQ(unary_named("-"), std::nullopt);
  EXPECT_EQ(binary_named("+"), std::nullopt);
  EXPECT_EQ(binary_named("**"), std::nullopt);
  EXPECT_EQ(unary_named("softplus"), std::nullopt);
  EXPECT_EQ(name_of(B::less_equal), "<=");
  EXPECT_EQ(name_of(B::power), "**");
}

TEST(Functions, AreAllListedOnceWithUsageAndMeaning) {
  std::set<std::string_view> usages;
  for (const FunctionInfo& info : all_functions()) {
    EXPECT_NE(info.usage.find(info.name), std::string_view::npos) << info.usage;
    EXPECT_FALSE(info.meaning.empty()) << info.usage;
    EXPECT_TRUE(usages.insert(info.usage).second) << info.usage;
  }
  for (const char* usage : {"-x", "floor(x)", "a ** b", "max(a, b)", "max[j] x", "where(c, a, b)", "logsumexp[j] x"}) {
    EXPECT_TRUE(usages.count(usage) == 1) << usage;
  }
}

TEST(Functions, HaveTheValuesOfTheTextbooks) {
  EXPECT_DOUBLE_EQ(apply(U::erf, 0.5), 0.5204998778130465);
  EXPECT_DOUBLE_EQ(apply(U::erfc, 0.5), 0.4795001221869535);
  EXPECT_DOUBLE_EQ(apply(U::erfc, 10.0), 2.088487583762545e-45);
  EXPECT_DOUBLE_EQ(apply(U::sigmoid, 0.0), 0.5);
  EXPECT_DOUBLE_EQ(apply(U::sigmoid, 2.0), 0.8807970779778823);
  EXPECT_DOUBLE_EQ(apply(U::silu, 1.0), 0.7310585786300049);
  EXPECT_DOUBLE_EQ(apply(U::gelu, 1.0), 0.8413447460685429);
  EXPECT_DOUBLE_EQ(apply(U::gelu, -1.0), -0.15865525393145705);
  EXPECT_DOUBLE_EQ(apply(U::rsqrt, 16.0), 0.25);
  EXPECT_DOUBLE_EQ(apply(U::log1p, 1e-20), 1e-20);
  EXPECT_DOUBLE_EQ(apply(U::expm1, 1e-20), 1e-20);
  EXPECT_EQ(apply(U::step, 0.0), 0);
  EXPECT_EQ(apply(U::step, 1e-300), 1);
  EXPECT_EQ(apply(U::relu, -3.0), 0);
  EXPECT_EQ(apply(U::floor, -1.5), -2);
}

TEST(Functions, StayFiniteAndAccurateFarOut) {
  EXPECT_EQ(apply(U::sigmoid, 1000.0), 1);
  EXPECT_EQ(apply(U::sigmoid, -1000.0), 0);
  EXPECT_DOUBLE_EQ(apply(U::sigmoid, -700.0), std::exp(-700.0));
  EXPECT_EQ(apply(U::silu, -infinity), 0);
  EXPECT_EQ(apply(U::gelu, -infinity), 0);
  EXPECT_EQ(apply(U::gelu, infinity), infinity);
  // x/2 * erfc(-x/sqrt(2)) at -10: the tail 7.619853024160527e-24 of the normal distribution, times -10.
  EXPECT_NEAR(apply(U::gelu, -10.0), -7.619853024160527e-23, 1e-36);
}

TEST(Functions, PassNaNOn) {
  for (int f = 0; f <= static_cast<int>(U::floor); ++f) {
    EXPECT_TRUE(std::isnan(apply(static_cast<U>(f), nan))) << name_of(static_cast<U>(f));
  }
  for (const B f : {B::add, B::subtract, B::multiply, B::divide, B::maximum, B::minimum}) {
    EXPECT_TRUE(std::isnan(apply(f, nan, 1.0))) << name_of(f);
    EXPECT_TRUE(std::isnan(apply(f, 1.0, nan))) << name_of(f);
  }
  for (const B f : {B::less, B::less_equal, B::greater, B::greater_equal, B::equal}) {
    EXPECT_EQ(apply(f, nan, nan), 0) << name_of(f);
  }
  EXPECT_EQ(apply(B::not_equal, nan, nan), 1);
}

TEST(Functions, IntegersWrapAround) {
  EXPECT_EQ(apply(B::add, high, std::int64_t{1}), low);
  EXPECT_EQ(apply(B::subtract, low, std::int64_t{1}), high);
  EXPECT_EQ(apply(B::multiply, high, std::int64_t{2}), -2);
  EXPECT_EQ(apply(U::negate, low), low);
  EXPECT_EQ(apply(U::abs, low), low);
  EXPECT_EQ(apply(U::sq, std::int64_t{1} << 32U), 0);
}

TEST(Functions, IntegerPowersAreExactModulo64Bits) {
  const auto power = [](std::int64_t a, std::int64_t b) { return apply(B::power, a, b); };
  EXPECT_EQ(power(3, 4), 81);
  EXPECT_EQ(power(-2, 63), low);
  EXPECT_EQ(power(2, 64), 0);
  EXPECT_EQ(power(7, 0), 1);
  EXPECT_EQ(power(0, 0), 1);
  EXPECT_EQ(power(3, high), -6148914691236517205);  // 3^(2^63) is 1 modulo 2^64, so this is the inverse of 3
  EXPECT_EQ(power(2, -1), 0);
  EXPECT_EQ(power(0, -1), 0);
  EXPECT_EQ(power(1, -5), 1);
  EXPECT_EQ(power(-1, -5), -1);
  EXPECT_EQ(power(-1, low), 1);
}

TEST(Functions, OfFloatsDoNotTakeIntegers) {
  EXPECT_THROW(apply(U::exp, std::int64_t{1}), Bug);
  EXPECT_THROW(apply(B::divide, std::int64_t{1}, std::int64_t{2}), Bug);
  EXPECT_FALSE(keeps_integers(U::exp));
  for (int f = 0; f <= static_cast<int>(U::floor); ++f) {
    if (keeps_integers(static_cast<U>(f))) {
      EXPECT_NO_THROW(apply(static_cast<U>(f), std::int64_t{3}));
    }
  }
}

TEST(Reducers, GiveTheTypeThatHoldsTheirResult) {
  EXPECT_EQ(reduced_type(Reducer::sum, DType::f32), DType::f32);
  EXPECT_EQ(reduced_type(Reducer::sum, DType::i32), DType::i32);
  EXPECT_EQ(reduced_type(Reducer::sum, DType::boolean), DType::i64);
  EXPECT_EQ(reduced_type(Reducer::sumsq, DType::boolean), DType::i64);
  EXPECT_EQ(reduced_type(Reducer::sumsq, DType::f16), DType::f16);
  EXPECT_EQ(reduced_type(Reducer::prod, DType::boolean), DType::i64);
  EXPECT_EQ(reduced_type(Reducer::max, DType::boolean), DType::boolean);
  EXPECT_EQ(reduced_type(Reducer::mean, DType::i32), DType::f64);
  EXPECT_EQ(reduced_type(Reducer::mean, DType::f32), DType::f32);
  EXPECT_EQ(reduced_type(Reducer::logsumexp, DType::i64), DType::f64);
  EXPECT_EQ(reduced_type(Reducer::all, DType::f64), DType::boolean);
  EXPECT_EQ(reduced_type(Reducer::argmax, DType::f32), DType::i64);
}

}  // namespace
}  // namespace einrel
