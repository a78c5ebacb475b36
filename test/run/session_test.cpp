#include "run/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/error.h"
#include "einsum/reference.h"
#include "exec/executors/process_turn.h"
#include "exec/executors/serial/shared_workers.h"
#include "run/compile.h"
#include "run/memory.h"
#include "run/random_input.h"
#include "support/compare.h"
#include "support/program.h"
#include "support/run_tasks.h"
#include "support/run_whole.h"

namespace einrel::test {
namespace {

using testing::HasSubstr;

/// The same elements one byte further on, where no element of several bytes is aligned.
Tensor misaligned(const Tensor& tensor) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(tensor.byte_count()) + 1);
  std::memcpy(bytes->data() + 1, tensor.data(), static_cast<std::size_t>(tensor.byte_count()));
  return Tensor(tensor.dtype(), tensor.shape(), tensor.strides(), bytes->data() + 1, bytes);
}

/// The same elements, the last dimension being that of the longest steps.
Tensor column_major(const Tensor& tensor) {
  std::vector<std::size_t> reversed;
  for (std::size_t d = tensor.rank(); d-- > 0;) reversed.push_back(d);
  return tensor.permuted(reversed).row_major().permuted(reversed);
}

std::vector<Tensor> random_inputs(const EinGraph& graph, std::uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const Vertex& vertex : graph.vertices) {
    if (std::holds_alternative<Input>(vertex.op)) {
      inputs.push_back(random_tensor(seed, vertex.name, vertex.dtype, vertex.bound));
    }
  }
  return inputs;
}

TensorBindings by_name(const EinGraph& graph, const std::vector<Tensor>& inputs) {
  TensorBindings named;
  std::size_t next = 0;
  for (const Vertex& vertex : graph.vertices) {
    if (std::holds_alternative<Input>(vertex.op)) named[vertex.name] = inputs[next++];
  }
  return named;
}

/// A program that runs whole, again and again.
class Whole {
 public:
  explicit Whole(const std::string& text, std::size_t threads = 1)
      : compiled_(compile("test.ein", graph_of(text))),
        tasks_(whole_tasks(compiled_)),
        session_(tasks_, {threads, {}}) {}

  const EinGraph& graph() const { return compiled_.graph; }
  std::vector<Tensor> run(const std::vector<Tensor>& inputs, const ScalarBindings& scalars = {}) {
    return session_.run(pointers_to({inputs.begin(), inputs.end()}), scalars).outputs;
  }
  Outputs once(const TensorBindings& inputs, const ScalarBindings& scalars) const {
    return run_whole(compiled_, inputs, scalars);
  }

 private:
  Compiled compiled_;
  PlannedTasks tasks_;
  Session session_;
};

/// Every output against the reference, and the same bits as by a session of its own that reports.
void expect_right(Whole& whole, const std::vector<Tensor>& inputs, const ScalarBindings& scalars) {
  const EinGraph& graph = whole.graph();
  const std::vector<Tensor> got = whole.run(inputs, scalars);
  const std::vector<Tensor> want = evaluate_reference(graph, by_name(graph, inputs), scalars);
  const Outputs once = whole.once(by_name(graph, inputs), scalars);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t o = 0; o < want.size(); ++o) {
    const std::vector<double> allowed(static_cast<std::size_t>(want[o].count()), 1e-5);
    EXPECT_TRUE(agree(got[o], want[o], allowed));
    EXPECT_EQ(values_of(got[o]), values_of(once.at(graph[graph.outputs[o]].name)));
  }
}

/// Views that share and one that must copy, a fusion, products, and outputs of every kind: an input, views of an input
/// and of what is computed.
const char* const varied =
    "dims i=6 j=4 k=5\nscalar a = 2\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n"
    "E[i,k] = exp(Z[i,k] * a)\nS[i] = sum[k] E[i,k]\nP[i,k] = E[i,k] / S[i]\nT[(k i)] = view P[i,k]\n"
    "F[(i j)] = view X[i,j]\nV[(i k)] = view Z[i,k]\nW[m] = T[m] + V[m]\noutput W, P, V, F, X\n";

class WholeSessions : public testing::TestWithParam<std::size_t> {};

