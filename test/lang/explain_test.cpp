#include "report/explain.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "einsum/graph/vertex_facts.h"
#include "exec/tasks/prepared_tasks.h"
#include "kernel/evaluate.h"
#include "kernel/fusion/products.h"
#include "lang/corpus.h"
#include "report/report_json.h"
#include "support/program.h"
#include "support/run_tasks.h"

/// What EXPLAIN says of a program is that of the tasks that run: they are made ready here as for a run, and what they
/// call is counted without the code that reports it.
namespace einrel::test {
namespace {

using Json = nlohmann::json;

/// What tasks call for chunks of one size: "i=2 k=4 by direct".
using Called = std::map<std::string, std::size_t>;

/// By vertex.
struct Calls {
  std::map<std::string, Called> called;
  std::map<std::string, double> seconds;  ///< on one thread
  std::set<std::string> fused;            ///< some of whose tasks run in fusions, where products take otherwise long
};

std::string call_text(const std::map<std::string, std::int64_t>& extents, const std::string& kernel) {
  std::string text;
  for (const auto& [label, extent] : extents) text += fmt::format("{}={} ", label, extent);
  return text + "by " + kernel;
}

/// Of the tasks of a plan, for tensors that lie as these.
Calls calls_of(const EinGraph& graph, const PlannedTasks& tasks, const TensorBindings& inputs,
               const ScalarBindings& scalars) {
  Calls calls;
  Outputs outputs = output_tensors(tasks.graph);
  TaskBindings bindings = bindings_of(tasks.graph, inputs, outputs);
  bindings.scalars = scalars;
  const PreparedTasks ready(tasks.graph, bindings);
  for (const Task& task : tasks.graph.tasks) {
    const auto* const call = std::get_if<CallKernel>(&task.op);
    if (call == nullptr) continue;
    const TaskKernel& kernel = tasks.graph.kernels[call->kernel];
    std::vector<ArrayLayout> arguments;
    for (const ArrayId read : task.reads) arguments.push_back(ready.layout(read));
    if (call->onto) arguments.pop_back();
    for (std::size_t i = 0; i < call->numbers.size(); ++i) arguments.push_back(row_major_layout(DType::i64, {}));
    const ChunkProgram program = chunk_program(kernel, arguments, call->onto);
    for (std::size_t s = 0; s < kernel.steps.steps.size(); ++s) {
      const std::size_t v = arguments.size() + s;
      const Vertex& vertex = program.graph.vertices[v];
      std::vector<ArrayLayout> operands;
      for (const VertexId input : vertex.inputs) operands.push_back(program.layouts[input.index]);
      const auto choice =
          choice_of(vertex, operands, some_scalars(graph), call->onto && v + 1 == program.shares.size());
      const auto of = tasks.vertices[(kernel.nodes.empty() ? task.node : kernel.nodes[s]).index];
      const bool comes_along = s > 0 && opaque_of(vertex) != nullptr;  // another output of what is called once
      if (program.shares[v] || comes_along || !choice || !of) continue;
      std::map<std::string, std::int64_t> extents;
      for (const Label& label : labels_of(vertex)) extents[label.name] = label.extent.value();
      const bool is_fused = !program.fusions.empty();
      ++calls.called[tasks.names[*of]][call_text(extents, is_fused ? "a fusion" : std::string(choice->kernel))];
      calls.seconds[tasks.names[*of]] += choice->offer.seconds;
      if (is_fused) calls.fused.insert(tasks.names[*of]);
    }
  }
  return calls;
}

/// What JSON says of a vertex. Products in fusions may have other kernels than alone.
Called told_of(const Json& vertex, const Called& wanted) {
  Called told;
  std::vector<Json> kernels = vertex.at("other_kernels").get<std::vector<Json>>();
  if (!vertex.at("kernel").is_null()) kernels.push_back(vertex.at("kernel"));
  for (const Json& kernel : kernels) {
    const auto extents = kernel.at("extents").get<std::map<std::string, std::int64_t>>();
    const std::string fused = call_text(extents, "a fusion");
    const std::string by_itself = call_text(extents, kernel.at("name"));
    told[wanted.contains(by_itself) ? by_itself : fused] += kernel.at("times").get<std::size_t>();
  }
  return told;
}

double seconds_of(const Json& vertex) {
  double seconds = 0;
  const auto add = [&](const Json& kernel) {
    seconds += kernel.at("seconds").get<double>() * kernel.at("times").get<double>();
  };
  if (!vertex.at("kernel").is_null()) add(vertex.at("kernel"));
  for (const Json& kernel : vertex.at("other_kernels")) add(kernel);
  return seconds;
}

/// Text has the same figures.
void expect_text_agrees(const std::string& text, const Json& json) {
  const auto has = [&](const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  };
  has(fmt::format("by {} for {} site", json.at("planner").get<std::string>(), json.at("sites").get<std::int64_t>()));
  has(fmt::format("time        {} predicted", seconds_text(json.at("cost").at("seconds").get<double>())));
  has(fmt::format("peak memory {}", bytes_text(json.at("peak_memory").at("predicted").get<std::int64_t>())));
  const auto moved = json.at("cost").at("bytes").get<std::int64_t>();
  has(moved == 0 ? "moved       nothing" : fmt::format("moved       {}", bytes_text(moved)));
  for (const Json& vertex : json.at("vertices")) {
    if (vertex.at("kernel").is_null()) continue;
    const Json& kernel = vertex.at("kernel");
    has(fmt::format("by {} ({}), {}", kernel.at("name").get<std::string>(), kernel.at("path").get<std::string>(),
                    seconds_text(kernel.at("seconds").get<double>())));
  }
}

class Explained : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Explained, KernelsAndSecondsAreThoseOfTheTasksThatRun) {
  const Runnable runnable = prepare(GetParam());
  const Compiled compiled = compile("document", runnable.graph, {}, runnable.initial);
  const SourceText source("document", "");
  for (const std::optional<std::int64_t> sites : {std::optional<std::int64_t>(), std::optional<std::int64_t>(4)}) {
    SCOPED_TRACE(sites.value_or(1));
    const Chosen chosen = choose(compiled, {.sites = sites, .explains = true}, source, {});
    const Explanation explained = explanation_of(compiled, chosen);
    const Json json = Json::parse(explanation_json(explained));
    EXPECT_EQ(json.at("tasks"), chosen.tasks.graph.tasks.size());
    const Calls calls = calls_of(compiled.graph, chosen.tasks, runnable.inputs, runnable.scalars);
    double of_vertices = 0;
    for (const Json& vertex : json.at("vertices")) {
      const std::string name = vertex.at("name");
      const auto wanted = calls.called.find(name);
      const Called called = wanted == calls.called.end() ? Called{} : wanted->second;
      EXPECT_EQ(told_of(vertex, called), called) << name;
      const auto seconds = calls.seconds.find(name);
      if (seconds != calls.seconds.end() && !calls.fused.contains(name)) {
        EXPECT_NEAR(seconds_of(vertex), seconds->second, 1e-9) << name;
      }
      of_vertices += vertex.at("seconds").get<double>();
    }
    EXPECT_NEAR(of_vertices, json.at("cost").at("seconds").get<double>(), 1e-9);
    EXPECT_GT(json.at("cost").at("seconds").get<double>(), 0);
    expect_text_agrees(explanation_text(explained, source, Detail::full), json);
  }
}

std::string explained_name(const testing::TestParamInfo<std::filesystem::path>& info) {
  return info.param.stem().string();
}

INSTANTIATE_TEST_SUITE_P(All, Explained, testing::ValuesIn(programs_that_run()), explained_name);

TEST(ExplainedChunk, OfAProductHasItsOwnExtentsAndParts) {
  const Compiled compiled = compile("p.ein", graph_of("dims i=512 j=512 k=512\ninput A[i,j], B[j,k]\n"
                                                      "C[i,k] = sum[j] A[i,j] * B[j,k]\n"));
  const Chosen chosen = choose(compiled, {.sites = 4, .explains = true}, SourceText("p.ein", ""), {});
  const Json json = Json::parse(explanation_json(explanation_of(compiled, chosen)));
  const Json& product = json.at("vertices").at(0);
  const Json& kernel = product.at("kernel");
  std::int64_t chunks = 1;
  std::int64_t flops = 2 * kernel.at("times").get<std::int64_t>();
  for (const auto& [label, extent] : kernel.at("extents").items()) {
    const auto parts = product.at("parts").at(label).get<std::int64_t>();
    EXPECT_EQ(extent, 512 / parts);
    chunks *= parts;
    flops *= extent.get<std::int64_t>();
  }
  EXPECT_GE(chunks, 4);
  EXPECT_EQ(kernel.at("times"), chunks);
  EXPECT_EQ(flops, std::int64_t{2} * 512 * 512 * 512);
  std::size_t most_parts = 0;
  for (const Task& task : chosen.tasks.graph.tasks) {
    const auto* const call = std::get_if<CallKernel>(&task.op);
    if (call == nullptr) continue;
    std::vector<ArrayLayout> arguments;
    for (const ArrayId read : task.reads)
      arguments.push_back(row_major_layout(chosen.tasks.graph[read].dtype, chosen.tasks.graph[read].bound));
    if (call->onto) arguments.pop_back();
    const ChunkProgram program = chunk_program(chosen.tasks.graph.kernels[call->kernel], arguments, call->onto);
    const PreparedKernel ready = prepare(program.graph.vertices.back(), arguments, {}, call->onto);
    for (const Stage& stage : ready.stages) most_parts = std::max(most_parts, static_cast<std::size_t>(stage.parts));
  }
  const std::string path = kernel.at("path").get<std::string>();
  const std::string said = most_parts == 1 ? "parts" : fmt::format("{} parts", most_parts);
  EXPECT_EQ(path.find(said) != std::string::npos, most_parts > 1) << path << ", but its tasks have " << most_parts;
}

}  // namespace
}  // namespace einrel::test
