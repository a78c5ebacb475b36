#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "einsum/check/check.h"
#include "einsum/graph/vertex_facts.h"
#include "einsum/reference.h"
#include "exec/executors/starpu/run.h"
#include "ia/from_tra.h"
#include "ia/interpret.h"
#include "ia/search.h"
#include "lang/corpus.h"
#include "lang/expectations.h"
#include "lang/promises.h"
#include "plan/planners/planner.h"
#include "run/choose_formats.h"
#include "run/compile.h"
#include "run/session.h"
#include "sql/program/run.h"
#include "sql/sqlite/database.h"
#include "sql/steps_in_database.h"
#include "support/run_tasks.h"
#include "support/run_whole.h"
#include "support/sanitizers.h"
#include "support/scarce_memory.h"
#include "tra/from_einsum.h"
#include "tra/interpret.h"

namespace einrel::test {
namespace {

namespace fs = std::filesystem;

Outputs evaluate_by_name(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  const std::vector<Tensor> values = evaluate_reference(graph, inputs, scalars);
  Outputs outputs;
  for (std::size_t i = 0; i < values.size(); ++i) outputs.insert({graph[graph.outputs[i]].name, values[i]});
  return outputs;
}

Outputs reference_as_written(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  return evaluate_by_name(graph, inputs, scalars);
}

Outputs reference_ordered(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  return evaluate_by_name(compile("document", graph).graph, inputs, scalars);
}

Outputs engine(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  return run_whole(compile("document", graph), inputs, scalars, 2);
}

Outputs assembled(const EinGraph& graph, const std::map<std::string, Relation>& relations) {
  Outputs outputs;
  for (const VertexId id : graph.outputs) {
    const Vertex& vertex = graph[id];
    outputs.insert({vertex.name, assemble(relations.at(vertex.name), vertex.dtype, vertex.bound.size())});
  }
  return outputs;
}

/// The outputs of the ordered program, lowered to the tensor relational algebra with the cuts that `choose` gives it.
template <class Choose>
Outputs in_chunks(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars, Choose&& choose) {
  const EinGraph ordered = compile("document", graph).graph;
  return assembled(ordered, interpret(from_einsum(ordered, choose(ordered)), inputs, scalars));
}

Outputs tra(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars, std::int64_t sites) {
  return in_chunks(graph, inputs, scalars, [&](const EinGraph& ordered) { return default_cuts(ordered, sites); });
}

/// Every label that can be cut, into three parts where its extent allows.
GraphCuts everything_in_three(const EinGraph& graph) {
  GraphCuts cuts;
  for (const Vertex& vertex : graph.vertices) {
    const std::vector<std::string> reasons = cannot_be_cut(vertex, graph);
    const Shape extents = label_extents(vertex);
    std::vector<std::int64_t>& parts = cuts.parts.emplace_back();
    for (std::size_t l = 0; l < extents.size(); ++l)
      parts.push_back(reasons[l].empty() ? std::clamp<std::int64_t>(extents[l].value(), 1, 3) : 1);
  }
  return cuts;
}

Outputs tra_in_three(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
  return in_chunks(graph, inputs, scalars, everything_in_three);
}

/// Lowered to the implementation algebra, by Table 1 or as the search leaves it; what moves must be as inferred.
Outputs on_sites(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars, std::int64_t sites,
                 bool search) {
  const EinGraph ordered = compile("document", graph).graph;
  IaProgram program = compile_by_table_1(from_einsum(ordered, default_cuts(ordered, sites)), sites);
  if (search) program.plan = cheapest_plan(program.store, program.plan, {60, 100'000}).plan();
  const IaRun run = interpret(program.store, program.plan, inputs, scalars);
  EXPECT_EQ(run.moved, cost_of(program.store, program.plan).moved);
  return assembled(ordered, run.outputs);
}

Outputs ia(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars, std::int64_t sites) {
  return on_sites(graph, inputs, scalars, sites, false);
}

Outputs ia_searched(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars,
                    std::int64_t sites) {
  return on_sites(graph, inputs, scalars, sites, true);
}

/// How tasks are run.
struct Execution {
  std::size_t threads = 0;  ///< that run tasks side by side; none: one after the other
  bool spills = false;      ///< by StarPU, memory for a few tasks only, the rest on disk
  bool operator==(const Execution&) const = default;
};

/// StarPU, which can be there once: started anew when it is wanted otherwise than before.
StarpuExecutor& starpu(const Execution& execution) {
  static std::optional<StarpuExecutor> executor;
  static Execution current;
  if (!executor || current != execution) {
    executor.reset();
    executor.emplace(SessionOptions{execution.threads, ScarceMemory::limit, {fs::temp_directory_path().string(), {}}},
                     Job{});
    executor->begin({});
    current = execution;
  }
  return *executor;
}

/// By the plan of a planner, as tasks. A planner that refuses the program leaves its configuration out.
std::optional<Outputs> by_plan(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars,
                               std::string_view planner, std::int64_t sites, const Execution& execution) {
  const Compiled compiled = compile("document", graph);
  const Planned planned = planner_named(planner).plan(compiled.graph, {sites, {}, CostKind::seconds, {}, {}});
  const auto* const plan = std::get_if<Plan>(&planned);
  if (plan == nullptr) return std::nullopt;
  const PlannedTasks tasks = tasks_of(compiled, *plan, {});
  Outputs outputs = output_tensors(tasks.graph);
  const TaskBindings bindings =
      task_bindings(tasks.graph, sources_of(inputs), writers_to(outputs, tasks.graph), scalars);
  if (execution.threads == 0) {
    run_once(tasks.graph, bindings, SerialExecutor(2));
  } else if (!execution.spills) {
    run_once(tasks.graph, bindings, TaskThreads(execution.threads));
  } else {
    StarpuExecutor& executor = starpu(execution);
    const ScarceMemory scarce(tasks.graph, 2 * static_cast<std::int64_t>(execution.threads));
    executor.run(PreparedTasks(tasks.graph, bindings), bindings);
  }
  return outputs;
}

/// By a plan of relations that a search found, as tasks.
std::optional<Outputs> by_relations(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars,
                                    std::int64_t sites) {
  const EinGraph ordered = compile("document", graph).graph;
  const TraExpr program = from_einsum(ordered, default_cuts(ordered, sites));
  AlgebraPlan plan{program, compile_by_table_1(program, sites), std::nullopt, "ia-rules"};
  plan.ia.plan = cheapest_plan(plan.ia.store, plan.ia.plan, {60, 100'000}).plan();
  const PlannedTasks tasks = tasks_of(plan, {});
  Outputs outputs = output_tensors(tasks.graph);
  run_once(tasks.graph, task_bindings(tasks.graph, sources_of(inputs), writers_to(outputs, tasks.graph), scalars),
           SerialExecutor(2));
  return outputs;
}

/// In a database, chunks of at most `extent` along each dimension; of 0: in the formats that are chosen.
Outputs in_sqlite(const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars,
                  std::int64_t extent) {
  EinGraph ordered = compile("document", graph).graph;
  ordered.steps.feedback = 0;  // the next values of states are compared, too
  sql::SqliteDatabase database(":memory:");
  Formats formats;
  if (extent != 0) formats.most_extent = extent;
  sql::DatabaseRun run{.graph = ordered,
                       .scalars = scalars,
                       .inputs = {},
                       .outputs = {},
                       .chunked = chunked_graph(ordered, choose_formats(ordered, formats))};
  for (const auto& [name, tensor] : inputs) run.inputs.emplace(name, tensor);
  return sql::run(database, run).tensors;
}

/// All steps of a program with state in one run.
Configuration steps_in_sqlite(const std::string& name, std::int64_t extent, FirstStates first_states) {
  return of_states(name, [=](const Runnable& runnable) {
    sql::SqliteDatabase database(":memory:");
    return steps_in_database(database, runnable, extent, first_states);
  });
}

/// Under sanitizers, which look at memory, one number of sites and one planner: others ask the same of it.
bool tries_all() { return !is_sanitized(); }

/// `run` on so many sites, or in chunks of so many elements.
template <class Run>
auto with(Run run, std::int64_t number) {
  return [=](const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
    return run(graph, inputs, scalars, number);
  };
}

std::vector<Configuration> listed_configurations() {
  std::vector<Configuration> found{{"reference, products as written", reference_as_written},
                                   {"reference, products ordered", reference_ordered},
                                   {"engine", engine},
                                   {"TRA, everything cut in three", tra_in_three},
                                   {"SQLite, in chunks of 3", with(in_sqlite, 3)},
                                   steps_in_sqlite("SQLite, all steps, in chunks of 3", 3, FirstStates::computed)};
  const auto add = [&](const std::string& how, const std::string& planner, std::int64_t sites, Execution execution) {
    found.push_back({fmt::format("{}, {} sites, {}", planner, sites, how),
                     [=](const EinGraph& graph, const TensorBindings& inputs, const ScalarBindings& scalars) {
                       return by_plan(graph, inputs, scalars, planner, sites, execution);
                     }});
  };
  for (const std::int64_t sites :
       tries_all() ? std::vector<std::int64_t>{1, 2, 3, 4, 6} : std::vector<std::int64_t>{3}) {
    found.push_back({fmt::format("TRA, {} sites", sites), with(tra, sites)});
    found.push_back({fmt::format("IA by Table 1, {} sites", sites), with(ia, sites)});
    found.push_back({fmt::format("IA by ia-rules as tasks, {} sites", sites), with(by_relations, sites)});
    if (sites != 4) add("serial", "eindecomp", sites, {});
  }
  if (tries_all()) {
    for (const std::int64_t sites : {3, 4})
      found.push_back({fmt::format("IA by ia-rules, {} sites", sites), with(ia_searched, sites)});
    found.push_back({"SQLite, whole", with(in_sqlite, 1000)});
    found.push_back({"SQLite, formats chosen", with(in_sqlite, 0)});
    found.push_back(steps_in_sqlite("SQLite, all steps, formats chosen", 0, FirstStates::computed));
    found.push_back(steps_in_sqlite("SQLite, all steps from states that are given", 3, FirstStates::given));
  }
  const std::vector<Planner> planners = tries_all() ? all_planners() : std::vector<Planner>{planner_named("eindecomp")};
  for (const Planner& planner : planners) add("serial", planner.name, 4, {});
  for (const bool spills : {false, true}) {
    for (const std::size_t threads : {1U, 2U}) {
      if (threads == 1 && !tries_all()) continue;
      const std::string how = fmt::format("side by side on {} threads{}", threads, spills ? ", spilling" : "");
      for (const Planner& planner : planners) add(how, planner.name, 4, {threads, spills});
    }
  }
  return found;
}

/// Every document runs in each of these; all must agree with the first one.
const std::vector<Configuration>& configurations() {
  static const std::vector<Configuration> all = listed_configurations();
  return all;
}

std::vector<std::string> promises_broken_by(const std::string& text) {
  return broken_promises(read_document({"<text>", text}), configurations());
}

std::string test_name(const testing::TestParamInfo<fs::path>& info) { return info.param.stem().string(); }

class LanguageDocument : public testing::TestWithParam<fs::path> {};

TEST_P(LanguageDocument, KeepsItsPromises) {
  const std::vector<std::string> problems = broken_promises(read_document(read_source(GetParam())), configurations());
  EXPECT_TRUE(problems.empty()) << fmt::format("{}", fmt::join(problems, "\n"));
}

INSTANTIATE_TEST_SUITE_P(All, LanguageDocument, testing::ValuesIn(ein_files(EINREL_LANG_DOCUMENTS)), test_name);

class Example : public testing::TestWithParam<fs::path> {};

TEST_P(Example, RunsAndTheEngineAgreesWithTheReference) {
  Document document{read_source(GetParam()), {}, 1, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  const auto problems = broken_run(document, small_extents(GetParam()), false, configurations());
  EXPECT_TRUE(problems.empty()) << fmt::format("{}", fmt::join(problems, "\n"));
}

INSTANTIATE_TEST_SUITE_P(All, Example, testing::ValuesIn(examples()), test_name);

// The runner itself: a document that lies must not pass.

TEST(LanguageRunner, AcceptsADocumentThatTellsTheTruth) {
  EXPECT_TRUE(promises_broken_by("input X[i]\nZ[i] = 2 * X[i]\nY[i] = X[i] + X[i]\n#! in X = [1, -inf, NaN]\n"
                                 "#! expect Z = [2,\n#!  -inf, NaN]\n#! expect Z : f32 [3]\n#! same Z Y\n"
                                 "#! outputs Z Y\n#! also dim i=5")
                  .empty());
  EXPECT_TRUE(promises_broken_by("Z[] = X[]\n#! error 1:7 unknown tensor 'X'\n#! help declare").empty());
}

TEST(LanguageRunner, RefusesAWrongValueInEveryConfiguration) {
  const auto plans_any_program = [](const Configuration& configuration) {
    return !configuration.run_steps && !configuration.name.starts_with("tensor") &&
           !configuration.name.starts_with("sequence") && !configuration.name.starts_with("heads");
  };
  const auto every_configuration =
      static_cast<std::size_t>(std::count_if(configurations().begin(), configurations().end(), plans_any_program));
  const std::string program = "input X[i], Y[i] : i64\nZ[] = sum[i] X[i] * Y[i]\n#! in X = [1,2]\n#! in Y = [3,4]\n";
  EXPECT_TRUE(promises_broken_by(program + "#! expect Z = 11").empty());
  EXPECT_EQ(promises_broken_by(program + "#! expect Z = 10").size(), every_configuration);
  EXPECT_EQ(promises_broken_by(program + "#! expect Z = [11]").size(), every_configuration);
  EXPECT_EQ(promises_broken_by(program + "#! expect Z : i32 []").size(), every_configuration);
  EXPECT_EQ(promises_broken_by(program + "W[] = Z[] + 1\n#! same Z W").size(), every_configuration);
}

TEST(LanguageRunner, RefusesAWrongValueAfterStepsInEveryConfigurationThatTakesThem) {
  const auto all_steps = static_cast<std::size_t>(
      std::count_if(configurations().begin(), configurations().end(),
                    [](const Configuration& configuration) { return static_cast<bool>(configuration.run_steps); }));
  const std::string program = "state x[] = i64(1)\nnext x[] = 3 * x[]\nW[] = x[] + iteration\n#! steps 3\n";
  EXPECT_TRUE(promises_broken_by(program + "#! expect next_x = 27\n#! expect x = 9\n#! expect W = 11").empty());
  for (const char* const wrong : {"#! expect next_x = 9", "#! expect x = 27", "#! expect W = 12"}) {
    const std::vector<std::string> problems = promises_broken_by(program + wrong);
    EXPECT_EQ(static_cast<std::size_t>(std::count_if(
                  problems.begin(), problems.end(),
                  [](const std::string& problem) { return problem.find("all steps") != std::string::npos; })),
              all_steps)
        << wrong;
    EXPECT_GT(problems.size(), all_steps) << wrong;
  }
}

TEST(LanguageRunner, RefusesAWrongMissingOrFurtherError) {
  const std::string program = "Z[] = X[]\n";
  EXPECT_EQ(promises_broken_by(program + "#! error 1:8 unknown tensor").size(), 1U);
  EXPECT_EQ(promises_broken_by(program + "#! error - unknown tensor").size(), 1U);
  EXPECT_EQ(promises_broken_by(program + "#! error 1:7 unknown scalar").size(), 1U);
  EXPECT_EQ(promises_broken_by(program + "#! error 1:7 unknown tensor\n#! help rename").size(), 1U);
  EXPECT_EQ(promises_broken_by(program + "#! error 1:7 unknown tensor\n#! error 2:1 more").size(), 1U);
  EXPECT_EQ(promises_broken_by(program + "Y[] = W[]\n#! error 1:7 unknown tensor").size(), 1U);
  EXPECT_EQ(promises_broken_by("Z[] = 1\n#! error 1:7 one").size(), 1U);
}

TEST(LanguageRunner, RefusesADocumentThatMakesNoSense) {
  const std::string program = "input X[i]\nZ[i] = X[i]\n";
  for (const std::string directive :
       {"", "#! random 1", "#! expect Z", "#! expect W = [1]\n#! in X = [1]", "#! expect Z = [1]",
        "#! expect Z = [1]\n#! error 1:1 none\n#! in X = [1]", "#! expcet Z = [1]", "#! help first",
        "#! in X = [[1],[2,3]]\n#! expect Z = [1]", "#! in X = [1]\n#! expect Z = [1]\n#! outputs X"}) {
    EXPECT_THROW(promises_broken_by(program + directive), DocumentError) << directive;
  }
}

}  // namespace
}  // namespace einrel::test
