#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "exec/executors/serial/serial.h"
#include "exec/executors/starpu/run.h"
#include "exec/executors/threads/task_threads.h"
#include "exec/tasks/cut_parts_out.h"
#include "exec/tasks/from_ia.h"
#include "exec/tasks/read_late.h"
#include "exec/tasks/task_body.h"
#include "ia/traffic.h"
#include "plan/lower.h"
#include "run/compile.h"
#include "run/session.h"
#include "support/compare.h"
#include "support/counted_inputs.h"
#include "support/program.h"
#include "support/random_einsum.h"
#include "support/random_plan.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

/// Within memory: StarPU has the arrays.
Outputs run_by_starpu(const TaskGraph& graph, const TensorBindings& inputs, std::size_t threads) {
  return run_on(graph, inputs, StarpuExecutor({threads, std::int64_t{1}, {testing::TempDir(), {}}}, {}));
}

Outputs run_side_by_side(const TaskGraph& graph, const TensorBindings& inputs, std::size_t threads) {
  return run_on(graph, inputs, TaskThreads(threads));
}

struct Case {
  EinGraph graph;
  LoweredPlan lowered;
  TensorBindings inputs;
  std::string text;
};

Case random_case(std::uint64_t seed) {
  Random random(seed);
  const std::string& text = program_of(seed);
  EinGraph graph = einrel::graph_of(text);
  LoweredPlan lowered = lower(graph, random_plan(random, graph));
  TensorBindings inputs = counted_inputs(graph);
  return {std::move(graph), std::move(lowered), std::move(inputs), "seed " + std::to_string(seed) + "\n" + text};
}

TaskGraph tasks_for(const Case& each, SiteMemory memory) {
  return tasks_of(each.lowered.ia.store, each.lowered.ia.plan, memory);
}

TEST(Tasks, ComputeWhatTheReferenceComputes) {
  for (std::uint64_t seed = 0; seed < 210; ++seed) {
    const Case each = random_case(seed);
    SCOPED_TRACE(each.text);
    expect_reference(each.graph, each.inputs, run_on(tasks_for(each, SiteMemory::shared), each.inputs, 1));
    expect_reference(each.graph, each.inputs, run_on(tasks_for(each, SiteMemory::apart), each.inputs, 1));
  }
}

TEST(Tasks, GiveTheSameBitsOnAnyExecutorAndNumberOfThreads) {
  for (std::uint64_t seed = 0; seed < 42; ++seed) {
    const Case each = random_case(seed);
    SCOPED_TRACE(each.text);
    const TaskGraph graph = tasks_for(each, SiteMemory::shared);
    const Outputs one = run_on(graph, each.inputs, 1);
    for (const Outputs& other :
         {run_on(graph, each.inputs, 2), run_side_by_side(graph, each.inputs, 1),
          run_side_by_side(graph, each.inputs, 3), run_side_by_side(graph, each.inputs, 16),
          run_by_starpu(graph, each.inputs, 3), run_on(tasks_for(each, SiteMemory::apart), each.inputs, 1)}) {
      for (const auto& [name, tensor] : one) EXPECT_TRUE(same_bits(tensor, other.at(name))) << name;
    }
  }
}

/// The most bytes that are made between two tasks that need the same part of an input, with what is read for the
/// second.
std::int64_t most_made_between_readers(const TaskGraph& graph) {
  std::vector<std::optional<std::int64_t>> needed(graph.arrays.size());
  std::int64_t made = 0;
  std::int64_t most = 0;
  for (const Task& task : graph.tasks) {
    for (const ArrayId read : task.reads) {
      std::optional<std::int64_t>& before = needed[read.index];
      if (!before) continue;
      most = std::max(most, made - *before);
      before = made;
    }
    made += bytes_made(graph, task);
    if (std::holds_alternative<ReadInput>(task.op)) needed[task.makes.front().index] = made;
  }
  return most;
}

