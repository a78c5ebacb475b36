#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "base/temporary_folder.h"
#include "einsum/check/check.h"
#include "run/initial_states.h"
#include "run/random_input.h"
#include "run/saved_states.h"
#include "run/session.h"
#include "support/compare.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

/// A step of training: two layers, momentum, weights that are replaced by reductions and by element-wise formulas, and
/// numbers that are new in each step.
constexpr const char* training = R"(dims b=12 f=6 h=8 l=4
input X[b,f], Y[b,l]
scalar eta = 0.01
state W1[f,h] = 0.3 * normal(1)
state W2[h,l] = 0.3 * normal(2)
state V1[f,h] = 0
state level[f] = sum[b] X[b,f]
kept[b,h] = uniform(3) < 0.8
A[b,h] = max(sum[f] X[b,f] * W1[f,h], 0) * kept[b,h]
loss[] = sum[b,l] sq(sum[h] (A[b,h] * W2[h,l]) - Y[b,l]) / 12
gradient G1, G2 = loss wrt W1, W2
next V1[f,h] = 0.9 * V1[f,h] + G1[f,h]
next W1[f,h] = W1[f,h] - eta * next_V1[f,h] / sqrt(1 + iteration)
next W2[h,l] = W2[h,l] - eta * G2[h,l]
next level[f] = sum[b] X[b,f] * loss[]
output loss, A
)";

struct Program {
  explicit Program(const std::string& text) : source("steps", text), checked(parse_and_check(source, {})) {
    compiled = compile("steps", *checked.graph, {}, checked.initial);
    scalars = {{"iteration", 0}, {"eta", 0.01}};
    for (const EinGraph* graph : {&std::as_const(compiled).graph, &compiled.initial->graph}) {
      for (const Vertex& vertex : graph->vertices) {
        if (is_input(vertex)) inputs[vertex.name] = random_tensor(7, vertex.name, vertex.dtype, vertex.bound);
      }
    }
    for (const State& state : compiled.graph.steps.states) inputs.erase(compiled.graph[state.now].name);
  }
  SourceText source;
  CheckedProgram checked;
  Compiled compiled;
  ScalarBindings scalars;
  TensorBindings inputs;
};

/// What the reference makes of steps: the states after them, and the outputs of the last one.
struct Reference {
  TensorBindings states;
  Outputs outputs;
  std::size_t steps = 0;
};

Reference by_reference(const Program& program, std::size_t steps) {
  Reference result;
  const auto step = [&](const EinGraph& graph, double done) {
    TensorBindings inputs = program.inputs;
    for (const State& state : graph.steps.states) {
      const Vertex& now = graph[state.now];
      inputs[now.name] = done < 0 ? Tensor(now.dtype, now.bound) : result.states.at(now.name);
    }
    ScalarBindings scalars = program.scalars;
    scalars["iteration"] = std::max(done, 0.0);
    const std::vector<Tensor> values = evaluate_reference(graph, inputs, scalars);
    for (std::size_t o = 0; o < values.size(); ++o) result.outputs[graph[graph.outputs[o]].name] = values[o];
    for (const State& state : graph.steps.states) {
      if (state.next) result.states[graph[state.now].name] = values[*state.next];
    }
  };
  step(*program.checked.initial, -1);
  while (result.steps < steps) {
    step(*program.checked.graph, static_cast<double>(result.steps++));
    if (program.checked.graph->steps.until && values_of(result.outputs.at("until"))[0] != 0) break;
  }
  return result;
}

/// The same by a session.
struct StepsRun {
  Outputs outputs;
  std::map<std::string, Tensor> states;
  std::int64_t steps = 0;
  PlanRunReport report;
};

struct Way {
  std::optional<std::int64_t> sites = {};
  std::string planner = "eindecomp";
  std::size_t threads = 2;
  std::optional<std::int64_t> memory = {};
};

RunRequest request_of(const Way& way) {
  RunRequest request{.sites = way.sites, .threads = way.threads};
  if (way.sites || way.memory) request.planner = way.planner;
  if (way.memory) request.memory = MemoryLimit{way.memory};
  return request;
}

