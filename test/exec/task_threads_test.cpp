#include "exec/executors/threads/task_threads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/error.h"
#include "exec/memory/alive.h"
#include "exec/tasks/from_ia.h"
#include "exec/tasks/read_late.h"
#include "plan/lower.h"
#include "run/session.h"
#include "support/barrier.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

/// Vertices of one label each, cut into as many parts.
TaskGraph in_parts(const EinGraph& graph, std::int64_t parts, SiteMemory memory = SiteMemory::shared) {
  Plan plan{"by hand", parts, {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) plan.vertices.push_back(one_part_per_site({parts}));
  const LoweredPlan lowered = lower(graph, plan);
  return tasks_of(lowered.ia.store, lowered.ia.plan, memory);
}

EinGraph doubled(std::int64_t elements) {
  return einrel::graph_of("dims i=" + std::to_string(elements) + "\ninput A[i]\nZ[i] = A[i] * 2\n");
}

/// Of f32: what it is at the place where a box begins.
void count_up(const std::vector<std::int64_t>& begin, const Shape& bound, std::byte* to) {
  for (std::int64_t i = 0; i < element_count(bound); ++i) {
    const auto value = static_cast<float>(begin[0] + i);
    std::memcpy(to + i * 4, &value, 4);
  }
}

void expect_doubled(const Tensor& result) {
  for (std::int64_t i = 0; i < result.count(); ++i) EXPECT_EQ(result.load<float>(i), 2 * static_cast<float>(i));
}

TaskBindings bindings_with(const InputMaker& maker, const TaskGraph& graph, Outputs& outputs) {
  return {{maker}, writers_to(outputs, graph), {}};
}

/// More of them than this machine has cores, perhaps: a task waits for others that only run if each has a thread.
TEST(TaskThreads, AllRunTasksAtOnce) {
  for (const int count : {1, 2, 8, 16}) {
    SCOPED_TRACE(count);
    const TaskGraph graph = in_parts(doubled(3 * count), count);
    TaskThreads threads(static_cast<std::size_t>(count));
    for (int step = 0; step < 3; ++step) {
      Barrier barrier(count);
      Outputs outputs = output_tensors(graph);
      const InputMaker maker = [&](const std::vector<std::int64_t>& begin, const Shape& bound, std::byte* to) {
        barrier.arrive();
        count_up(begin, bound, to);
      };
      const TaskReport report = run_once(graph, bindings_with(maker, graph, outputs), threads);
      EXPECT_TRUE(barrier.all_came());
      expect_doubled(outputs.at("Z"));
      std::set<int> used;
      for (const TaskSpan& span : report.spans) used.insert(span.thread);
      EXPECT_EQ(used.size(), static_cast<std::size_t>(count));
      EXPECT_EQ(*used.begin(), 0);
      EXPECT_EQ(*used.rbegin(), count - 1);
    }
  }
}

TEST(TaskThreads, ReportEveryTaskOnce) {
  const TaskGraph graph = in_parts(doubled(40), 20);
  TaskThreads threads(3);
  Outputs outputs = output_tensors(graph);
  TaskProgress progress;
  TaskBindings bindings = bindings_with(count_up, graph, outputs);
  bindings.progress = &progress;
  const TaskReport report = run_once(graph, bindings, threads);
  ASSERT_EQ(report.spans.size(), graph.tasks.size());
  double spent = 0;
  for (std::size_t t = 0; t < report.spans.size(); ++t) {
    EXPECT_EQ(report.spans[t].task, t);
    EXPECT_GT(report.spans[t].start, 0);
    EXPECT_GE(report.spans[t].live_bytes, 0);
    spent += report.spans[t].seconds;
  }
  EXPECT_EQ(progress.done, graph.tasks.size());
  EXPECT_GT(report.seconds, 0);
  EXPECT_LE(spent, 3 * report.seconds);
}

TEST(TaskThreads, GoOnAfterAnErrorThatStopsARun) {
  constexpr std::int64_t parts = 2000;
  const TaskGraph graph = in_parts(doubled(parts), parts);
  TaskThreads threads(8);
  for (const std::int64_t bad : {0, 700, 1999}) {
    Outputs outputs = output_tensors(graph);
    TaskProgress progress;
    const InputMaker failing = [&](const std::vector<std::int64_t>& begin, const Shape& bound, std::byte* to) {
      if (begin[0] == bad) throw RunError("the disk is gone");
      count_up(begin, bound, to);
    };
    TaskBindings bindings = bindings_with(failing, graph, outputs);
    bindings.progress = &progress;
    EXPECT_THROW(run_once(graph, bindings, threads), RunError);
    EXPECT_LT(progress.done, graph.tasks.size());
    Outputs good = output_tensors(graph);
    run_once(graph, bindings_with(count_up, graph, good), threads);
    expect_doubled(good.at("Z"));
  }
  Outputs outputs = output_tensors(graph);
  TaskBindings bindings = bindings_with(count_up, graph, outputs);
  bindings.outputs = {[](const auto&, const Tensor&) { throw UserError("no such place"); }};
  EXPECT_THROW(run_once(graph, bindings, threads), UserError);
}

TEST(TaskThreads, ThrowTheFirstOfManyErrors) {
  const TaskGraph graph = in_parts(doubled(8), 8);
  TaskThreads threads(8);
  Barrier barrier(8);
  const InputMaker failing = [&](const std::vector<std::int64_t>&, const Shape&, std::byte*) {
    barrier.arrive();
    throw RunError("the disk is gone");
  };
  Outputs outputs = output_tensors(graph);
  EXPECT_THROW(run_once(graph, bindings_with(failing, graph, outputs), threads), RunError);
  EXPECT_TRUE(barrier.all_came());
}

/// All wait for the first task: what comes after them has to wait, too, where there is no room for what it makes,
/// though it needs nothing of theirs.
TEST(TaskThreads, BeginNoTaskThatThereIsNoRoomFor) {
  std::string text = "dims i=4\ninput A[i], B[i]\nZ0[i] = A[i] * 2\n";
  constexpr std::size_t waiting = 500;
  for (std::size_t s = 1; s <= waiting; ++s)
    text += "Z" + std::to_string(s) + "[i] = Z" + std::to_string(s - 1) + "[3-i] + A[i]\n";  // by kernels of their own
  text += "Y[i] = B[i] + Z" + std::to_string(waiting) + "[i]\n";
  TaskGraph graph = in_parts(einrel::graph_of(text), 1);
  read_late(graph, std::int64_t{1} << 40);
  TaskThreads threads(4);
  std::atomic<bool> has_begun = false;
  bool began_early = false;
  const InputMaker first = [&](const std::vector<std::int64_t>& begin, const Shape& bound, std::byte* to) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    began_early = has_begun;
    count_up(begin, bound, to);
  };
  const InputMaker last = [&](const std::vector<std::int64_t>& begin, const Shape& bound, std::byte* to) {
    has_begun = true;
    count_up(begin, bound, to);
  };
  Outputs outputs = output_tensors(graph);
  TaskBindings bindings{{first, last}, writers_to(outputs, graph), {}};
  bindings.most_bytes = most_live_bytes(graph, waiting / 2);
  run_once(graph, bindings, threads);
  EXPECT_TRUE(has_begun);
  EXPECT_FALSE(began_early);
  std::vector<float> z{0, 2, 4, 6};
  for (std::size_t s = 1; s <= waiting; ++s) {
    std::reverse(z.begin(), z.end());
    for (std::size_t i = 0; i < z.size(); ++i) z[i] += static_cast<float>(i);
  }
  for (std::size_t i = 0; i < z.size(); ++i)
    EXPECT_EQ(outputs.at("Y").load<float>(static_cast<std::int64_t>(i)), z[i] + static_cast<float>(i));
}