TEST(Tasks, ReadPartsOfInputsRightBeforeTheyAreNeeded) {
  int again = 0;
  for (std::uint64_t seed = 0; seed < 42; ++seed) {
    const Case each = random_case(seed);
    SCOPED_TRACE(each.text);
    const TaskGraph before = tasks_for(each, seed % 2 == 0 ? SiteMemory::shared : SiteMemory::apart);
    const Outputs whole = run_on(before, each.inputs, 1);
    for (const std::int64_t most : {std::int64_t{1} << 40, std::int64_t{400}}) {
      TaskGraph graph = before;
      read_late(graph, most);
      const bool reads_again = graph.tasks.size() > before.tasks.size();
      EXPECT_FALSE(reads_again && most > 400);
      again += reads_again ? 1 : 0;
      for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
        if (!std::holds_alternative<ReadInput>(graph.tasks[t].op)) continue;
        std::size_t reader = t + 1;
        while (std::holds_alternative<ReadInput>(graph.tasks.at(reader).op)) ++reader;
        const std::vector<ArrayId>& reads = graph.tasks[reader].reads;
        EXPECT_NE(std::find(reads.begin(), reads.end(), graph.tasks[t].makes.front()), reads.end());
      }
      const std::int64_t read_for_one_task = 4000;
      EXPECT_LE(most_made_between_readers(graph), most + read_for_one_task);
      const Outputs late = run_on(graph, each.inputs, 1);
      for (const auto& [name, tensor] : whole) EXPECT_TRUE(same_bits(tensor, late.at(name))) << name;
    }
    expect_reference(each.graph, each.inputs, whole);
  }
  EXPECT_GT(again, 5);
}

TEST(Tasks, SendExactlyTheBytesThatThePlanCounts) {
  for (std::uint64_t seed = 0; seed < 210; ++seed) {
    const Case each = random_case(seed);
    SCOPED_TRACE(each.text);
    const TaskGraph graph = tasks_for(each, SiteMemory::apart);
    const Traffic traffic = bytes_of(each.lowered.ia.store, each.lowered.ia.plan);
    std::vector<std::int64_t> sent(traffic.sent.size(), 0);
    std::vector<std::int64_t> received(traffic.sent.size(), 0);
    for (const Task& task : graph.tasks) {
      if (!std::holds_alternative<Send>(task.op)) continue;
      const TaskArray& array = graph[task.reads.front()];
      EXPECT_NE(array.site, graph[task.makes.front()].site);
      sent[static_cast<std::size_t>(array.site)] += bytes_of(array);
      received[static_cast<std::size_t>(graph[task.makes.front()].site)] += bytes_of(array);
    }
    EXPECT_EQ(sent, traffic.sent);
    EXPECT_EQ(received, traffic.received);
  }
}

TEST(Tasks, ReadOnlyWhatLiesOnTheirSite) {
  for (std::uint64_t seed = 0; seed < 70; ++seed) {
    const Case each = random_case(seed);
    SCOPED_TRACE(each.text);
    const TaskGraph graph = tasks_for(each, SiteMemory::apart);
    std::vector<bool> is_made(graph.arrays.size(), false);
    for (const Task& task : graph.tasks) {
      for (const ArrayId read : task.reads) {
        EXPECT_TRUE(is_made[read.index]);
        EXPECT_TRUE(std::holds_alternative<Send>(task.op) || graph[read].site == site_of(graph, task));
      }
      for (const ArrayId made : task.makes) is_made[made.index] = true;
    }
  }
}

/// A task that puts an array together takes twice that array.
bool puts_together_parts_alone(const TaskGraph& graph) {
  return std::all_of(graph.tasks.begin(), graph.tasks.end(), [&](const Task& task) {
    const bool puts_together = std::holds_alternative<CopyBoxes>(task.op) && task.reads.size() > 1;
    return !puts_together || bytes_needed(graph, task) <= 2 * bytes_of(graph[task.makes.front()]);
  });
}

TEST(Tasks, CutOutThePartsThatArePutTogether) {
  int cut = 0;
  for (std::uint64_t seed = 0; seed < 105; ++seed) {
    const Case each = random_case(seed);
    SCOPED_TRACE(each.text);
    for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
      TaskGraph graph = tasks_for(each, memory);
      const Outputs whole = run_on(graph, each.inputs, 1);
      cut += puts_together_parts_alone(graph) ? 0 : 1;
      cut_parts_out(graph, 0);
      EXPECT_TRUE(puts_together_parts_alone(graph));
      const Outputs parts = run_on(graph, each.inputs, 1);
      for (const auto& [name, tensor] : whole) EXPECT_TRUE(same_bits(tensor, parts.at(name))) << name;
      const std::size_t tasks = graph.tasks.size();
      cut_parts_out(graph, 1 << 20);
      EXPECT_EQ(graph.tasks.size(), tasks);
    }
  }
  EXPECT_GT(cut, 20);
}

