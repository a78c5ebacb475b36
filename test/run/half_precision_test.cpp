#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "einsum/check/check.h"
#include "einsum/reference.h"
#include "plan/planners/planner.h"
#include "run/compile.h"
#include "run/planned_tasks.h"
#include "support/program.h"
#include "support/rounds.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

/// A value over some of b, i and j that does not vary much less than it is large: differences of large numbers, whose
/// parts no narrow float holds, divided by what is large.
class StatementGenerator {
 public:
  explicit StatementGenerator(std::mt19937& random) : random_(random) {}

  std::string statement() {
    switch (random_() % 9) {
      case 0: return "layernorm[i](" + large() + ", 0.001)";
      case 1: return "rmsnorm[i](" + large() + ", 0.001)";
      case 2: return "softmax[i](" + centred() + ")";
      case 3: return "logsoftmax[i](" + centred() + ")";
      case 4: return centred() + " * " + spread();
      case 5: return centred() + " / " + spread();
      case 6: return "sum[j] (" + centred() + ") * W[i,j] * (Y[b,j] - mean[j] Y[b,j]) + " + centred();
      case 7: return "(" + large() + " - max[i] " + large() + ") / (1 + " + spread() + ")";
      default: return "where(X[b,i] > mean[i] X[b,i], " + centred() + ", " + spread() + ")";
    }
  }

 private:
  std::string large() { return one_of({"X[b,i]", "(X[b,i] * 2)", "(X[b,i] + mean[j] Y[b,j])"}); }
  std::string centred() {
    return one_of({"(X[b,i] - mean[i] X[b,i])", "(X[b,i] - logsumexp[i] X[b,i])",
                   "(X[b,i] + X[b,i] - 2 * mean[b,i] X[b,i])",
                   "(X[b,i] - mean[b] X[b,i] + sum[j] (Y[b,j] - mean[b] Y[b,j]) * W[i,j])",
                   "(X[b,i] * 3 - mean[i] (X[b,i] * 3))"});
  }
  std::string spread() {
    return one_of(
        {"(1 + variance[i](X[b,i]))", "(norm[i](X[b,i]) / 64)", "(1 + sqrt(mean[j] sq(Y[b,j] - mean[j] Y[b,j])))"});
  }
  std::string one_of(const std::vector<std::string>& all) { return all[random_() % all.size()]; }

  std::mt19937& random_;
};

/// Halves and quarters, far from 0 and not far from each other.
TensorBindings values(std::mt19937& random, const EinGraph& graph, double offset) {
  TensorBindings bindings;
  for (const Vertex& vertex : graph.vertices) {
    if (!is_input(vertex)) continue;
    const bool is_large = vertex.name == "X" || vertex.name == "Y";
    std::vector<double> numbers;
    for (std::int64_t n = 0; n < element_count(vertex.bound); ++n)
      numbers.push_back((is_large ? offset : 0) + static_cast<double>(random() % 17) / 2 - 4);
    bindings[vertex.name] = tensor_of(vertex.dtype, vertex.bound, numbers);
  }
  return bindings;
}

std::vector<Tensor> run_by_plan(const EinGraph& graph, const TensorBindings& inputs, std::string_view planner,
                                std::int64_t sites) {
  const Compiled compiled = compile("half", graph);
  const Planned planned = planner_named(planner).plan(compiled.graph, {sites, {}, CostKind::bytes, {}, {}});
  const PlannedTasks tasks = tasks_of(compiled, std::get<Plan>(planned), {});
  std::map<std::string, Tensor> outputs = output_tensors(tasks.graph);
  run_once(tasks.graph, task_bindings(tasks.graph, sources_of(inputs), writers_to(outputs, tasks.graph), {}),
           SerialExecutor(1));
  return {outputs.at("Z"), outputs.at("G")};
}

/// Half of what the last bit of a number is worth.
double half_of_last_bit(double value, DType dtype) {
  const int bits = dtype == DType::bf16 ? 8 : 11;
  const int least = dtype == DType::bf16 ? -126 : -14;
  const int exponent = value == 0 ? least : std::max(std::ilogb(value), least);
  return std::ldexp(1.0, exponent - bits);
}

TEST(HalfPrecision, StatementsAndGradientsRoundOnce) {
  std::mt19937 random(20);
  const std::vector<std::pair<std::string, std::int64_t>> configurations{
      {"eindecomp", 1}, {"eindecomp", 3}, {"data", 2}, {"eindecomp", 4}};
  for (int round = 0; round < rounds(200); ++round) {
    const DType dtype = random() % 2 == 0 ? DType::bf16 : DType::f16;
    const std::string statement = StatementGenerator(random).statement();
    const auto program = [&](DType type) {
      return graph_of(
          fmt::format("dims b=3 i=8 j=4\ninput X[b,i], Y[b,j], W[i,j], S[b,i] : {0}\nZ[b,i] = {1}\n"
                      "gradient G = Z wrt X given S\noutput Z, G\n",
                      name_of(type), statement));
    };
    const EinGraph narrow = program(dtype);
    const EinGraph wide = program(DType::f64);
    SCOPED_TRACE(std::string(name_of(dtype)) + " " + statement);
    const TensorBindings inputs = values(random, narrow, dtype == DType::bf16 ? 120 : 200);
    TensorBindings exact;
    for (const auto& [name, tensor] : inputs) exact[name] = tensor_of(DType::f64, tensor.shape(), values_of(tensor));
    const std::vector<Tensor> expected = evaluate_reference(wide, exact, {});
    const auto& [planner, sites] = configurations[random() % configurations.size()];
    const std::vector<Tensor> found = run_by_plan(narrow, inputs, planner, sites);
    for (std::size_t o = 0; o < found.size(); ++o) {
      ASSERT_EQ(found[o].dtype(), dtype);
      const std::vector<double> wanted = values_of(expected[o]);
      const std::vector<double> got = values_of(found[o]);
      double largest = 0;
      for (const double value : wanted) largest = std::max(largest, std::abs(value));
      for (std::size_t n = 0; n < wanted.size(); ++n) {
        const double in_f32 = 2e-4 * largest + 1e-5;
        ASSERT_NEAR(got[n], wanted[n], half_of_last_bit(std::abs(wanted[n]) + in_f32, dtype) + in_f32)
            << (o == 0 ? "Z" : "G") << " " << n;
      }
    }
  }
}

}  // namespace
}  // namespace einrel::test
