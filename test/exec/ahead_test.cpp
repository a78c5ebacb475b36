#include "exec/memory/ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "exec/memory/alive.h"
#include "exec/memory/array_store.h"
#include "exec/tasks/from_ia.h"
#include "plan/lower.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_plan.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

TaskGraph random_tasks(Random& random, std::uint64_t seed, SiteMemory memory) {
  const EinGraph graph = einrel::graph_of(program_of(seed));
  const LoweredPlan lowered = lower(graph, random_plan(random, graph, 4));
  return tasks_of(lowered.ia.store, lowered.ia.plan, memory);
}

/// Sites that run their tasks in any order that the arrays allow, each begun as early as it may be: what any of them
/// holds is counted by the uses of arrays that are left.
class AnyOrder {
 public:
  AnyOrder(const TaskGraph& graph, std::int64_t most_bytes, Random& random)
      : graph_(graph), last_uses_(graph), random_(random), is_done_(graph.tasks.size(), false) {
    const bool is_apart = graph.memory == SiteMemory::apart;
    for (std::int64_t site = 0; site < (is_apart ? graph.sites : 1); ++site)
      sites_.emplace_back(graph, last_uses_, most_bytes, is_apart ? std::optional<Site>(site) : std::nullopt);
  }

  /// Ends all tasks; false where none can go on.
  bool run() {
    for (std::size_t left = graph_.tasks.size(); left > 0; --left) {
      const std::vector<std::size_t> ready = begin_all();
      if (ready.empty()) return false;
      end(ready[static_cast<std::size_t>(random_.between(0, std::ssize(ready) - 1))]);
    }
    return true;
  }
  std::int64_t most() const { return most_; }

 private:
  struct AtSite {
    AtSite(const TaskGraph& graph, const LastUses& last_uses, std::int64_t most_bytes, std::optional<Site> of)
        : site(of), ahead(graph, last_uses, most_bytes, of), live(graph) {}
    std::optional<Site> site;
    TasksAhead ahead;
    LiveArrays live;
    std::size_t begun = 0;
    std::size_t done = 0;
  };

  bool has(const AtSite& at, ArrayId array) const { return !at.site || graph_[array].site == *at.site; }
  bool has(const AtSite& at, const Task& task) const {
    const auto is_here = [&](ArrayId array) { return has(at, array); };
    return std::any_of(task.reads.begin(), task.reads.end(), is_here) ||
           std::any_of(task.makes.begin(), task.makes.end(), is_here);
  }

  /// Those that all their sites have begun, and whose arrays are there.
  std::vector<std::size_t> begin_all() {
    for (AtSite& at : sites_) {
      while (at.done < is_done_.size() && (is_done_[at.done] || !has(at, graph_.tasks[at.done]))) ++at.done;
      for (const std::size_t end = at.ahead.end(at.done); at.begun < end; ++at.begun) {
        const Task& task = graph_.tasks[at.begun];
        if (!task.makes.empty() && has(at, task.makes.front())) at.live.begin(task);
      }
      most_ = std::max(most_, at.live.bytes());
    }
    std::vector<std::size_t> ready;
    for (std::size_t t = 0; t < is_done_.size(); ++t) {
      const Task& task = graph_.tasks[t];
      const bool is_begun =
          std::all_of(sites_.begin(), sites_.end(), [&](const AtSite& at) { return t < at.begun || !has(at, task); });
      const bool has_all =
          std::all_of(task.reads.begin(), task.reads.end(), [&](ArrayId read) { return made_.count(read) != 0; });
      if (!is_done_[t] && is_begun && has_all) ready.push_back(t);
    }
    return ready;
  }

  void end(std::size_t t) {
    const Task& task = graph_.tasks[t];
    is_done_[t] = true;
    made_.insert(task.makes.begin(), task.makes.end());
    for (AtSite& at : sites_) {
      for (const ArrayId read : task.reads) {
        if (has(at, read)) at.live.end_use(read);
      }
      if (overwritten(task) && has(at, task.makes.front())) at.live.begin(task.makes.front());
      for (const ArrayId made : task.makes) {
        if (has(at, made)) at.live.end_use(made);
      }
    }
  }

  const TaskGraph& graph_;
  LastUses last_uses_;
  Random& random_;
  std::vector<bool> is_done_;
  std::set<ArrayId> made_;
  std::deque<AtSite> sites_;
  std::int64_t most_ = 0;
};

TEST(TasksAhead, HoldNoMoreThanAskedForInAnyOrderAndAlwaysGoOn) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const TaskGraph tasks = random_tasks(random, seed, seed % 2 == 0 ? SiteMemory::apart : SiteMemory::shared);
    const std::int64_t in_order = most_live_bytes(tasks);
    for (const std::int64_t most_bytes : {std::int64_t{0}, in_order, in_order + random.between(0, in_order)}) {
      AnyOrder order(tasks, most_bytes, random);
      ASSERT_TRUE(order.run());
      EXPECT_LE(order.most(), std::max(in_order, most_bytes));
    }
  }
}

TEST(TasksAhead, RunAheadAsFarAsThereIsRoom) {
  const EinGraph graph = einrel::graph_of("dims i=8\ninput X[i]\nY[i] = exp(X[i])\nZ[i] = Y[7-i] + X[i]\n");
  Plan plan{"by hand", 4, {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) plan.vertices.push_back(one_part_per_site({4}));
  const LoweredPlan lowered = lower(graph, plan);
  const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
  const LastUses last_uses(tasks);
  const std::size_t count = tasks.tasks.size();
  EXPECT_EQ(TasksAhead(tasks, last_uses, any_bytes, std::nullopt).end(0), count);
  EXPECT_EQ(TasksAhead(tasks, last_uses, most_live_bytes(tasks, count), std::nullopt).end(0), count);
  TasksAhead in_order(tasks, last_uses, 0, std::nullopt);
  for (std::size_t done = 0; done < count; ++done) EXPECT_EQ(in_order.end(done), done + 1);
  for (const std::size_t at_once : {1U, 2U, 5U}) {
    TasksAhead ahead(tasks, last_uses, most_live_bytes(tasks, at_once), std::nullopt);
    for (std::size_t done = 0; done < count; ++done) EXPECT_GE(ahead.end(done), std::min(done + at_once, count));
  }
}

TEST(TasksAhead, AreKeptToByAllExecutors) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const EinGraph graph = einrel::graph_of(program_of(seed));
    const LoweredPlan lowered = lower(graph, random_plan(random, graph, 4));
    const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
    const TensorBindings inputs = counted_inputs(graph);
    Outputs outputs = output_tensors(tasks);
    TaskBindings bindings = bindings_of(tasks, inputs, outputs);
    const auto most_live = [](const TaskReport& report) {
      std::int64_t most = 0;
      for (const TaskSpan& span : report.spans) most = std::max(most, span.live_bytes);
      return most;
    };
    EXPECT_LE(most_live(run_once(tasks, bindings, SerialExecutor(2))), most_live_bytes(tasks));
    for (std::size_t threads = 1; threads <= 4; ++threads) {
      for (const std::size_t at_once : {std::size_t{1}, 2 * threads}) {
        bindings.most_bytes = most_live_bytes(tasks, at_once);
        EXPECT_LE(most_live(run_once(tasks, bindings, TaskThreads(threads))), bindings.most_bytes) << threads;
        expect_reference(graph, inputs, outputs);
      }
    }
  }
}

}  // namespace
}  // namespace einrel::test
