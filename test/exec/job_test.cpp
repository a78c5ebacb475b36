#include "exec/job/job.h"

#include <gtest/gtest.h>

#include <vector>

namespace einrel::test {
namespace {

cpu_set_t cores(const std::vector<std::size_t>& numbers) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const std::size_t core : numbers) CPU_SET(core, &set);
  return set;
}

TEST(Job, SharesTheCoresThatSeveralRanksMayUse) {
  EXPECT_DOUBLE_EQ(share_of_cores({cores({0, 1}), cores({0, 1})}, 0), 1);  // bound to nothing
  EXPECT_DOUBLE_EQ(share_of_cores({cores({0}), cores({1})}, 1), 1);        // bound to one each
  EXPECT_DOUBLE_EQ(share_of_cores({cores({0}), cores({1}), cores({0}), cores({1})}, 2), 0.5);
  const std::vector<cpu_set_t> sockets{cores({0, 1, 2, 3}), cores({4, 5, 6, 7}), cores({0, 1, 2, 3})};
  EXPECT_DOUBLE_EQ(share_of_cores(sockets, 0), 2);
  EXPECT_DOUBLE_EQ(share_of_cores(sockets, 1), 4);
}

}  // namespace
}  // namespace einrel::test
