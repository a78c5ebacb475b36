#include "kernel/elementwise/fetching.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace einrel::test {
namespace {

/// What of so many parts fetch, if parts take so many seconds.
int count_fetching(FetchingChoice& choice, int parts, double with, double without) {
  int fetching = 0;
  for (int i = 0; i < parts; ++i) {
    const bool fetches = choice.fetches();
    choice.record(fetches, fetches ? with : without);
    fetching += fetches ? 1 : 0;
  }
  return fetching;
}

TEST(FetchingChoice, TriesBothThreeTimesAndTakesTheFasterOne) {
  FetchingChoice slower_with;
  EXPECT_EQ(count_fetching(slower_with, 100, 2, 1), 3);
  FetchingChoice faster_with;
  EXPECT_EQ(count_fetching(faster_with, 100, 1, 2), 97);
}

TEST(FetchingChoice, JudgesByTheLeastOfAllTries) {
  FetchingChoice choice;
  for (const double disturbed : {50.0, 1.0, 70.0}) {
    choice.record(true, disturbed);
    choice.record(false, 2);
  }
  EXPECT_TRUE(choice.fetches());
  choice.record(false, 0.5);
  EXPECT_FALSE(choice.fetches());
}

TEST(FetchingChoice, CountsWhatThreadsFindAtTheSameTime) {
  FetchingChoice choice;
  std::vector<std::thread> threads;
  for (int t = 1; t <= 4; ++t) {
    threads.emplace_back([&choice, t] {
      for (int i = 1000; i > 0; --i) {
        choice.record(true, i * t);
        choice.record(false, i * t + 0.5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(choice.fetches()) << "1 against 1.5 seconds at the least";
}

}  // namespace
}  // namespace einrel::test