std::int64_t calls_of(const TaskGraph& graph, bool onto) {
  return std::count_if(graph.tasks.begin(), graph.tasks.end(), [&](const Task& task) {
    const auto* const call = std::get_if<CallKernel>(&task.op);
    return call != nullptr && call->onto == onto;
  });
}

TEST(Tasks, ReduceThePartsOfALabelOntoOneResult) {
  // One site, 5 parts of what is reduced: each goes into the result as it is; a mean and bf16 end in a step more.
  const std::vector<std::pair<std::string, std::int64_t>> cases{
      {"sum[j] X[i,j] * Y[j,k]", 1},   {"prod[j] (X[i,j] + Y[j,k])", 1}, {"max[j] abs(X[i,j] - Y[j,k])", 1},
      {"min[j] (X[i,j] + Y[j,k])", 1}, {"any[j] (X[i,j] > Y[j,k])", 1},  {"all[j] (X[i,j] > Y[j,k])", 1},
      {"mean[j] X[i,j] * Y[j,k]", 2}};
  for (const std::string dtype : {"f32", "f64", "bf16", "i32", "i64"}) {
    for (const auto& [body, calls] : cases) {
      if (body.substr(0, 4) == "mean" && dtype[0] == 'i') continue;
      const std::string text = "dims i=6 j=23 k=4\ninput X[i,j], Y[j,k] : " + dtype + "\nZ[i,k] = " + body + "\n";
      SCOPED_TRACE(text);
      EinGraph graph = einrel::graph_of(text);
      Plan plan{"by hand", 1, {}};
      for (const Vertex& vertex : graph.vertices)
        plan.vertices.push_back(one_part_per_site(PartitionVector(label_names(vertex).size(), 1)));
      plan.vertices[2].parts[2] = 5;
      TensorBindings inputs = counted_inputs(graph);
      const Case each{graph, lower(graph, plan), std::move(inputs), text};
      for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
        const TaskGraph tasks = tasks_for(each, memory);
        EXPECT_EQ(calls_of(tasks, true), 4);
        EXPECT_LE(calls_of(tasks, false), 2);
        const Outputs outputs = run_on(tasks, each.inputs, 2);
        if (memory == SiteMemory::shared) {
          EXPECT_TRUE(same_bits(run_side_by_side(tasks, each.inputs, 2).at("Z"), outputs.at("Z")));
          EXPECT_TRUE(same_bits(run_by_starpu(tasks, each.inputs, 1).at("Z"), outputs.at("Z")));
        }
        const std::vector<Tensor> want = evaluate_reference(graph, each.inputs, {});
        const double narrow = dtype == "bf16" ? 1.0 / 128 : 1e-5;
        std::vector<double> allowed;
        for (const double value : values_of(want[0])) allowed.push_back(narrow * std::max(1.0, std::abs(value)));
        EXPECT_TRUE(agree(outputs.at("Z"), want[0], allowed));
      }
    }
  }
}

