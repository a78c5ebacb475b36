#include "run/tra_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "exec/executors/serial/serial.h"
#include "exec/tasks/from_ia.h"
#include "run/algebra.h"
#include "run/choose_plan.h"
#include "run/random_input.h"
#include "run/scalars.h"
#include "run/session.h"
#include "support/compare.h"
#include "support/random_tra.h"
#include "support/run_tasks.h"
#include "tra/text/print.h"

namespace einrel::test {
namespace {

using testing::HasSubstr;

ParsedTra read(const std::string& text, const std::map<std::string, BoundInput>& inputs = {},
               const std::vector<std::string>& outputs = {}) {
  return tra_program(SourceText("p.tra", text), inputs, outputs);
}

std::string message_of(const std::string& text, const std::map<std::string, BoundInput>& inputs = {},
                       const std::vector<std::string>& outputs = {}) {
  try {
    read(text, inputs, outputs);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

Outputs run(const PlannedTasks& tasks, const TensorBindings& inputs, const ScalarBindings& scalars,
            std::size_t threads) {
  Outputs outputs = output_tensors(tasks.graph);
  Session session(tasks, {threads, {}}, {});
  const PlanRunReport report = session.step(sources_of(inputs), writers_to(outputs, tasks.graph), scalars);
  EXPECT_EQ(report.vertex_seconds.size(), tasks.names.size());
  return outputs;
}

void expect_exactly(const Outputs& got, const Outputs& want) {
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, tensor] : want) {
    const std::vector<double> allowed(static_cast<std::size_t>(tensor.count()), 0);
    EXPECT_TRUE(agree(got.at(name), tensor, allowed)) << name;
  }
}

TEST(TraProgram, RunsAsTheInterpreterSaysOnAnyNumberOfSites) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const RandomTra random = random_tra(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + to_text(random.program));
    const Outputs want = interpreted(random.program, random.inputs);
    for (const std::int64_t sites : {1, 2, 3, 4, 6}) {
      const bool search = seed % 3 == 0;
      const AlgebraPlan plan = plan_algebra(random.program, sites, random.layouts, search);
      expect_exactly(run(tasks_of(plan, {}), random.inputs, {}, 2), want);
      const TaskGraph apart = tasks_of(plan.ia.store, plan.ia.plan, SiteMemory::apart);
      expect_exactly(run_on(apart, random.inputs, 1), want);
      std::int64_t sent = 0;
      for (const Task& task : apart.tasks) {
        if (std::holds_alternative<Send>(task.op)) sent += bytes_of(apart[task.reads.front()]);
      }
      EXPECT_EQ(sent, bytes_of(plan.ia.store, plan.ia.plan).total);
    }
  }
}

TEST(TraProgram, RunsWithinLittleMemory) {
  const ParsedTra parsed = read(
      "input A[600,600] cut <6,6>\ninput B[600,600] cut <6,6>\n"
      "C = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, B))\n");
  TensorBindings inputs;
  for (const StoredRelation& input : inputs_of(parsed.program))
    inputs[input.name] = random_tensor(1, input.name, input.dtype, input.bound);
  const auto memory_of = [&](std::optional<std::int64_t> limit) {
    RunRequest request{.planner = "ia-rules", .sites = 2, .threads = 2};
    if (limit) request.memory = MemoryLimit{limit};
    return choose(AnyProgram(parsed), request, SourceText("p.tra", ""), {}).memory;
  };
  EXPECT_TRUE(std::holds_alternative<Unlimited>(memory_of(std::nullopt)));
  EXPECT_TRUE(std::holds_alternative<InOrder>(memory_of(100'000'000)));
  // 1.44 MB each: a limit leaves 8 MiB for chunks, so only a larger program would spill.
  EXPECT_TRUE(std::holds_alternative<InOrder>(memory_of(1'000'000)));
}

TEST(TraProgram, OutputsMustBeTensors) {
  EXPECT_THAT(message_of("input A[4,4] cut <2,2>\nC = join(<1>, <0>, matMul)(A, A)\n"),
              testing::AllOf(HasSubstr("p.tra:2:5"),
                             HasSubstr("'C' cannot be put out, since it is no tensor: its keys "
                                       "have 3 positions, but its arrays 2 dimensions"),
                             HasSubstr("aggregate(<0,1>, matAdd)(C)"), HasSubstr("output NAME")));
  EXPECT_THAT(message_of("input A[4,4] cut <2,2>\nE = aggregate(<0>, matAdd)(A)\n"),
              testing::AllOf(HasSubstr("1 position, but its arrays 2 dimensions"), HasSubstr("concat(0, 0)(E)")));
  EXPECT_THAT(message_of("input A[5,4] cut <2,2>\nH = rekey(<a,b> -> <b,a>)(A)\n"),
              HasSubstr("along dimension 0 the array under <0,0> has extent 3, that under <0,1> beside it 2"));
  EXPECT_THAT(message_of("kernel all(A[i]) -> [] = sum[i] A[i]\ninput A[4] cut <2>\nS = transform(all)(A)\n"),
              HasSubstr("fold the tuples, as in aggregate(<>, matAdd)(S)"));
}

TEST(TraProgram, AllOutputsThatAreNoTensorsAreNamed) {
  const std::string said = message_of(
      "input A[4,4] cut <2,2>\nC = join(<1>, <0>, matMul)(A, A)\nE = aggregate(<0>, matAdd)(A)\nZ = "
      "transform(relu)(A)\n");
  EXPECT_THAT(said, testing::AllOf(HasSubstr("'C' cannot"), HasSubstr("'E' cannot")));
  EXPECT_THAT(said, testing::Not(HasSubstr("'Z' cannot")));
}

