#include "exec/executors/starpu/start_hindrance.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace einrel::test {
namespace {

/// What is said at some time between the beginning and then, where the same is seen every second.
std::string said_within(int seconds, double timeout, const SeenJob& seen) {
  StartHindrance hindrance(timeout);
  const std::chrono::steady_clock::time_point begin;
  for (int second = 0; second <= seconds; ++second) {
    const std::string said = hindrance.look(seen, begin + std::chrono::seconds(second));
    if (!said.empty()) return said;
  }
  return "";
}

TEST(StartHindrance, NamesTheRankThatIsNotThereWhereOthersAreSeen) {
  const SeenJob two_of_three{{{0, {100, false}}, {2, {102, false}}}, 0, 3, 3, false};
  EXPECT_EQ(said_within(4, 1, two_of_three), "");  // half of 10 seconds have gone before it looks
  EXPECT_EQ(said_within(6, 1, two_of_three),
            "rank 1 was not there for 10 s: it has ended, or was given another command");
}

TEST(StartHindrance, NamesTheOneThatIsMissingWhereOnlyWhatStartedTheJobIsSeen) {
  const SeenJob one_of_two{{{0, {100, false}}}, 0, 2, 2, true};
  EXPECT_EQ(said_within(30, 40, one_of_two),
            "rank 1 was not there for 40 s: it has ended, or was given another command");
}

TEST(StartHindrance, WaitsForRanksThatAreInContainersOfTheirOwn) {
  const SeenJob itself{{{0, {1, false}}}, 0, 2, 2, false};
  EXPECT_EQ(said_within(1000, 1, itself), "");
}

TEST(StartHindrance, SaysThatAnotherRankHasEndedThatWasSeenBefore) {
  StartHindrance hindrance(1);
  const std::chrono::steady_clock::time_point begin;
  EXPECT_EQ(hindrance.look({{{0, {1, false}}, {1, {2, false}}}, 0, 2, 2, false}, begin), "");
  const SeenJob alone{{{0, {1, false}}}, 0, 2, 2, false};
  EXPECT_EQ(hindrance.look(alone, begin + std::chrono::seconds(1)), "");
  EXPECT_EQ(hindrance.look(alone, begin + std::chrono::seconds(7)),
            "rank 1 was not there for 10 s: it has ended, or was given another command");
}

TEST(StartHindrance, NamesARankThatIsStoppedAndLetsTheLowestOtherOneSaySo) {
  const SeenJob seen{{{0, {100, true}}, {1, {101, false}}, {2, {102, false}}}, 1, 3, 3, true};
  EXPECT_EQ(said_within(3, 4, seen), "rank 0 (process 100) made no progress for 4 s: it is stopped by a signal");
  SeenJob by_another = seen;
  by_another.own = 2;
  EXPECT_EQ(said_within(3, 4, by_another), "");
  EXPECT_NE(said_within(4, 4, by_another), "");
}

}  // namespace
}  // namespace einrel::test
