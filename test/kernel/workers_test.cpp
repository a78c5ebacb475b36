#include "kernel/workers.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "support/sanitizers.h"

namespace einrel::test {
namespace {

/// A kernel of these stages that reads and writes nothing but what the parts name.
PreparedKernel kernel_of(std::vector<Stage> stages, std::int64_t own_bytes = 0, std::int64_t shared_bytes = 0) {
  return {own_bytes, shared_bytes, std::move(stages)};
}

class TeamsOfWorkers : public testing::TestWithParam<std::size_t> {
 protected:
  Workers workers{GetParam()};
};

TEST_P(TeamsOfWorkers, RunEveryPartOfEveryStageOnce) {
  std::vector<std::atomic<int>> runs(1000);
  std::atomic<int> last{0};
  const PreparedKernel kernel =
      kernel_of({{1000, [&](const Arrays&, Workspace, std::int64_t part) { ++runs[static_cast<std::size_t>(part)]; }},
                 {1, [&](const Arrays&, Workspace, std::int64_t part) { last += part == 0 ? 1 : 100; }}});
  workers.run(kernel, {});
  EXPECT_TRUE(std::all_of(runs.begin(), runs.end(), [](const std::atomic<int>& count) { return count == 1; }));
  EXPECT_EQ(last, 1);
}

TEST_P(TeamsOfWorkers, BeginAStageAfterTheLastOneHasEnded) {
  constexpr std::int64_t parts = 64;
  std::array<std::int64_t, parts> first{};
  std::array<std::int64_t, parts> second{};
  std::int64_t total = 0;
  const PreparedKernel kernel = kernel_of({
      {parts, [&](const Arrays&, Workspace, std::int64_t part) { first[static_cast<std::size_t>(part)] = part + 1; }},
      {parts,
       [&](const Arrays&, Workspace, std::int64_t part) {
         second[static_cast<std::size_t>(part)] = first[static_cast<std::size_t>(parts - 1 - part)];
       }},
      {1,
       [&](const Arrays&, Workspace, std::int64_t) { total = std::accumulate(second.begin(), second.end(), total); }},
  });
  for (int call = 1; call <= 20; ++call) {
    first.fill(0);
    second.fill(0);
    workers.run(kernel, {});
    ASSERT_EQ(total, call * parts * (parts + 1) / 2);
  }
}

TEST_P(TeamsOfWorkers, GiveTheArraysToEveryPart) {
  const std::array<std::byte, 2> operand{std::byte{1}, std::byte{2}};
  const std::array<const std::byte*, 1> operands{operand.data()};
  std::array<std::byte, 2> result{};
  const PreparedKernel kernel = kernel_of({{2, [](const Arrays& arrays, Workspace, std::int64_t part) {
                                              arrays.result[part] = arrays.operands[0][1 - part];
                                            }}});
  workers.run(kernel, {operands.data(), result.data()});
  EXPECT_EQ(result, (std::array{std::byte{2}, std::byte{1}}));
}

TEST_P(TeamsOfWorkers, GiveEachPartUnderWayAWorkspaceOfItsOwn) {
  constexpr std::int64_t own_bytes = 4096;
  std::atomic<int> wrong{0};
  const PreparedKernel kernel =
      kernel_of({{50,
                  [&](const Arrays&, Workspace workspace, std::int64_t part) {
                    if (reinterpret_cast<std::uintptr_t>(workspace.own) % 64 != 0) ++wrong;
                    std::memset(workspace.own, static_cast<int>(part), own_bytes);
                    std::this_thread::yield();
                    const auto is_mine = [part](std::byte byte) { return byte == static_cast<std::byte>(part); };
                    if (!std::all_of(workspace.own, workspace.own + own_bytes, is_mine)) ++wrong;
                  }}},
                own_bytes);
  workers.run(kernel, {});
  EXPECT_EQ(wrong, 0);
}

TEST_P(TeamsOfWorkers, GiveAllPartsOfAllStagesOneSharedWorkspace) {
  // Sizes that grow and shrink, since workspaces are kept from call to call.
  for (const std::int64_t parts : {3, 100, 7, 2000, 1}) {
    std::atomic<int> wrong{0};
    const auto at = [](Workspace workspace, std::int64_t part) {
      return reinterpret_cast<std::int64_t*>(workspace.shared) + part;
    };
    const PreparedKernel kernel = kernel_of(
        {{parts, [&](const Arrays&, Workspace workspace, std::int64_t part) { *at(workspace, part) = part * part; }},
         {parts,
          [&](const Arrays&, Workspace workspace, std::int64_t part) {
            const std::int64_t other = parts - 1 - part;
            if (reinterpret_cast<std::uintptr_t>(workspace.shared) % 64 != 0) ++wrong;
            if (*at(workspace, other) != other * other) ++wrong;
          }}},
        0, parts * static_cast<std::int64_t>(sizeof(std::int64_t)));
    workers.run(kernel, {});
    EXPECT_EQ(wrong, 0);
  }
}

TEST_P(TeamsOfWorkers, ThrowWhatAPartThrowsAndGoOnWorking) {
  std::atomic<int> under_way{0};
  std::atomic<int> later{0};
  const PreparedKernel failing = kernel_of({{100,
                                             [&](const Arrays&, Workspace, std::int64_t part) {
                                               ++under_way;
                                               std::this_thread::yield();
                                               --under_way;
                                               if (part == 37) throw RunError("part 37 has failed");
                                             }},
                                            {1, [&](const Arrays&, Workspace, std::int64_t) { ++later; }}});
  std::atomic<int> runs{0};
  const PreparedKernel healthy = kernel_of({{100, [&](const Arrays&, Workspace, std::int64_t) { ++runs; }}});
  for (int call = 1; call <= 20; ++call) {
    try {
      workers.run(failing, {});
      ADD_FAILURE() << "nothing was thrown";
    } catch (const RunError& error) {
      EXPECT_EQ(std::string(error.what()), "part 37 has failed");
      EXPECT_EQ(under_way, 0) << "parts still run";
    }
    workers.run(healthy, {});
    ASSERT_EQ(runs, 100 * call);
  }
  EXPECT_EQ(later, 0) << "a stage ran after one that failed";
}

TEST_P(TeamsOfWorkers, ThrowOneOfManyFailures) {
  const PreparedKernel failing =
      kernel_of({{100, [](const Arrays&, Workspace, std::int64_t part) { throw UserError(std::to_string(part)); }}});
  for (int call = 0; call < 20; ++call) EXPECT_THROW(workers.run(failing, {}), UserError);
}

TEST_P(TeamsOfWorkers, AnswerTenThousandQuickCalls) {
  std::array<std::int64_t, 3> sums{};
  const PreparedKernel kernel = kernel_of(
      {{3, [&](const Arrays&, Workspace, std::int64_t part) { sums[static_cast<std::size_t>(part)] += part + 1; }}});
  for (int call = 0; call < 10000; ++call) workers.run(kernel, {});
  EXPECT_EQ(sums, (std::array<std::int64_t, 3>{10000, 20000, 30000}));
}

TEST_P(TeamsOfWorkers, EndWhileIdle) {
  for (int i = 0; i < 50; ++i) {
    Workers others(GetParam());
    EXPECT_EQ(others.threads(), GetParam());
    std::atomic<int> runs{0};
    const PreparedKernel kernel = kernel_of({{8, [&](const Arrays&, Workspace, std::int64_t) { ++runs; }}});
    for (int call = 0; call < i % 3; ++call) others.run(kernel, {});
    EXPECT_EQ(runs, 8 * (i % 3));
  }
}

TEST_P(TeamsOfWorkers, SayWhenThereIsNoMemoryForWorkspaces) {
  if (is_sanitized()) return;  // they end the process where operator new would throw
  constexpr std::int64_t too_much = std::int64_t{1} << 60U;
  const auto run = [](const Arrays&, Workspace, std::int64_t) {};
  EXPECT_THROW(workers.run(kernel_of({{10, run}}, too_much, 0), {}), RunError);
  EXPECT_THROW(workers.run(kernel_of({{10, run}}, 0, too_much), {}), RunError);
  workers.run(kernel_of({{10, run}}, 100, 100), {});
}

INSTANTIATE_TEST_SUITE_P(Threads, TeamsOfWorkers, testing::Values(1, 2, 3, 8));

TEST(Workers, ComputePartsAtTheSameTime) {
  Workers two(2);
  std::atomic<int> arrived{0};
  const PreparedKernel kernel = kernel_of({{2, [&](const Arrays&, Workspace, std::int64_t) {
                                              ++arrived;
                                              while (arrived < 2) std::this_thread::yield();  // for the other part
                                            }}});
  two.run(kernel, {});
  EXPECT_EQ(arrived, 2);
}

cpu_set_t only(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(core), &set);
  return set;
}
cpu_set_t cores_of_this_thread() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  EXPECT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
  return cores;
}
void move_to(int core) {
  const cpu_set_t cores = only(core);
  EXPECT_EQ(sched_setaffinity(0, sizeof(cores), &cores), 0);
}

