#include "kernel/cancel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stop_token>
#include <string>
#include <vector>

#include "einsum/graph/vertex_facts.h"
#include "kernel/evaluate.h"
#include "support/program.h"

namespace einrel::test {
namespace {

/// A vertex of a hundredth of a second and more, and the kernel that computes it.
struct Slow {
  const char* kernel;
  const char* text;
};

class LongParts : public testing::TestWithParam<Slow> {
 protected:
  LongParts() : graph_(einrel::graph_of(GetParam().text)) {
    for (const Vertex& vertex : graph_.vertices) {
      if (!is_input(vertex)) continue;
      Tensor zeros(vertex.dtype, vertex.bound);
      std::fill_n(zeros.mutable_data(), zeros.byte_count(), std::byte{0});
      operands_.push_back(std::move(zeros));
    }
  }

  /// How often it is asked; from the question number `last` on, the answer is to stop.
  std::int64_t questions(std::size_t threads, std::int64_t last) {
    Workers workers(threads);
    std::atomic<std::int64_t> asked = 0;
    workers.cancel_when([&] { return ++asked >= last; });
    const auto run = [&] { evaluate(graph_.vertices.back(), operands_, {}, workers); };
    if (last == never) {
      run();
    } else {
      EXPECT_THROW(run(), Stopped);
    }
    return asked;
  }

  static constexpr std::int64_t never = INT64_MAX;
  EinGraph graph_;
  std::vector<Tensor> operands_;
};

TEST_P(LongParts, AskOftenWhetherTheyAreToStopAndDo) {
  std::vector<ArrayLayout> layouts;
  for (const Tensor& operand : operands_) layouts.push_back(layout_of(operand));
  EXPECT_EQ(choice_of(graph_.vertices.back(), layouts, {})->kernel, GetParam().kernel);
  const std::int64_t all = questions(1, never);
  EXPECT_GT(all, 100);  // of at most 64 parts
  EXPECT_EQ(questions(1, all / 2), all / 2);
  EXPECT_LE(questions(3, all / 2), all / 2 + 3);
}

INSTANTIATE_TEST_SUITE_P(
    OfKernels, LongParts,
    testing::Values(
        Slow{"blocks", "dims i=4000000\ninput X[i] : f64\nZ[] = sum[i] exp(X[i])\n"},
        Slow{"blocks", "dims i=3 j=1000000\ninput X[i] : f64\nZ[] = sum[i,j] X[i] * exp(f64(j) / 1000000)\n"},
        Slow{"blocks", "dims i=4000000\ninput X[i] : f32\nZ[i] = sin(X[i])\n"},
        Slow{"blocks", "dims i=2000 j=2000\ninput X[i,j] : f64\nZ[j] = max[i] X[i,j] * 2\n"},
        Slow{"packed", "dims i=1500 j=1500 k=1500\ninput X[i,j], Y[j,k] : f64\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n"},
        Slow{"dot", "dims i=12000 j=3000\ninput X[i,j], Y[j] : f32\nZ[i] = sum[j] X[i,j] * Y[j]\n"},
        Slow{"copy", "dims i=3000 j=3000\ninput X[i,j] : f64\nZ[j,i] = X[i,j]\n"}),
    [](const auto& test) { return std::string(test.param.kernel) + std::to_string(test.index); });

TEST(Cancel, AsksNobodyWhereNobodyIsToBeAsked) {
  EXPECT_NO_THROW(throw_if_cancelled());
  Workers workers;
  workers.cancel_on({});
  workers.run({0, 0, {{1, [](const Arrays&, Workspace, std::int64_t) { throw_if_cancelled(); }}}}, {});
  std::stop_source stop;
  workers.cancel_on(stop.get_token());
  const PreparedKernel stops{0, 0, {{1, [&](const Arrays&, Workspace, std::int64_t) {
                                       stop.request_stop();
                                       throw_if_cancelled();
                                     }}}};
  EXPECT_THROW(workers.run(stops, {}), Stopped);
  EXPECT_NO_THROW(throw_if_cancelled());
}

}  // namespace
}  // namespace einrel::test
