#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "einsum/reference.h"
#include "lang/corpus.h"
#include "lang/expectations.h"
#include "lang/promises.h"
#include "plan/planners/planner.h"
#include "run/compile.h"
#include "run/session.h"
#include "support/run_tasks.h"
#include "support/run_whole.h"

/// Every document keeps its promises without any of the passes that may be left out: what computes it is slower then,
/// but right.
namespace einrel::test {
namespace {

namespace fs = std::filesystem;

Outputs reference(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  const std::vector<Tensor> values = evaluate_reference(graph, inputs, scalars);
  Outputs outputs;
  for (std::size_t o = 0; o < values.size(); ++o) outputs.insert({graph[graph.outputs[o]].name, values[o]});
  return outputs;
}

Outputs on_sites(const Compiled& compiled, const TensorBindings& inputs, const ScalarBindings& scalars) {
  const Planned planned = planner_named("eindecomp").plan(compiled.graph, {3, {}, CostKind::seconds, {}, {}});
  const PlannedTasks tasks = tasks_of(compiled, std::get<Plan>(planned), {});
  Outputs outputs = output_tensors(tasks.graph);
  run_once(tasks.graph, task_bindings(tasks.graph, sources_of(inputs), writers_to(outputs, tasks.graph), scalars),
           SerialExecutor(2));
  return outputs;
}

std::vector<Configuration> without_each_pass() {
  std::vector<Configuration> found{{"reference", reference}};
  std::vector<SkippedPasses> skipped{{}};  // the last one: all at once
  for (const Pass& pass : all_passes()) {
    if (!pass.is_optional) continue;
    skipped.insert(skipped.end() - 1, {std::string(pass.name)});
    skipped.back().emplace(pass.name);
  }
  for (const SkippedPasses& passes : skipped) {
    const auto compiled = [=](const EinGraph& graph) {
      return compile("document", graph, {}, std::nullopt, {.skipped = passes});
    };
    const std::string name = fmt::format("without {}", fmt::join(passes, ", "));
    found.push_back({name, [=](const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
                       return run_whole(compiled(graph), inputs, scalars);
                     }});
    found.push_back({name + ", on 3 sites",
                     [=](const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
                       return on_sites(compiled(graph), inputs, scalars);
                     }});
  }
  return found;
}

std::string stem_of(const testing::TestParamInfo<fs::path>& info) { return info.param.stem().string(); }

class WithoutAPass : public testing::TestWithParam<fs::path> {};

TEST_P(WithoutAPass, ADocumentKeepsItsPromises) {
  const std::vector<std::string> problems =
      broken_promises(read_document(read_source(GetParam())), without_each_pass());
  EXPECT_TRUE(problems.empty()) << fmt::format("{}", fmt::join(problems, "\n"));
}

/// Those that compute something.
std::vector<fs::path> documents() {
  std::vector<fs::path> paths = ein_files(EINREL_LANG_DOCUMENTS);
  std::erase_if(paths, [](const fs::path& path) { return !read_document(read_source(path)).errors.empty(); });
  return paths;
}

INSTANTIATE_TEST_SUITE_P(All, WithoutAPass, testing::ValuesIn(documents()), stem_of);

}  // namespace
}  // namespace einrel::test