StepsRun by_session(const Program& program, const Way& way, std::size_t steps,
                    const std::optional<GivenStates>& given = {}) {
  const Chosen chosen = choose(program.compiled, request_of(way), program.source, {});
  const PlannedTasks& tasks = chosen.tasks;
  const InputSources sources = sources_of(program.inputs);
  const RunRequest request = request_of(way);
  KeptStates states =
      begun_states({&program.compiled, request, chosen}, given, sources, program.scalars, program.source, {});
  StepsRun run;
  run.outputs = output_tensors(tasks.graph);
  Session session(tasks, chosen.resources());
  run.report = session.step(sources, writers_to(run.outputs, tasks.graph), program.scalars, {steps, &states});
  for (std::size_t s = 0; s < tasks.states.size(); ++s)
    run.states[tasks.states[s].type.name] = std::get<Tensor>(states[s].now());
  run.steps = states.steps_done();
  return run;
}

void expect_close(const std::map<std::string, Tensor>& got, const std::map<std::string, Tensor>& want,
                  const std::string& where) {
  for (const auto& [name, tensor] : want) {
    const auto found = got.find(name);
    if (found == got.end()) continue;
    std::vector<double> allowed = values_of(tensor);
    for (double& value : allowed) value = 1e-4 * std::max(1.0, std::abs(value));
    EXPECT_TRUE(agree(found->second, tensor, allowed)) << name << " " << where;
  }
}

void expect_same_bits(const std::map<std::string, Tensor>& got, const std::map<std::string, Tensor>& want,
                      const std::string& where) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want)
    EXPECT_TRUE(same_bits(got.at(name).row_major(), tensor.row_major())) << name << " " << where;
}

TEST(Steps, AreThoseOfTheReference) {
  const Program program(training);
  for (const std::size_t steps : {1U, 2U, 5U}) {
    const Reference want = by_reference(program, steps);
    std::vector<Way> ways{{}};
    for (const std::int64_t sites : {1, 2, 3, 4, 6}) ways.push_back({.sites = sites});
    for (const char* const planner : {"data", "tensor", "fsdp", "all-tile", "sqrt"})
      ways.push_back({.sites = 4, .planner = planner});
    for (const Way& way : ways) {
      const std::string where = fmt::format("{} on {} sites", way.planner, way.sites.value_or(0));
      const StepsRun run = by_session(program, way, steps);
      EXPECT_EQ(run.steps, static_cast<std::int64_t>(steps));
      EXPECT_EQ(run.report.runs.size(), steps);
      EXPECT_EQ(run.states.size(), 4U);
      expect_close(run.states, want.states, where);
      expect_close(run.outputs, want.outputs, where);
    }
  }
}

TEST(Steps, GiveTheSameBitsForAnyNumberOfThreads) {
  const Program program(training);
  for (const std::optional<std::int64_t> sites : {std::optional<std::int64_t>(), std::optional<std::int64_t>(3)}) {
    const StepsRun one = by_session(program, {.sites = sites, .threads = 1}, 4);
    for (const std::size_t threads : {2U, 3U, 5U}) {
      const StepsRun more = by_session(program, {.sites = sites, .threads = threads}, 4);
      expect_same_bits(more.states, one.states, fmt::format("{} threads", threads));
      expect_same_bits(more.outputs, one.outputs, fmt::format("{} threads", threads));
    }
  }
}

TEST(Steps, KeepToALimitOfMemory) {
  std::string large = training;
  large.replace(0, large.find('\n'), "dims b=512 f=512 h=512 l=64");
  const Program program(large);
  const StepsRun free = by_session(program, {}, 3);
  const StepsRun run = by_session(program, {.memory = 12'000'000}, 3);
  expect_close(run.states, free.states, "within memory");
}