/// So that as little is alive as when they are run so.
TEST(TaskThreads, GoInTheOrderOfTheGraphWhereTheyCan) {
  TaskGraph graph = in_parts(doubled(4000), 1000);
  read_late(graph, std::int64_t{1} << 40);
  Outputs outputs = output_tensors(graph);
  const TaskBindings bindings = bindings_with(count_up, graph, outputs);
  const TaskReport serial = run_once(graph, bindings, SerialExecutor(1));
  const TaskReport report = run_once(graph, bindings, TaskThreads(1));
  for (std::size_t t = 0; t < graph.tasks.size(); ++t)
    EXPECT_EQ(report.spans[t].live_bytes, serial.spans[t].live_bytes) << t;
}

/// Thousands of tasks that take a microsecond each, some that depend on each other and some that do not.
TEST(TaskThreads, RunManySmallTasks) {
  std::string text = "dims i=12\ninput X0[i], Y[i]\n";  // one position a part: nothing to run together
  for (int s = 1; s <= 120; ++s) {
    const std::string number = std::to_string(s);
    text += "X" + number + "[i] = X" + std::to_string(s - 1) + "[i] * 0.5 + Y[i]\n";
    text += "W" + number + "[i] = X" + number + "[i] * " + number + "\n";
  }
  text += "output X0";  // none is computed in another
  for (int s = 1; s <= 120; ++s) text += ", X" + std::to_string(s) + ", W" + std::to_string(s);
  const EinGraph graph = einrel::graph_of(text + "\n");
  const TaskGraph tasks = in_parts(graph, 12);
  ASSERT_GT(tasks.tasks.size(), 2000);
  const TensorBindings inputs = counted_inputs(graph);
  const Outputs want = run_on(tasks, inputs, 1);
  for (const std::size_t count : {1U, 2U, 5U, 16U}) {
    TaskThreads threads(count);
    for (int run = 0; run < 20; ++run) {
      Outputs outputs = output_tensors(tasks);
      run_once(tasks, bindings_of(tasks, inputs, outputs), threads);
      for (const auto& [name, tensor] : want) EXPECT_TRUE(same_bits(tensor, outputs.at(name))) << name << " " << count;
    }
  }
  expect_reference(graph, inputs, want);
}

TEST(TaskThreads, TakeGraphsOfOneMemoryOnly) {
  TaskThreads threads(2);
  const TaskGraph apart = in_parts(doubled(4), 2, SiteMemory::apart);
  Outputs outputs = output_tensors(apart);
  EXPECT_THROW(run_once(apart, bindings_with(count_up, apart, outputs), threads), Bug);
  TaskGraph nothing;
  EXPECT_TRUE(run_once(nothing, {}, threads).spans.empty());
}

}  // namespace
}  // namespace einrel::test