TEST(Tasks, HoldNoValuesOfLabels) {
  // Every label is cut into 4 parts: kernels know where they are from no array, neither made nor sent.
  for (const std::string statements :
       {"S[] = sum[i] i", "S[i] = i * 2", "S[i,j] = where(i >= j, X[i,j], 0)", "S[] = argmax[i] Y[i]",
        "S[j] = argmin[i] X[i,j] * Y[i]", "S[i,j] = j", "S[i] = sum[j] X[i,j] * j + i"}) {
    SCOPED_TRACE(statements);
    const EinGraph graph = einrel::graph_of("dims i=40 j=24\ninput X[i,j], Y[i]\n" + statements + "\noutput S\n");
    Plan plan{"by hand", 2, {}};
    for (const Vertex& vertex : graph.vertices) {
      plan.vertices.push_back(one_part_per_site(PartitionVector(label_names(vertex).size(), 1)));
      VertexPlan& last = plan.vertices.back();
      last.grid.front() = 2;
      last.strides.front() = 1;
      std::fill(last.parts.begin(), last.parts.end(), 4);
    }
    const TensorBindings inputs = counted_inputs(graph);
    const LoweredPlan lowered = lower(graph, plan);
    const Traffic traffic = bytes_of(lowered.ia.store, lowered.ia.plan);
    for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
      const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, memory);
      std::int64_t sent = 0;
      for (const Task& task : tasks.tasks) {
        if (std::holds_alternative<Send>(task.op)) sent += bytes_of(tasks[task.makes.front()]);
      }
      EXPECT_TRUE(std::none_of(tasks.kernels.begin(), tasks.kernels.end(),
                               [](const TaskKernel& kernel) { return kernel.steps.name == "positions"; }));
      EXPECT_EQ(sent, memory == SiteMemory::apart ? traffic.total : 0);
      expect_reference(graph, inputs, run_on(tasks, inputs, 1));
    }
  }
}

/// What kernels read at constants is cut out before: of a file, and of chunks that are put together.
TEST(Tasks, ReadNoMoreThanTheConstantsOfADimension) {
  const std::vector<std::pair<std::string, std::int64_t>> cases{
      {"S[i] = X[3,i] + X[90,i]", 88},
      {"S[i] = X[3,i] * X[5,i]", 3},
      {"A[t,i] = 2 * X[t,i]\nS[i] = A[7,i] * Y[i,50]", 1},
      {"A[t,i] = 2 * X[t,i]\nS[i] = A[74,i] * A[75,i] * Y[i,0]", 2},
      {"S[] = sum[i] Y[i,99] * pad(X[0,i], 0)", 4},
      {"S[i] = sum[t] Y[i,t] * X[t,2]", 100},
  };
  for (const auto& [statements, most] : cases) {
    SCOPED_TRACE(statements);
    const EinGraph graph = einrel::graph_of("dims t=100 i=4\ninput X[t,i], Y[i,t]\n" + statements + "\noutput S\n");
    Plan plan{"by hand", 2, {}};
    for (const Vertex& vertex : graph.vertices) {
      VertexPlan& cut = plan.vertices.emplace_back(one_part_per_site(PartitionVector(label_names(vertex).size(), 1)));
      cut.parts.front() = 4;
      cut.grid.front() = 2;
      cut.strides.front() = 1;
    }
    const TensorBindings inputs = counted_inputs(graph);
    const LoweredPlan lowered = lower(graph, plan);
    for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
      const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, memory);
      for (const Task& task : tasks.tasks) {
        const auto* const call = std::get_if<CallKernel>(&task.op);
        if (call == nullptr || tasks.kernels[call->kernel].steps.name == "A") continue;
        for (const ArrayId read : task.reads) EXPECT_LE(element_count(tasks[read].bound), most);
      }
      expect_reference(graph, inputs, run_on(tasks, inputs, 1));
    }
  }
}

/// Thousands of equal partial results, added to one another in f32: roundings of a sum that grows all the way would
/// add up to more.
TEST(Tasks, FoldManyPartialResultsInRuns) {
  constexpr std::int64_t parts = 8192;
  const float value = 1.9F;
  for (const std::string body : {"sum[j] X[j] * Y[j]", "sum[j] X[j]"}) {
    SCOPED_TRACE(body);
    const EinGraph graph = einrel::graph_of("dims j=8192\ninput X[j], Y[j]\nZ[] = " + body + "\nW[j] = Y[j] + 1\n");
    Plan plan{"by hand", 1, {}};
    for (const Vertex& vertex : graph.vertices)
      plan.vertices.push_back(one_part_per_site(PartitionVector(label_names(vertex).size(), 1)));
    for (auto& vertex : plan.vertices) vertex.parts = {parts};
    const LoweredPlan lowered = lower(graph, plan);
    Tensor x(DType::f32, make_shape({parts}));
    Tensor y(DType::f32, make_shape({parts}));
    std::fill_n(reinterpret_cast<float*>(x.mutable_data()), parts, value);
    std::fill_n(reinterpret_cast<float*>(y.mutable_data()), parts, 1.0F);
    const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
    const Outputs outputs = run_on(tasks, {{"X", x}, {"Y", y}}, 2);
    const double want = static_cast<double>(parts) * static_cast<double>(value);
    constexpr double most_units = 512 + parts / 512;
    EXPECT_LE(std::abs(static_cast<double>(outputs.at("Z").load<float>(0)) - want), most_units * 0x1p-24 * want);
  }
}

