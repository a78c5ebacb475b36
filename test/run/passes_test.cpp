#include "run/passes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "report/passes_text.h"
#include "run/planned_tasks.h"
#include "run/recompute.h"
#include "support/program.h"

namespace einrel {
namespace {

/// A product of three matrices, of which that of the last two is small.
const std::string chain =
    "dims i=64 j=64 k=64 l=1\ninput A[i,j], B[j,k], C[k,l]\nD[i,l] = sum[j,k] A[i,j] * B[j,k] * C[k,l]\n"
    "Z[i,l] = exp(D[i,l]) + 1\noutput Z\n";

Compiled compiled(const std::string& text, const PassOptions& options = {}) {
  const CheckedProgram checked = parse_and_check(SourceText("p.ein", text), {});
  PassOptions passes = options;
  passes.checking = checked.passes;
  return compile("p.ein", *checked.graph, {}, checked.initial, passes);
}

const PassRecord* record_of(const Compiled& program, std::string_view pass) {
  const auto found = std::find_if(program.passes.begin(), program.passes.end(),
                                  [&](const PassRecord& record) { return record.pass == pass; });
  return found == program.passes.end() ? nullptr : &*found;
}

std::string refusal_of(const std::vector<std::string>& names) {
  try {
    skipped_passes(names);
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Passes, AreRecordedInTheOrderOfTheListWithVerticesThatFollowFromOneToTheNext) {
  const Compiled program = compiled(chain);
  std::vector<std::string_view> names;
  std::size_t vertices = program.passes.front().vertices_before;
  for (const PassRecord& record : program.passes) {
    names.push_back(record.pass);
    EXPECT_EQ(record.vertices_before, vertices) << record.pass;
    EXPECT_GE(record.seconds, 0);
    vertices = record.vertices_after;
  }
  EXPECT_EQ(names, (std::vector<std::string_view>{"gradient", "minimize", "needed", "selections", "order", "factors",
                                                  "joins"}));
  EXPECT_EQ(vertices, program.graph.vertices.size());
}

TEST(Passes, SayWhatTheyChangedWhereThatIsWanted) {
  const Compiled program = compiled(chain, {.are_told = true});
  const PassRecord& order = *record_of(program, "order");
  EXPECT_EQ(order.vertices_after, order.vertices_before + 1);
  ASSERT_EQ(order.changes.size(), 2U);  // B * C first: l is one long
  EXPECT_EQ(order.changes[0].substr(0, 4), "+ D_");
  EXPECT_EQ(order.changes[1].substr(0, 9), "~ D[i,l] ");
  EXPECT_TRUE(record_of(program, "factors")->changes.empty());
  EXPECT_TRUE(record_of(compiled(chain), "order")->changes.empty());
}

TEST(Passes, CountTheVerticesOfGradientsAndOfMinimizeApart) {
  const Compiled program = compiled(
      "dims b=4 f=3\ninput X[b,f], y[b]\nstate w[f] = f32(0)\nloss[] = mean[b] sq(sum[f] X[b,f] * w[f] - y[b])\n"
      "minimize loss over w by momentum(0.1)\noutput loss\n");
  const PassRecord& gradient = *record_of(program, "gradient");
  const PassRecord& minimize = *record_of(program, "minimize");
  EXPECT_GT(gradient.vertices_after, gradient.vertices_before);
  EXPECT_GT(minimize.vertices_after, gradient.vertices_after);
  ASSERT_EQ(gradient.changes.size(), 1U);
  EXPECT_EQ(gradient.changes.front(),
            fmt::format("loss by w: {} vertices", gradient.vertices_after - gradient.vertices_before));
  EXPECT_EQ(minimize.changes.front(),
            fmt::format("loss over w by momentum: {} vertices", minimize.vertices_after - minimize.vertices_before));
}

TEST(Passes, ThatAreLeftOutDoNothing) {
  const Compiled program = compiled(chain, {.skipped = skipped_passes({"order", "fusion"})});
  EXPECT_TRUE(program.contractions.empty());
  EXPECT_EQ(record_of(program, "order"), nullptr);
  EXPECT_EQ(record_of(program, "factors")->vertices_before, record_of(program, "selections")->vertices_after);
  EXPECT_FALSE(compiled(chain).contractions.empty());
}

TEST(Passes, WithoutFusionEachVertexHasATaskOfItsOwn) {
  const std::string softmax =
      "dims i=64 j=64\ninput X[i,j]\nm[i] = max[j] X[i,j]\ns[i] = sum[j] exp(X[i,j] - m[i])\n"
      "Z[i,j] = exp(X[i,j] - m[i]) / s[i]\noutput Z\n";
  const auto calls = [](const PlannedTasks& tasks) {
    return std::count_if(tasks.graph.tasks.begin(), tasks.graph.tasks.end(),
                         [](const Task& task) { return std::holds_alternative<CallKernel>(task.op); });
  };
  const Compiled program = compiled(softmax);
  const PlannedTasks together = whole_tasks(program);
  EXPECT_EQ(calls(together), 1);
  EXPECT_NE(passes_text(program, together).find("together: m, s, Z"), std::string::npos);
  const Compiled without = compiled(softmax, {.skipped = {"fusion"}});
  const PlannedTasks apart = whole_tasks(without);
  EXPECT_GE(calls(apart), 3);  // a vertex of three operands is two joins
  EXPECT_TRUE(apart.graph.together.empty());
  EXPECT_EQ(passes_text(without, apart).find("together"), std::string::npos);
}

TEST(Passes, WithoutRecomputationNothingIsComputedAgainHoweverLittleMemoryThereIs) {
  std::string text = "dims i=1024 j=1024\ninput X[i,j]\nstate w[] = f32(1)\nA0[i,j] = w[] * X[i,j]\n";
  for (int layer = 1; layer <= 6; ++layer)
    text += fmt::format("A{}[i,j] = tanh(sum[k] A{}[i,k] * X[k,j])\n", layer, layer - 1);
  text += "loss[] = mean[i,j] sq(A6[i,j])\nminimize loss over w by sgd(0.1)\noutput loss\n";
  constexpr std::int64_t limit = 40'000'000;  // of 4 MB each: six activations do not fit beside their gradients
  const Compiled program = compiled(text);
  const std::optional<Compiled> again = recomputed_in_process(program, limit, 1);
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->recomputed.empty());
  EXPECT_EQ(again->passes.back().pass, "recompute");
  EXPECT_EQ(again->passes.back().vertices_after, again->graph.vertices.size());
  EXPECT_FALSE(recomputed_in_process(compiled(text, {.skipped = {"recompute"}}), limit, 1).has_value());
}

TEST(Passes, OfAnUnknownNameOrOneThatMustRunAreRefusedWithThoseThatMayBeLeftOut) {
  const std::string optional = "those that may be left out are selections, order, factors, recompute, fusion";
  EXPECT_EQ(refusal_of({"ordr"}), "there is no pass 'ordr'; did you mean 'order'? " + optional);
  EXPECT_EQ(refusal_of({"order", "xyz"}), "there is no pass 'xyz'; " + optional);
  EXPECT_EQ(refusal_of({"gradient"}), "the pass 'gradient' must run; " + optional);
  EXPECT_EQ(refusal_of({}), "nothing");
  EXPECT_EQ(skipped_passes({"order", "order", "fusion"}), (SkippedPasses{"order", "fusion"}));
}

}  // namespace
}  // namespace einrel
