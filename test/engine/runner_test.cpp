#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "base/error.h"
#include "einsum/reference.h"
#include "engine/compile.h"
#include "engine/random_input.h"
#include "engine/run.h"
#include "support/compare.h"
#include "support/program.h"

namespace einrel::test {
namespace {

using testing::HasSubstr;

Compiled compiled_of(const std::string& text) { return compile("test.ein", graph_of(text)); }

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

/// Every output against the reference, and the same bits as by `run`.
void expect_right(Runner& runner, const std::vector<Tensor>& inputs, const ScalarBindings& scalars, Workers& workers) {
  const EinGraph& graph = runner.compiled().graph;
  const std::vector<Tensor> got = runner.run(inputs, scalars, workers);
  const std::vector<Tensor> want = evaluate_reference(graph, by_name(graph, inputs), scalars);
  const RunReport report = run(runner.compiled(), by_name(graph, inputs), scalars, workers);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t o = 0; o < want.size(); ++o) {
    const std::vector<double> allowed(static_cast<std::size_t>(want[o].count()), 1e-5);
    EXPECT_TRUE(agree(got[o], want[o], allowed));
    EXPECT_EQ(values_of(got[o]), values_of(report.outputs.at(graph[graph.outputs[o]].name)));
  }
}

/// Views that share and one that must copy, a fusion, products, and outputs of every kind: an input, views of an input
/// and of what is computed.
const char* const varied =
    "dims i=6 j=4 k=5\nscalar a = 2\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n"
    "E[i,k] = exp(Z[i,k] * a)\nS[i] = sum[k] E[i,k]\nP[i,k] = E[i,k] / S[i]\nT[(k i)] = view P[i,k]\n"
    "F[(i j)] = view X[i,j]\nV[(i k)] = view Z[i,k]\nW[m] = T[m] + V[m]\noutput W, P, V, F, X\n";

class Runners : public testing::TestWithParam<std::size_t> {
 protected:
  Workers workers{GetParam()};
};

TEST_P(Runners, GiveTheSameForInputsOfAnyLayoutsInAnyOrder) {
  Runner runner(compiled_of(varied));
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const std::vector<Tensor> plain = random_inputs(runner.compiled().graph, seed);
    expect_right(runner, plain, {{"a", 2}}, workers);
    expect_right(runner, {column_major(plain[0]), plain[1]}, {{"a", 2}}, workers);
    expect_right(runner, {plain[0], misaligned(plain[1])}, {{"a", 2}}, workers);
    expect_right(runner, {misaligned(column_major(plain[0])), column_major(plain[1])}, {{"a", 2}}, workers);
  }
}

TEST_P(Runners, TakeNewValuesOfScalars) {
  Runner runner(compiled_of(varied));
  const std::vector<Tensor> inputs = random_inputs(runner.compiled().graph, 1);
  for (int round = 0; round < 2; ++round) {
    for (int a = -6; a <= 6; ++a) expect_right(runner, inputs, {{"a", a / 4.0}}, workers);
  }
}

TEST_P(Runners, ComputeProductsOfEverySmallShape) {
  for (const int i : {1, 2, 3, 4, 7, 16, 33}) {
    for (const int j : {1, 2, 4, 5, 16, 31}) {
      for (const int k : {1, 3, 4, 8, 17, 64}) {
        Runner runner(compiled_of("dims i=" + std::to_string(i) + " j=" + std::to_string(j) + " k=" +
                                  std::to_string(k) + "\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n"));
        const std::vector<Tensor> inputs = random_inputs(runner.compiled().graph, 1);
        expect_right(runner, inputs, {}, workers);
        expect_right(runner, inputs, {}, workers);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, Runners, testing::Values(1, 3));

TEST(Runner, LeavesEarlierOutputsAlone) {
  std::vector<Tensor> kept;
  {
    Runner runner(compiled_of("dims i=3\ninput X[i]\nY[i] = X[i] + 1\n"));
    Workers one;
    for (int value = 0; value < 100; ++value) {
      const double x = value;
      kept.push_back(runner.run({{tensor_of(DType::f32, make_shape({3}), {x, x, x})}}, {}, one).front());
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const double want = static_cast<double>(i) + 1;
    EXPECT_EQ(values_of(kept[i]), (std::vector<double>{want, want, want}));
  }
}

TEST(Runner, RefusesOtherInputsThanTheProgramHas) {
  Runner runner(compiled_of("dims i=3\ninput X[i], Y[i]\nZ[i] = X[i] + Y[i]\n"));
  Workers one;
  const auto error = [&](const std::vector<Tensor>& inputs) -> std::string {
    try {
      runner.run(inputs, {}, one);
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

TEST(Run, FreesAnInputAfterItsLastUse) {
  const Compiled compiled = compiled_of(
      "dims i=2 j=2 m=4\ninput X[i,j], Y[m]\nV[(i j)] = view X[i,j]\nA[m] = V[3-m]\nB[m] = A[3-m]\noutput B, Y\n");
  std::vector<std::string> alive;
  TensorBindings inputs{{"Y", Tensor(DType::f32, make_shape({4}))}};
  std::weak_ptr<std::vector<float>> watched;
  {
    const auto elements = std::make_shared<std::vector<float>>(4);
    watched = elements;
    inputs["X"] =
        Tensor(DType::f32, make_shape({2, 2}), {2, 1}, reinterpret_cast<const std::byte*>(elements->data()), elements);
  }
  Workers one;
  const RunReport report = run(compiled, std::move(inputs), {}, one, [&](const RunProgress& progress) {
    if (!watched.expired()) alive.push_back(progress.vertex);
  });
  EXPECT_EQ(alive, (std::vector<std::string>{"V", "A"}));
  EXPECT_EQ(report.outputs.at("Y").count(), 4);
}

}  // namespace
}  // namespace einrel::test