TEST(Steps, GoOnFromAFileToTheBit) {
  const Program program(training);
  const TemporaryFolder folder;
  for (const char* const name : {"s.safetensors", "s.npz"}) {
    const std::string path = folder / name;
    for (const Way& way : {Way{}, Way{.sites = 3}}) {
      const StepsRun all = by_session(program, way, 5);
      const PlannedTasks tasks = choose(program.compiled, request_of(way), program.source, {}).tasks;
      KeptStates written(tasks, {}, std::nullopt);
      const StepsRun half = by_session(program, way, 2);
      written.begin(tasks, {{half.states.begin(), half.states.end()}, 2});
      save_states(written, tasks, path, {});
      const LoadedStates loaded = load_states(program.compiled.graph, path);
      EXPECT_EQ(loaded.steps_done, 2);
      const StepsRun rest = by_session(program, way, 3, loaded.given());
      EXPECT_EQ(rest.steps, 5);
      expect_same_bits(rest.states, all.states, name);
      expect_same_bits(rest.outputs, all.outputs, name);
    }
  }
}

TEST(Steps, EndWhereTheConditionHolds) {
  const Program program(
      "dims i=3\ninput X[i] : f64\nstate x[i] = X[i] * X[i] + 1\nnext x[i] = x[i] / 2\n"
      "until max[i] (next_x[i]) < 0.2\nlast[i] = x[i] * 2\n");
  const Reference want = by_reference(program, 100);
  ASSERT_LT(want.steps, 100U);
  for (const Way& way : {Way{}, Way{.sites = 2}, Way{.sites = 3, .planner = "all-tile"}}) {
    const StepsRun run = by_session(program, way, 100);
    EXPECT_EQ(run.steps, static_cast<std::int64_t>(want.steps));
    expect_close(run.outputs, want.outputs, "until");
  }
}

TEST(Steps, SayWhatALoadedFileLacks) {
  const Program program(training);
  const TemporaryFolder folder;
  const auto write = [&](const std::map<std::string, Tensor>& tensors) {
    std::vector<std::pair<FileRef, Tensor>> all;
    const std::string path = folder / "s.safetensors";
    std::filesystem::remove(path);
    for (const auto& [name, tensor] : tensors) all.emplace_back(FileRef{path, name}, tensor);
    write_tensors(all);
    return path;
  };
  std::map<std::string, Tensor> good;
  for (const State& state : program.compiled.graph.steps.states) {
    const Vertex& now = program.compiled.graph[state.now];
    good[now.name] = random_tensor(1, now.name, now.dtype, now.bound);
  }
  EXPECT_EQ(load_states(program.compiled.graph, write(good)).steps_done, 0) << "weights of others";
  const auto message = [&](const std::function<void(std::map<std::string, Tensor>&)>& spoil) -> std::string {
    std::map<std::string, Tensor> tensors = good;
    spoil(tensors);
    try {
      load_states(program.compiled.graph, write(tensors));
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message([](auto& t) { t.erase("W1"); }).find("does not hold the state W1"), std::string::npos);
  EXPECT_NE(message([](auto& t) {
              t["W1"] = Tensor(DType::f32, make_shape({2, 2}));
            }).find("has shape (6, 8)"),
            std::string::npos);
  EXPECT_NE(message([](auto& t) {
              t["W1"] = Tensor(DType::f64, make_shape({6, 8}));
            }).find("is f32"),
            std::string::npos);
  EXPECT_NE(message([](auto& t) { t["iteration"] = tensor_of(DType::i64, {}, {-1}); }).find("-1 steps"),
            std::string::npos);
  EXPECT_NE(message([](auto& t) { t["iteration"] = tensor_of(DType::f32, {}, {1}); }).find("no number of steps"),
            std::string::npos);
}

TEST(Steps, RefuseACountThatItsTypeDoesNotHold) {
  const Program program(
      "dims i=2\nstate n[i] = i32(i)\nnext n[i] = n[i] + iteration\n"
      "unused[] = f64(0)\n");
  const PlannedTasks tasks = whole_tasks(program.compiled);
  KeptStates states(tasks, {}, std::nullopt);
  states.begin(tasks, {{{"n", Tensor(DType::i32, make_shape({2}))}}, std::int64_t{1} << 31});
  Outputs outputs = output_tensors(tasks.graph);
  Session session(tasks, {1, {}});
  EXPECT_THROW(session.step({}, writers_to(outputs, tasks.graph), program.scalars, {.states = &states}), RunError);
}

}  // namespace
}  // namespace einrel::test