TEST(Tasks, BeginWithWhatDoesNotHaveToCome) {
  // Each of three sites has a third of B, and needs all of it, piece by piece.
  const EinGraph graph = einrel::graph_of("dims i=6 j=9 k=4\ninput A[i,j], B[j,k]\nZ[i,k] = sum[j] A[i,j] * B[j,k]\n");
  Plan plan{"by hand", 3, {one_part_per_site({3, 1}), one_part_per_site({3, 1}), one_part_per_site({3, 1, 1})}};
  plan.vertices[0].parts[1] = 3;
  plan.vertices[2].parts[2] = 3;
  const TensorBindings inputs = counted_inputs(graph);
  const LoweredPlan lowered = lower(graph, plan);
  const TaskGraph apart = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::apart);
  std::set<std::size_t> sent;
  std::vector<std::vector<bool>> come(3);  // per site, of its calls one after the other
  for (const Task& task : apart.tasks) {
    if (std::holds_alternative<Send>(task.op)) sent.insert(task.makes.front().index);
    if (!std::holds_alternative<CallKernel>(task.op)) continue;
    const bool has_come = sent.count(task.reads[0].index) + sent.count(task.reads[1].index) > 0;
    come[static_cast<std::size_t>(apart[task.makes.front()].site)].push_back(has_come);
  }
  EXPECT_EQ(come, std::vector<std::vector<bool>>(3, {false, true, true}));
  const TaskGraph shared = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
  EXPECT_TRUE(same_bits(run_on(apart, inputs, 1).at("Z"), run_on(shared, inputs, 1).at("Z")));
  expect_reference(graph, inputs, run_on(shared, inputs, 2));
}

TEST(Tasks, KeepAResultThatSeveralNeedOutOfOthersWay) {
  // Both sums have the same products; what one is reduced onto must not be what the other reads.
  const EinGraph graph = einrel::graph_of(
      "dims i=6 j=8 k=4\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\nV[i,k] = sum[j] X[i,j] * Y[j,k]\n"
      "W[i,k] = Z[i,k] - V[i,k]\noutput Z, V, W\n");
  Plan plan{"by hand", 1, {}};
  for (const Vertex& vertex : graph.vertices)
    plan.vertices.push_back(one_part_per_site(PartitionVector(label_names(vertex).size(), 1)));
  plan.vertices[2].parts[2] = 4;
  plan.vertices[3].parts[2] = 5;
  const TensorBindings inputs = counted_inputs(graph);
  const LoweredPlan lowered = lower(graph, plan);
  const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
  EXPECT_EQ(calls_of(tasks, true), 3 + 4);
  expect_reference(graph, inputs, run_on(tasks, inputs, 1));
  expect_reference(graph, inputs, run_side_by_side(tasks, inputs, 2));
  expect_reference(graph, inputs, run_by_starpu(tasks, inputs, 2));
}

TEST(Tasks, BroadcastAlongATree) {
  // B is needed on all 8 sites; the one that has it gives it to two, and they go on.
  const EinGraph graph = einrel::graph_of(
      "dims i=8 j=3 k=5\ninput A[i,j], B[j,k]\nY[j,k] = B[j,k] * 2\nZ[i,k] = sum[j] A[i,j] * Y[j,k]\n");
  Plan plan{"by hand", 8, {}};
  for (const Vertex& vertex : graph.vertices)
    plan.vertices.push_back(one_part_per_site(PartitionVector(label_names(vertex).size(), 1)));
  plan.vertices[0] = one_part_per_site({8, 1});
  plan.vertices[3] = one_part_per_site({8, 1, 1});
  ASSERT_EQ(label_names(graph.vertices[3]), (std::vector<std::string>{"i", "k", "j"}));
  const LoweredPlan lowered = lower(graph, plan);
  const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::apart);
  std::vector<int> gives(8, 0);
  std::size_t sends = 0;
  for (const Task& task : tasks.tasks) {
    if (!std::holds_alternative<Send>(task.op)) continue;
    ++gives[static_cast<std::size_t>(tasks[task.reads.front()].site)];
    ++sends;
  }
  EXPECT_EQ(sends, 7U);
  EXPECT_EQ(gives, (std::vector<int>{2, 2, 2, 1, 0, 0, 0, 0}));
}