TEST_P(WholeSessions, GiveTheSameForInputsOfAnyLayoutsInAnyOrder) {
  Whole whole(varied, GetParam());
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const std::vector<Tensor> plain = random_inputs(whole.graph(), seed);
    expect_right(whole, plain, {{"a", 2}});
    expect_right(whole, {column_major(plain[0]), plain[1]}, {{"a", 2}});
    expect_right(whole, {plain[0], misaligned(plain[1])}, {{"a", 2}});
    expect_right(whole, {misaligned(column_major(plain[0])), column_major(plain[1])}, {{"a", 2}});
  }
}

TEST_P(WholeSessions, TakeNewValuesOfScalars) {
  Whole whole(varied, GetParam());
  const std::vector<Tensor> inputs = random_inputs(whole.graph(), 1);
  for (int round = 0; round < 2; ++round) {
    for (int a = -6; a <= 6; ++a) expect_right(whole, inputs, {{"a", a / 4.0}});
  }
}

TEST_P(WholeSessions, TakeNewValuesOfScalarsForInputsThatLieInMoreWaysThanAreKept) {
  Whole whole(varied, GetParam());
  const std::vector<Tensor> plain = random_inputs(whole.graph(), 1);
  const std::array<Tensor (*)(const Tensor&), 4> ways{
      [](const Tensor& tensor) { return tensor; }, column_major, misaligned,
      [](const Tensor& tensor) { return misaligned(column_major(tensor)); }};
  for (int round = 0; round < 2; ++round) {
    double a = 2;
    for (const auto& x : ways) {
      for (const auto& y : ways) {
        expect_right(whole, {x(plain[0]), y(plain[1])}, {{"a", a}});
        a = a == 2 ? -0.5 : 2;
        expect_right(whole, {plain[0], plain[1]}, {{"a", a}});
      }
    }
  }
}

