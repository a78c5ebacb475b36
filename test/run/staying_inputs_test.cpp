#include "plan/staying_inputs.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "run/choose_plan.h"
#include "run/forecast_memory.h"
#include "run/initial_states.h"
#include "run/random_input.h"
#include "run/session.h"
#include "support/program.h"
#include "support/random_plan.h"
#include "support/rounds.h"
#include "support/run_tasks.h"

namespace einrel::test {
namespace {

Compiled compiled_of(const std::string& text) { return compile("steps", einrel::graph_of(text)); }

Compiled repeated(Compiled compiled, std::int64_t steps, const std::set<std::string>& fed) {
  compiled.graph = with_staying_inputs(std::move(compiled.graph), steps, fed);
  return compiled;
}

InputSources random_sources(const EinGraph& graph, std::uint64_t seed) {
  InputSources sources;
  for (const Vertex& vertex : graph.vertices) {
    if (std::holds_alternative<Input>(vertex.op))
      sources[vertex.name] = random_tensor(seed, vertex.name, vertex.dtype, vertex.bound);
  }
  return sources;
}

struct StaySteps {
  Outputs outputs;
  PlanRunReport report;
};

StaySteps stay_steps(const PlannedTasks& tasks, std::size_t threads, const InputSources& sources,
                     const StepsAsked& asked) {
  StaySteps run;
  run.outputs = output_tensors(tasks.graph);
  Session session(tasks, {threads, {}});
  run.report = session.step(sources, writers_to(run.outputs, tasks.graph), {}, asked);
  return run;
}

/// Any plan, on sites of this process: the same bits, of inputs that are fed and others.
TEST(InputsThatStay, GiveTheSameBits) {
  std::size_t brought = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(rounds(60)); ++seed) {
    Random random(seed);
    const std::string& text = plannable_programs()[seed % plannable_programs().size()];
    const Compiled once = compiled_of(text);
    const Plan plan = random_plan(random, once.graph);
    const InputSources first = random_sources(once.graph, 1);
    const InputSources last = random_sources(once.graph, 2);
    std::set<std::string> fed;
    for (const auto& [name, source] : first) {
      if (random.chance(0.4)) fed.insert(name);
    }
    InputSources met = first;  // by the last step
    InputSources news;
    for (const std::string& name : fed) news[name] = met[name] = last.at(name);
    const PlannedTasks alone = tasks_of(once, plan, {});
    for (const std::size_t steps : {2U, 5U}) {
      const Compiled many = repeated(once, static_cast<std::int64_t>(steps), fed);
      const PlannedTasks tasks = tasks_of(many, plan, {});
      const PlanCosts costs = costs_of(many.graph, plan, {});
      brought += tasks.first ? tasks.first->brought.of.size() : 0;
      for (const std::size_t threads : {1U, 3U}) {
        SCOPED_TRACE(fmt::format("seed {}, {} steps, {} threads\n{}", seed, steps, threads, text));
        const Outputs want = stay_steps(alone, threads, met, {}).outputs;
        const auto [outputs, report] =
            stay_steps(tasks, threads, first, {.count = steps, .feed = [&] { return news; }});
        ASSERT_EQ(outputs.size(), want.size());
        for (const auto& [name, tensor] : want)
          EXPECT_TRUE(same_bits(outputs.at(name).row_major(), tensor.row_major()));
        EXPECT_EQ(report.runs.size(), steps);
        EXPECT_EQ(report.moved(), costs.bytes);
        EXPECT_EQ(report.moved_once(), costs.once.bytes);
        const auto later = static_cast<std::int64_t>(steps) - 1;
        EXPECT_EQ(report.moved_by_all(), costs.bytes + later * (costs.bytes - costs.once.bytes));
      }
    }
  }
  EXPECT_TRUE(came_up(brought, 100)) << brought;
}

/// What is brought takes memory all the time: the forecast of a process has it in every step.
TEST(InputsThatStay, AreForecastToBeHeld) {
  const Compiled once = compiled_of(
      "dims i=64 j=64\ninput X[i,j]\nY[i] = sum[j] X[i,j]\nZ[j] = max[i] X[i,j]\nS[] = sum[i] Y[i]\noutput S, Z\n");
  Plan plan{"", 4, {}};
  for (const Vertex& vertex : once.graph.vertices) {
    PartitionVector grid(label_extents(vertex).size(), 1);
    const std::vector<std::string> names = label_names(vertex);
    const std::string cut = vertex.name == "X" ? "0" : vertex.name == "Z" ? "j" : vertex.name == "Y" ? "i" : "";
    for (std::size_t l = 0; l < names.size(); ++l) {
      if (names[l] == cut) grid[l] = 4;
    }
    plan.vertices.push_back(one_part_per_site(grid));
  }
  const auto is_mapped = [](const StoredRelation&) { return true; };
  const auto forecast = [&](std::int64_t steps) {
    return forecast_memory(tasks_of(repeated(once, steps, {}), plan, {}), {}, is_mapped);
  };
  constexpr std::int64_t columns = 64 * 64 * 4;  // of X, put together for Z from its rows
  const SitePeak of_one = forecast(1);
  const SitePeak of_many = forecast(3);
  EXPECT_LT(of_one.by_vertex[1], columns) << "of Y";
  EXPECT_GE(of_many.by_vertex[1], columns);
  const HeldTensor copy{0, HeldAs::copy, columns};
  EXPECT_NE(std::find(of_many.tensors.begin(), of_many.tensors.end(), copy), of_many.tensors.end());
}

/// The plan of a run in steps lets inputs stay, that of one step not, and a limit of memory in this process neither.
TEST(InputsThatStay, AreAskedForByTheNumberOfSteps) {
  const std::string text =
      "dims b=16 i=64 j=64\ninput W[i,j]\nstate X[b,i] = 1\nA[b,j] = sum[i] X[b,i] * W[i,j]\n"
      "H[b,j] = relu(A[b,j])\nnext X[b,i] = sum[j] 0.01 * H[b,j] * W[i,j]\n";
  const SourceText source("serve", text);
  const CheckedProgram checked = parse_and_check(source, {});
  const Compiled compiled = compile("serve", *checked.graph, {}, checked.initial);
  const auto chosen = [&](std::int64_t steps, std::optional<std::int64_t> memory) {
    RunRequest request{.sites = 4, .cost = CostKind::bytes, .steps = steps};
    if (memory) request.memory = MemoryLimit{memory};
    return choose(compiled, request, source, {});
  };
  EXPECT_FALSE(chosen(1, {}).tasks.first);
  EXPECT_TRUE(chosen(1000, {}).tasks.first);
  EXPECT_FALSE(chosen(1000, 100'000'000).tasks.first) << "chunks might have to come and go";
  const Chosen many = chosen(1000, {});
  const PlanCosts& costs = std::get<ByPlan>(many.how).plan.costs;
  EXPECT_EQ(costs.bytes_of_later_steps(), 0);
  const InputSources sources{{"W", random_tensor(3, "W", DType::f32, make_shape({64, 64}))}};
  const auto last_of = [&](const Chosen& how, std::size_t steps) {
    const RunRequest request{.sites = 4, .cost = CostKind::bytes, .steps = static_cast<std::int64_t>(steps)};
    KeptStates states = begun_states({&compiled, request, how}, std::nullopt, sources, {}, source, {});
    Session session(how.tasks, how.resources());
    session.step(sources,
                 std::vector<OutputWriter>(program_outputs(how.tasks).size(), [](const auto&, const Tensor&) {}), {},
                 {.count = steps, .states = &states});
    return std::get<Tensor>(states[0].now());
  };
  const Chosen whole = choose(compiled, {}, source, {});
  const std::vector<double> want = values_of(last_of(whole, 3));
  std::vector<double> allowed(want.size(), 1e-5);
  EXPECT_TRUE(agree(last_of(many, 3), last_of(whole, 3), allowed));
}

}  // namespace
}  // namespace einrel::test