TEST(Tasks, OfOneMemoryComputeOnceWhatManySitesNeed) {
  // Everything on every site, by Table 1: six sites would compute the same six times.
  const EinGraph graph = einrel::graph_of("dims i=4 j=3\ninput A[i,j]\nZ[i,j] = A[i,j] * 2\n");
  Plan plan{"by hand", 6, {}};
  for (const Vertex& vertex : graph.vertices)
    plan.vertices.push_back(one_part_per_site(PartitionVector(label_names(vertex).size(), 1)));
  const LoweredPlan lowered = lower(graph, plan);
  IaStore store(6);
  const IaNode& input = lowered.ia.store[IaId{0}];
  const IaId everywhere = store.add(Bcast{}, {store.add(input.op)});
  const auto* transform = std::get_if<LocalMap>(&lowered.ia.store[IaId{1}].op);
  ASSERT_NE(transform, nullptr);
  const IaId reduced = store.add(*transform, {everywhere});
  const auto kernel_calls = [&](SiteMemory memory) {
    const TaskGraph tasks = tasks_of(store, {{"Z", reduced}}, memory);
    return std::count_if(tasks.tasks.begin(), tasks.tasks.end(),
                         [](const Task& task) { return std::holds_alternative<CallKernel>(task.op); });
  };
  EXPECT_EQ(kernel_calls(SiteMemory::shared), 1);
  EXPECT_EQ(kernel_calls(SiteMemory::apart), 6);
}

TEST(Tasks, ComputeBothFactorsOfAMatrixByOneCall) {
  // The dimensions of one of them are turned, the other one is read again.
  const std::string text =
      "dims b=2 i=4 j=3\ninput B[b,i,j] : f64\nA[b,i,j] = B[b,i,j] + where(i == j, 50, 0)\n"
      "Q[k,b,i] = qr_q[i,j,k](A[b,i,j])\nR[b,k,j] = qr_r[i,j,k](A[b,i,j])\nZ[b,k] = sum[j] R[b,k,j] * j\n";
  const auto factorizations = [](const TaskGraph& tasks) {
    return std::count_if(tasks.tasks.begin(), tasks.tasks.end(), [&](const Task& task) {
      const auto* const call = std::get_if<CallKernel>(&task.op);
      return call != nullptr && opaque_of(tasks.kernels[call->kernel].steps.steps.front()) != nullptr;
    });
  };
  const EinGraph graph = einrel::graph_of(text + "output Q, R, Z\n");
  const TensorBindings inputs = counted_inputs(graph);
  const LoweredPlan whole = lower(graph, whole_plan(graph));
  Plan plan{"by hand", 2, {}};  // every b on a site of its own
  for (const Vertex& vertex : graph.vertices) {
    PartitionVector parts;
    for (const std::string& label : label_names(vertex))
      parts.push_back(label == "b" || (is_input(vertex) && label == "0") ? 2 : 1);
    plan.vertices.push_back(one_part_per_site(parts));
  }
  const LoweredPlan cut = lower(graph, plan);
  for (const SiteMemory memory : {SiteMemory::shared, SiteMemory::apart}) {
    const TaskGraph tasks = tasks_of(whole.ia.store, whole.ia.plan, memory);
    EXPECT_EQ(factorizations(tasks), 1);
    expect_reference(graph, inputs, run_on(tasks, inputs, 1));
    const TaskGraph of_two = tasks_of(cut.ia.store, cut.ia.plan, memory);
    EXPECT_EQ(factorizations(of_two), 2);
    expect_reference(graph, inputs, run_on(of_two, inputs, 1));
  }
  const EinGraph one = einrel::graph_of(text + "output Z\n");
  const LoweredPlan alone = lower(one, whole_plan(one));
  expect_reference(one, inputs, run_on(tasks_of(alone.ia.store, alone.ia.plan, SiteMemory::shared), inputs, 1));
}

