// What a run costs besides the work: a product of two 4 x 4 matrices again and again, by a session, through the C++
// interface, and by plans for one site and for two.
//   cmake --preset release -DEINREL_BENCH=ON && cmake --build --preset release --target small_runs
//   build/release/bench/small_runs

#include <benchmark/benchmark.h>
#include <einrel/program.h>

#include <vector>

#include "einsum/check/check.h"
#include "run/compile.h"
#include "run/session.h"

namespace einrel {
namespace {

constexpr const char* text = "dims i=4 j=4 k=4\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]\noutput C\n";

void by_session(benchmark::State& state) {
  const CheckedProgram checked = parse_and_check(SourceText("product.ein", text), {});
  const PlannedTasks tasks = whole_tasks(compile("product.ein", *checked.graph));
  Session session(tasks, {1, {}});
  const std::vector<InputSource> inputs(2, Tensor(DType::f32, Shape(2, Extent(4))));
  const std::vector<const InputSource*> pointers = pointers_to(inputs);
  for (auto _ : state) benchmark::DoNotOptimize(session.run(pointers, {}));
}
BENCHMARK(by_session);

void by_program(benchmark::State& state, const api::RunOptions& options) {
  const api::Program program = api::Program::parse(text);
  const api::Tensor matrix({4, 4}, std::vector<float>(16, 1));
  const api::Inputs inputs{{"A", matrix}, {"B", matrix}};
  for (auto _ : state) benchmark::DoNotOptimize(program.run(inputs, options));
}
BENCHMARK_CAPTURE(by_program, whole, api::RunOptions{});
BENCHMARK_CAPTURE(by_program, planned, api::RunOptions{.sites = 1});
BENCHMARK_CAPTURE(by_program, on_two_sites, api::RunOptions{.sites = 2});

}  // namespace
}  // namespace einrel

BENCHMARK_MAIN();