/// Runs the action in the one of two threads that is not the caller.
void run_in_helper(Workers& two, const std::function<void()>& action) {
  const auto caller = std::this_thread::get_id();
  std::atomic<int> arrived{0};
  two.run(kernel_of({{2,
                      [&](const Arrays&, Workspace, std::int64_t) {
                        ++arrived;
                        while (arrived < 2) std::this_thread::yield();  // for the other part
                        if (std::this_thread::get_id() != caller) action();
                      }}}),
          {});
}

TEST(Workers, ComputeElsewhereThanOnTheCoreOfTheirCaller) {
  const bool wanted = available_cores() == 1;  // where there is one core, on that
  std::jthread([wanted] {                      // a thread of the test's own, since it stays on one core
    Workers two(2);
    const int mine = sched_getcpu();
    move_to(mine);
    bool together = !wanted;
    run_in_helper(two, [&] {
      const cpu_set_t cores = cores_of_this_thread();
      together = CPU_ISSET(static_cast<std::size_t>(mine), &cores);
    });
    EXPECT_EQ(together, wanted);
  });
}

TEST(Workers, StayWhereOthersHavePutThem) {
  std::jthread([] {
    Workers two(2);
    const cpu_set_t all = cores_of_this_thread();
    const int mine = sched_getcpu();
    int other = mine;  // where there is no other
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (core != mine && CPU_ISSET(static_cast<std::size_t>(core), &all)) other = core;
    }
    move_to(mine);
    run_in_helper(two, [&] { move_to(mine); });
    move_to(other);
    cpu_set_t cores;
    run_in_helper(two, [&] { cores = cores_of_this_thread(); });
    const cpu_set_t put = only(mine);
    EXPECT_TRUE(CPU_EQUAL(&cores, &put));
  });
}

