#include "base/suggest.h"

#include <gtest/gtest.h>

#include <string>

namespace einrel {
namespace {

TEST(Suggest, FindsANameOneSlipAway) {
  EXPECT_EQ(nearest_name("sofmax", {"softmax", "sigmoid"}), "softmax");    // left out
  EXPECT_EQ(nearest_name("softtmax", {"softmax", "sigmoid"}), "softmax");  // doubled
  EXPECT_EQ(nearest_name("sigmojd", {"softmax", "sigmoid"}), "sigmoid");   // replaced
  EXPECT_EQ(nearest_name("isgmoid", {"softmax", "sigmoid"}), "sigmoid");   // swapped
}

TEST(Suggest, PrefersTheNearer) { EXPECT_EQ(nearest_name("W12", {"W345", "W13", "W"}), "W13"); }

TEST(Suggest, StaysSilentWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("x", {"y", "z"}), "");
  EXPECT_EQ(nearest_name("weights", {"images", "labels"}), "");
  EXPECT_EQ(nearest_name("a", {}), "");
}

TEST(Suggest, DoesNotCompareEndlessNames) {
  const std::string endless(100'000, 'a');
  EXPECT_EQ(nearest_name(endless, {endless + "b"}), "");
  EXPECT_EQ(nearest_name("aaa", {endless}), "");
}

TEST(Suggest, AsksAQuestion) {
  EXPECT_EQ(did_you_mean("Y1", {"X1"}), "did you mean 'X1'?");
  EXPECT_EQ(did_you_mean("Y1", {"bias"}), "");
}

}  // namespace
}  // namespace einrel
