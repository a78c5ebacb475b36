#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/error.h"
#include "exec/executors/starpu/run.h"
#include "exec/tasks/from_ia.h"
#include "plan/lower.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_plan.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

/// One of them, and how it is made.
struct Made {
  const char* name;
  std::function<std::unique_ptr<Executor>()> make;
};

/// What has an executor need not know which: the same tests hold for all.
class Executors : public testing::TestWithParam<Made> {
 protected:
  std::unique_ptr<Executor> executor_ = GetParam().make();
};

TaskGraph tasks_for(const EinGraph& graph, const Plan& plan) {
  const LoweredPlan lowered = lower(graph, plan);
  return tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
}

/// Every tensor in other parts than the one before, so that they are cut and put together.
TaskGraph in_parts(const EinGraph& graph) {
  Plan plan{"by hand", 2, {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) plan.vertices.push_back({{v % 2 == 0 ? 4 : 2}, {2}, {1}});
  return tasks_for(graph, plan);
}

const char* const scaled = "dims i=40\nscalar s\ninput X[i]\nY[i] = X[i] * s\nW[i] = tanh(Y[i])\nZ[i] = W[i] + X[i]\n";

Outputs run_with(const TaskGraph& tasks, TaskBindings bindings, Executor& executor) {
  Outputs outputs = output_tensors(tasks);
  bindings.outputs = writers_to(outputs, tasks);
  executor.run(PreparedTasks(tasks, bindings), bindings);
  return outputs;
}

TEST_P(Executors, GiveWhatTheReferenceGivesAndTheSameBits) {
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const EinGraph graph = einrel::graph_of(plannable_programs()[seed % plannable_programs().size()]);
    const TaskGraph tasks = tasks_for(graph, random_plan(random, graph));
    const TensorBindings inputs = counted_inputs(graph);
    Outputs outputs = output_tensors(tasks);
    run_once(tasks, bindings_of(tasks, inputs, outputs), *executor_);
    expect_reference(graph, inputs, outputs);
    for (const auto& [name, tensor] : run_on(tasks, inputs, 1)) EXPECT_TRUE(same_bits(outputs.at(name), tensor));
  }
}

TEST_P(Executors, RunTasksThatWereMadeReadyOnceForOtherValuesOfScalars) {
  const EinGraph graph = einrel::graph_of(scaled);
  const TaskGraph tasks = in_parts(graph);
  const TensorBindings inputs = counted_inputs(graph);
  Outputs outputs = output_tensors(tasks);
  TaskBindings bindings = bindings_of(tasks, inputs, outputs);
  bindings.scalars = {{"s", 0.0}};
  PreparedTasks ready(tasks, bindings);
  const ExecutorAtWork at_work(*executor_, {});
  for (const double s : {0.5, -0.25, 0.5}) {
    bindings.scalars = {{"s", s}};
    ready.rebind(bindings.scalars);
    executor_->run(ready, bindings);
    const std::vector<Tensor> want = evaluate_reference(graph, inputs, bindings.scalars);
    EXPECT_TRUE(agree(outputs.at("Z"), want.back(), std::vector<double>(40, 1e-4))) << s;
  }
}

TEST_P(Executors, ThrowWhatATaskThrowsAndGoOn) {
  const EinGraph graph = einrel::graph_of(scaled);
  const TaskGraph tasks = in_parts(graph);
  const InputMaker fails = [](const auto&, const Shape&, std::byte*) { throw RunError("the disk is gone"); };
  const TensorBindings inputs = counted_inputs(graph);
  const ExecutorAtWork at_work(*executor_, {});
  EXPECT_THROW(run_with(tasks, {{fails}, {}, {{"s", 1.0}}}, *executor_), RunError);
  const Outputs outputs = run_with(tasks, {{inputs.at("X")}, {}, {{"s", 1.0}}}, *executor_);
  const std::vector<Tensor> want = evaluate_reference(graph, inputs, {{"s", 1.0}});
  EXPECT_TRUE(agree(outputs.at("Z"), want.back(), std::vector<double>(40, 1e-3)));
}

TEST_P(Executors, EndWhenTheyAreAskedToAndBeginAnew) {
  const EinGraph graph = einrel::graph_of(scaled);
  const TaskGraph tasks = in_parts(graph);
  const TaskBindings bindings{{counted_inputs(graph).at("X")}, {}, {{"s", 1.0}}};
  std::stop_source stop;
  stop.request_stop();
  {
    const ExecutorAtWork at_work(*executor_, stop.get_token());
    EXPECT_THROW(run_with(tasks, bindings, *executor_), RunError);
  }
  const ExecutorAtWork at_work(*executor_, {});
  EXPECT_NO_THROW(run_with(tasks, bindings, *executor_));
}

TEST_P(Executors, ReportWhatRanAndHowLong) {
  const EinGraph graph = einrel::graph_of(scaled);
  const TaskGraph tasks = in_parts(graph);
  const TensorBindings inputs = counted_inputs(graph);
  Outputs outputs = output_tensors(tasks);
  TaskBindings bindings = bindings_of(tasks, inputs, outputs);
  TaskProgress progress;
  bindings.progress = &progress;
  bindings.scalars = {{"s", 1.0}};
  const TaskReport report = run_once(tasks, bindings, *executor_);
  double most = 0;
  std::size_t kernels = 0;
  for (const TaskSpan& span : report.spans) {
    most = std::max(most, span.seconds);
    if (std::holds_alternative<CallKernel>(tasks.tasks[span.task].op)) ++kernels;
  }
  const auto calls = [](const Task& task) { return std::holds_alternative<CallKernel>(task.op); };
  EXPECT_EQ(kernels, static_cast<std::size_t>(std::count_if(tasks.tasks.begin(), tasks.tasks.end(), calls)));
  EXPECT_EQ(progress.done, report.spans.size());
  EXPECT_GE(report.seconds, most);
}

INSTANTIATE_TEST_SUITE_P(
    All, Executors,
    testing::Values(Made{"Serial", [] { return std::make_unique<SerialExecutor>(2); }},
                    Made{"Threads", [] { return std::make_unique<TaskThreads>(3); }},
                    Made{"Starpu",
                         [] {
                           const SessionOptions options{2, std::int64_t{1}, {testing::TempDir(), {}}};
                           return std::make_unique<StarpuExecutor>(options, Job{});
                         }}),
    [](const auto& made) { return std::string(made.param.name); });

}  // namespace
}  // namespace einrel::test