TEST(Workers, ThatGiveWayRunEveryPartOnce) {
  for (const std::size_t threads : {1U, 3U}) {
    Workers workers(threads, true);
    std::vector<std::atomic<int>> runs(20);
    const auto slow = [&](const Arrays&, Workspace, std::int64_t part) {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      ++runs[static_cast<std::size_t>(part)];
    };
    workers.run(kernel_of({{20, slow}, {20, slow}}), {});
    for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 2);
  }
}

TEST(Workers, OfSeveralOwnersDoNotMeet) {
  std::array<std::int64_t, 3> sums{};
  std::vector<std::thread> owners;
  for (std::int64_t& sum : sums) {
    owners.emplace_back([&sum] {
      Workers workers(2);
      std::array<std::int64_t, 4> partial{};
      const PreparedKernel kernel = kernel_of(
          {{4, [&](const Arrays&, Workspace, std::int64_t part) { partial[static_cast<std::size_t>(part)] += part; }},
           {1, [&](const Arrays&, Workspace, std::int64_t) {
              sum = std::accumulate(partial.begin(), partial.end(), std::int64_t{0});
            }}});
      for (int call = 0; call < 200; ++call) workers.run(kernel, {});
    });
  }
  for (std::thread& owner : owners) owner.join();
  EXPECT_EQ(sums, (std::array<std::int64_t, 3>{1200, 1200, 1200}));
}

TEST(Workers, RefuseNumbersOfThreadsOutOfRange) {
  EXPECT_THROW(Workers(0), Bug);
  EXPECT_THROW(Workers(most_threads + 1), Bug);
}

TEST(Workers, AreAsManyAsTheCoresThatMayBeUsed) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), std::max(1U, std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace einrel::test