TEST(Tasks, OfFactorsGiveTheReferencesForAllPlans) {
  const std::string text =
      "dims b=3 c=2 i=5 j=3\ninput A[b,i,c,j] : f64\nQ[k,b,c,i] = qr_q[i,j,k](A[b,i,c,j])\n"
      "R[c,b,k,j] = qr_r[i,j,k](A[b,i,c,j])\nW[b,c,j,k] = qr_q[j,i,k](2 * A[b,i,c,j])\n"
      "Z[b,c,i] = sum[k] Q[k,b,c,i] * W[b,c,k,k] + sum[k] R[c,b,k,k]\noutput Q, R, Z, W\n";
  const EinGraph graph = einrel::graph_of(text);
  const TensorBindings inputs = counted_inputs(graph);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const Case each{graph, lower(graph, random_plan(random, graph)), inputs, text};
    SCOPED_TRACE(seed);
    expect_reference(graph, inputs, run_on(tasks_for(each, SiteMemory::shared), inputs, 2));
    expect_reference(graph, inputs, run_side_by_side(tasks_for(each, SiteMemory::shared), inputs, 2));
    expect_reference(graph, inputs, run_on(tasks_for(each, SiteMemory::apart), inputs, 1));
  }
}

TEST(Tasks, ThatComputeTheSameShareAKernelWhateverItIsNamed) {
  const std::string text =
      "dims i=4 j=4\ninput X[i]\nA[i] = tanh(2 * X[i]) + i\nB[i] = tanh(2 * A[i]) + i\nC[i] = tanh(3 * B[i]) + i\n"
      "D[i] = tanh(2 * C[i]) - i\nE[j] = tanh(2 * D[j]) + j\nF[j] = sum[i] E[i] * j\noutput A, B, C, D, E, F\n";
  const EinGraph graph = einrel::graph_of(text);
  Plan plan{"by hand", 1, {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) plan.vertices.push_back(one_part_per_site({1}));
  plan.vertices.back() = one_part_per_site({1, 1});
  const TensorBindings inputs = counted_inputs(graph);
  const Case each{graph, lower(graph, plan), inputs, text};
  const TaskGraph tasks = tasks_for(each, SiteMemory::shared);
  ChunkKernels kernels(tasks, {});
  std::set<const ChunkKernel*> made;
  std::vector<const ChunkKernel*> in_order;
  for (const Task& task : tasks.tasks) {
    const auto* const call = std::get_if<CallKernel>(&task.op);
    if (call == nullptr) continue;
    const std::vector<ArrayLayout> reads(task.reads.size(), layout_of(inputs.at("X")));
    in_order.push_back(&kernels(*call, reads));
    made.insert(in_order.back());
  }
  ASSERT_EQ(in_order.size(), 6U);
  EXPECT_EQ(in_order[0], in_order[1]);
  EXPECT_EQ(made.size(), 5U);
  expect_reference(graph, inputs, run_on(tasks, inputs, 2));
}

TEST(Tasks, ViewInKernelsAndMakeAViewForOthersOnly) {
  const std::string text =
      "dims h=2 d=3 i=6 k=4\ninput X[i,k]\nA[i,k] = X[i,k] * 2\nV[h,d,k] = view A[(h d),k]\nW[k,h,d] = view V[h,d,k]\n"
      "B[h,k] = sum[d] V[h,d,k] * V[h,d,k]\nC[d,k] = max[h] W[k,h,d]\n";
  const auto tasks_of_whole = [](const EinGraph& graph) {
    const LoweredPlan lowered = lower(graph, whole_plan(graph));
    return tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
  };
  const auto calls = [](const TaskGraph& tasks) {
    return std::count_if(tasks.tasks.begin(), tasks.tasks.end(),
                         [](const Task& task) { return std::holds_alternative<CallKernel>(task.op); });
  };
  const EinGraph seen = einrel::graph_of(text + "output B, C\n");
  EXPECT_EQ(calls(tasks_of_whole(seen)), 3);  // A, B, C
  expect_reference(seen, counted_inputs(seen), run_on(tasks_of_whole(seen), counted_inputs(seen), 2));
  const EinGraph wanted = einrel::graph_of(text + "output B, C, V, W\n");
  EXPECT_EQ(calls(tasks_of_whole(wanted)), 5);
  expect_reference(wanted, counted_inputs(wanted), run_on(tasks_of_whole(wanted), counted_inputs(wanted), 2));
}

TEST(Tasks, GiveTheSameBitsOfAViewThatMovesAsAWhole) {
  // Of two parts of c the last one is the last of three, on another site.
  const std::string text =
      "dims a=3 c=3 e=64 m=1000\ninput X[a,c,e,m], y[m]\nQ[a,c,e,m] = X[a,c,e,m] * 1.0001 + 0.1\n"
      "V[a,c,m,e] = view Q[a,c,e,m]\nR[a,c,e] = sum[m] V[a,c,m,e] * y[m]\noutput R\n";
  const EinGraph graph = einrel::graph_of(text);
  Plan plan{"by hand", 3, {}};
  for (const Vertex& vertex : graph.vertices) {
    PartitionVector parts(label_extents(vertex).size(), 1);
    if (parts.size() > 1) parts[1] = vertex.name == "R" ? 3 : 2;
    plan.vertices.push_back(one_part_per_site(parts));
  }
  const TensorBindings inputs = counted_inputs(graph);
  const Case each{graph, lower(graph, plan), inputs, text};
  const Outputs shared = run_on(tasks_for(each, SiteMemory::shared), inputs, 1);
  const Outputs apart = run_on(tasks_for(each, SiteMemory::apart), inputs, 1);
  EXPECT_TRUE(same_bits(shared.at("R"), apart.at("R")));
}

TEST(Tasks, AreMoreThanMayBeUnderWayAtATime) {
  // 512 at a time: a wide program, whose tasks wait for nothing, and a long one, where each waits.
  std::string text = "dims i=6\ninput X0[i], Y[i]\n";
  std::string outputs = "output X300";
  for (int s = 1; s <= 300; ++s) {
    const std::string number = std::to_string(s);
    text += "X" + number + "[i] = X" + std::to_string(s - 1) + "[i] * 0.5 + Y[i]\n";
    text += "W" + number + "[i] = Y[i] * " + number + "\n";
    outputs += ", W" + number;
  }
  const EinGraph graph = einrel::graph_of(text + outputs + "\n");
  Plan plan{"by hand", 3, {}};
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) plan.vertices.push_back(one_part_per_site({3}));
  const LoweredPlan lowered = lower(graph, plan);
  const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
  ASSERT_GT(tasks.tasks.size(), 2 * 512U);
  const TensorBindings inputs = counted_inputs(graph);
  expect_reference(graph, inputs, run_side_by_side(tasks, inputs, 3));
  expect_reference(graph, inputs, run_by_starpu(tasks, inputs, 3));
}

