#include "base/extent.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "base/error.h"

namespace einrel {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

TEST(Extent, MayBeZeroOrHugeButNotNegative) {
  EXPECT_EQ(Extent(0).value(), 0);
  EXPECT_EQ(Extent(largest).value(), largest);
  EXPECT_THROW(Extent(-1), UserError);
}

TEST(Extent, ThatIsOpenIsNoNumber) {
  EXPECT_TRUE(Extent::open().is_open());
  EXPECT_FALSE(Extent(0).is_open());
  EXPECT_NE(Extent::open(), Extent(0));
  EXPECT_THROW(Extent::open().value(), Bug);
}

TEST(CheckedArithmetic, IsExactUpToTheLimitAndThrowsBeyond) {
  EXPECT_EQ(checked_multiply(3'037'000'499, 3'037'000'499), 9'223'372'030'926'249'001);
  EXPECT_THROW(checked_multiply(3'037'000'500, 3'037'000'500), UserError);
  EXPECT_EQ(checked_multiply(largest, 1), largest);
  EXPECT_EQ(checked_add(largest - 1, 1), largest);
  EXPECT_THROW(checked_add(largest, 1), UserError);
}

TEST(ElementCount, IsTheProductOfTheExtents) {
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count(make_shape({2, 3, 5})), 30);
  EXPECT_THROW(element_count(make_shape({std::int64_t{1} << 32, std::int64_t{1} << 31})), UserError);
}

TEST(ElementCount, OfAnEmptyShapeIsZeroHoweverLargeTheOtherExtents) {
  EXPECT_EQ(element_count(make_shape({largest, largest, 0, largest})), 0);
}

TEST(Shape, IsWrittenAsPythonWritesATuple) {
  EXPECT_EQ(to_string(Shape{}), "()");
  EXPECT_EQ(to_string(make_shape({4})), "(4,)");
  EXPECT_EQ(to_string(make_shape({2, 3})), "(2, 3)");
}

}  // namespace
}  // namespace einrel