TEST(TraProgram, WhatTheHelpSaysMakesTensors) {
  const std::string inputs = "input A[4,6] cut <2,3>\ninput B[6,4] cut <3,2>\n";
  for (const std::string made :
       {"Z = aggregate(<0,1>, matAdd)(join(<1>, <0>, matMul)(A, B))", "Z = concat(2, 0)(join(<1>, <0>, matMul)(A, B))",
        "Z = rekey(<a> -> <a,0>)(aggregate(<0>, matAdd)(A))", "Z = rekey(<a> -> <0,a>)(aggregate(<0>, matAdd)(A))",
        "Z = concat(0, 0)(aggregate(<0>, matAdd)(A))", "Z = aggregate(<>, matAdd)(A)"}) {
    const std::string text = inputs + made + "\n";
    const ParsedTra parsed = read(text);
    TensorBindings bindings;
    for (const char* const name : {"A", "B"})
      bindings[name] = random_tensor(1, name, DType::f32, name[0] == 'A' ? make_shape({4, 6}) : make_shape({6, 4}));
    const AlgebraPlan plan = plan_algebra(parsed.program, 3, parsed.layouts, false);
    const Outputs got = run(tasks_of(plan, {}), bindings, {}, 1);
    const Tensor want = interpreted(parsed.program, bindings).at("Z");
    const std::vector<double> allowed(static_cast<std::size_t>(want.count()), 1e-5);
    EXPECT_TRUE(agree(got.at("Z"), want, allowed)) << made;
  }
}

TEST(TraProgram, DataMustFitTheInputs) {
  const std::string text = "input A[4,4] cut <2,2>\nZ = transform(relu)(A)\n";
  const auto bound = [](Shape shape, DType dtype) {
    return BoundInput{std::move(shape), std::string(name_of(dtype)), {dtype}, "a.npy"};
  };
  const Shape square = make_shape({4, 4});
  EXPECT_EQ(message_of(text, {{"A", bound(square, DType::f32)}}), "");
  EXPECT_THAT(message_of(text, {{"A", bound(make_shape({4, 5}), DType::f32)}}),
              testing::AllOf(HasSubstr("p.tra:1:"), HasSubstr("(4, 4)"), HasSubstr("a.npy has shape (4, 5)")));
  EXPECT_THAT(message_of(text, {{"A", bound(square, DType::f64)}}), HasSubstr("is declared f32, but a.npy holds f64"));
  EXPECT_THAT(message_of(text, {{"AA", bound(square, DType::f32)}}),
              testing::AllOf(HasSubstr("no input 'AA', which a.npy is bound to"), HasSubstr("did you mean 'A'?")));
}

TEST(TraProgram, AnyRelationWithANameCanBeAnOutput) {
  const std::string text = "input A[4,4] cut <2,2>\nY = transform(relu)(A)\nZ = transform(exp)(Y)\n";
  const ParsedTra parsed = read(text, {}, {"Y", "A"});
  std::vector<std::string> names;
  for (const TraOutput& output : parsed.program.outputs) names.push_back(output.name);
  EXPECT_EQ(names, (std::vector<std::string>{"Y", "A"}));  // in place of Z
  EXPECT_THAT(message_of(text, {}, {"YY"}), HasSubstr("the program has no tensor 'YY'; did you mean 'Y'?"));
}

TEST(TraProgram, NeedsTheInputsOfItsOutputsOnly) {
  const ParsedTra parsed = read("input A[4]\ninput B[4]\nZ = transform(relu)(A)\n");
  ASSERT_EQ(inputs_of(parsed.program).size(), 1U);
  EXPECT_EQ(declaration_of(inputs_of(parsed.program).front()), "A[4] : f32");
}

TEST(TraProgram, ScalarsAreBoundForEachRun) {
  const ParsedTra parsed = read(
      "scalar eta = 2\nkernel scaled(A[i]) -> [i] = eta * A[i]\ninput A[3] cut <2>\n"
      "Z = transform(scaled)(A)\n");
  const AlgebraPlan plan = plan_algebra(parsed.program, 2, parsed.layouts, false);
  const PlannedTasks tasks = tasks_of(plan, {});
  const TensorBindings inputs{{"A", tensor_of(DType::f32, make_shape({3}), {1, 2, 3})}};
  for (const double eta : {2.0, 5.0}) {
    const ScalarBindings scalars = bind_scalars(parsed.program.scalars, {{"eta", eta}});
    EXPECT_EQ(values_of(run(tasks, inputs, scalars, 1).at("Z")), (std::vector<double>{eta, 2 * eta, 3 * eta}));
  }
  EXPECT_THROW(bind_scalars(parsed.program.scalars, {{"et", 1}}), UserError);
}

TEST(TraProgram, TasksArePartOfTheOperationsThatExplainNames) {
  const ParsedTra parsed = read("input A[4,4] cut <2,2>\nC = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, A))\n");
  const AlgebraPlan plan = plan_algebra(parsed.program, 2, parsed.layouts, true);
  const PlannedTasks tasks = tasks_of(plan, {});
  const AlgebraFacts facts = facts_of(plan);
  ASSERT_EQ(facts.found().operations.size(), tasks.names.size() + 1);  // then the outputs
  for (std::size_t i = 0; i < tasks.names.size(); ++i) {
    const std::string& text = facts.found().operations[i].text;
    EXPECT_TRUE(text.starts_with(tasks.names[i] + " = ") || text.starts_with("input " + tasks.names[i] + "[")) << text;
  }
  for (std::size_t t = 0; t < tasks.graph.tasks.size(); ++t) EXPECT_NE(name_of(tasks, t), "label values");
}

}  // namespace
}  // namespace einrel::test