TEST(Tasks, GiveTheErrorOfAnInputToTheCaller) {
  // A reader that fails: what it threw reaches the caller of any executor, and nothing hangs.
  const EinGraph graph = einrel::graph_of("dims i=4\ninput A[i]\nZ[i] = A[i] * 2\nY[i] = Z[i] + 1\n");
  Plan plan{"by hand", 2, {}};
  for (const Vertex& vertex : graph.vertices)
    plan.vertices.push_back(one_part_per_site(PartitionVector(label_names(vertex).size(), 2)));
  const LoweredPlan lowered = lower(graph, plan);
  const TaskGraph tasks = tasks_of(lowered.ia.store, lowered.ia.plan, SiteMemory::shared);
  Outputs outputs = output_tensors(tasks);
  const InputMaker failing = [](const std::vector<std::int64_t>&, const Shape&, std::byte*) {
    throw RunError("the disk is gone");
  };
  const TaskBindings bindings{{failing}, writers_to(outputs, tasks), {}};
  EXPECT_THROW(run_once(tasks, bindings, SerialExecutor(1)), RunError);
  EXPECT_THROW(run_once(tasks, bindings, TaskThreads(2)), RunError);
  EXPECT_THROW(run_once(tasks, bindings, StarpuExecutor({2, std::int64_t{1}, {testing::TempDir(), {}}}, {})), RunError);
}

}  // namespace
}  // namespace einrel::test