TEST_P(WholeSessions, ComputeProductsOfEverySmallShape) {
  for (const int i : {1, 2, 3, 4, 7, 16, 33}) {
    for (const int j : {1, 2, 4, 5, 16, 31}) {
      for (const int k : {1, 3, 4, 8, 17, 64}) {
        Whole whole("dims i=" + std::to_string(i) + " j=" + std::to_string(j) + " k=" + std::to_string(k) +
                        "\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n",
                    GetParam());
        const std::vector<Tensor> inputs = random_inputs(whole.graph(), 1);
        expect_right(whole, inputs, {});
        expect_right(whole, inputs, {});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, WholeSessions, testing::Values(1, 3));

TEST(WholeSession, LeavesEarlierOutputsAlone) {
  std::vector<Tensor> kept;
  {
    Whole whole("dims i=3\ninput X[i]\nY[i] = X[i] + 1\n");
    for (int value = 0; value < 100; ++value) {
      const double x = value;
      kept.push_back(whole.run({tensor_of(DType::f32, make_shape({3}), {x, x, x})}).front());
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const double want = static_cast<double>(i) + 1;
    EXPECT_EQ(values_of(kept[i]), (std::vector<double>{want, want, want}));
  }
}

TEST(WholeSession, RefusesOtherInputsThanTheProgramHas) {
  Whole whole("dims i=3\ninput X[i], Y[i]\nZ[i] = X[i] + Y[i]\n");
  const auto error = [&](const std::vector<Tensor>& inputs) -> std::string {
    try {
      whole.run(inputs);
    } catch (const UserError& refused) {
      return refused.what();
    }
    return "";
  };
  const Tensor three(DType::f32, make_shape({3}));
  EXPECT_EQ(error({three, three}), "");
  EXPECT_EQ(error({three}), "the program has 2 inputs, but 1 are given");
  EXPECT_EQ(error({three, three, three}), "the program has 2 inputs, but 3 are given");
  EXPECT_EQ(error({three, Tensor(DType::f32, make_shape({4}))}), "input 'Y' is f32 (3,), but f32 (4,) is given");
  EXPECT_EQ(error({Tensor(DType::f64, make_shape({3})), three}), "input 'X' is f32 (3,), but f64 (3,) is given");
}

TEST(WholeSession, TellsMinusZeroFromZero) {
  Whole whole("dims i=1\nscalar s\ninput X[i]\nY[i] = X[i] / s\n");
  const Tensor one = tensor_of(DType::f32, make_shape({1}), {1});
  for (const double zero : {0.0, -0.0, 0.0}) EXPECT_EQ(values_of(whole.run({one}, {{"s", zero}}).front())[0], 1 / zero);
}

TEST(WholeSession, KeepsNoInputAlive) {
  Whole whole("dims m=4\ninput X[m]\nA[m] = X[3-m]\nB[m] = A[3-m]\noutput B\n");
  std::weak_ptr<std::vector<float>> watched;
  {
    const auto elements = std::make_shared<std::vector<float>>(4);
    watched = elements;
    whole.run(
        {Tensor(DType::f32, make_shape({4}), {1}, reinterpret_cast<const std::byte*>(elements->data()), elements)});
  }
  EXPECT_TRUE(watched.expired());
}

/// Each way to keep within a limit: chunks that go to disk, by StarPU, and arrays that all fit.
std::vector<RunMemory> limits() {
  return {Spilling{std::int64_t{16} << 20, {testing::TempDir(), {}}}, InOrder{testing::TempDir()}};
}

/// What a session within a limit gives in three runs.
std::vector<Outputs> runs_within(const RunMemory& memory, const PlannedTasks& tasks, const TensorBindings& inputs) {
  Session session(tasks, {2, memory});
  std::vector<Outputs> runs(3);
  for (Outputs& outputs : runs) {
    outputs = output_tensors(tasks.graph);
    session.step(sources_of(inputs), writers_to(outputs, tasks.graph), {{"a", 2}});
  }
  return runs;
}

TEST(LimitedSessions, RunInSeveralThreadsOneAfterTheOther) {
  const Compiled compiled = compile("test.ein", graph_of(varied));
  const PlannedTasks tasks = whole_tasks(compiled);
  const TensorBindings inputs = by_name(compiled.graph, random_inputs(compiled.graph, 1));
  std::vector<RunMemory> memories = limits();
  memories.insert(memories.end(), memories.begin(), memories.end());
  std::vector<std::vector<Outputs>> got(memories.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < memories.size(); ++i)
      threads.emplace_back([&, i] { got[i] = runs_within(memories[i], tasks, inputs); });
  }
  for (const auto& [name, tensor] : run_whole(compiled, inputs, {{"a", 2}})) {
    for (const std::vector<Outputs>& runs : got) {
      ASSERT_EQ(runs.size(), 3);
      for (const Outputs& outputs : runs) EXPECT_TRUE(same_bits(outputs.at(name), tensor)) << name;
    }
  }
}

TEST(LimitedSessions, EndWhileTheyWaitForOthers) {
  const Compiled compiled = compile("test.ein", graph_of(varied));
  const PlannedTasks tasks = whole_tasks(compiled);
  const std::vector<InputSource> inputs = [&] {
    const std::vector<Tensor> tensors = random_inputs(compiled.graph, 1);
    return std::vector<InputSource>(tensors.begin(), tensors.end());
  }();
  const ProcessTurn of_another({});
  for (const RunMemory& memory : limits()) {
    Session session(tasks, {1, memory});
    std::stop_source stop;
    const std::jthread stops([&] { stop.request_stop(); });
    EXPECT_THROW(session.run(pointers_to(inputs), {{"a", 2}}, stop.get_token()), RunError);
  }
}

/// The address space of this process, in bytes.
std::int64_t address_space() {
  std::int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

TEST(IdleThreads, LeaveTheirMemoryToWhoNeedsIt) {
  constexpr std::int64_t kept = std::int64_t{512} << 20;
  constexpr std::int64_t left = std::int64_t{64} << 20;
  std::shared_ptr<std::byte> result;  // lives on, as outputs do
  {
    const SharedWorkers workers(3);
    result = (*workers).pool().allocate(std::size_t{1} << 20);
    (*workers).pool().allocate(kept);
  }
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const rlimit least{static_cast<rlim_t>(address_space() + left), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &least), 0);
  EXPECT_NO_THROW(check_available(2 * left, "computing 'Z'", "--memory SIZE"));
  EXPECT_THROW(check_available(2 * kept, "computing 'Z'", "--memory SIZE"), RunError);
  EXPECT_EQ(setrlimit(RLIMIT_AS, &before), 0);
}

}  // namespace
}  // namespace einrel::test
