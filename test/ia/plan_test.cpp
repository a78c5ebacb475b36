#include <gmock/gmock.h>

#include "ia/from_tra.h"
#include "ia/parse.h"
#include "ia/parse_error.h"
#include "ia/print.h"
#include "ia/rules/rewrite.h"
#include "ia/search.h"
#include "tra/text/parse.h"

namespace einrel::test {
namespace {

using testing::HasSubstr;

constexpr const char* two_matrices = "input X[4,4] cut <2,2> on <0>\ninput Y[4,4] cut <2,2> on <0>\n";

TEST(IaText, ReadsBackWhatItPrints) {
  for (const Rule& rule : all_rules()) {
    const IaProgram program = parse_ia(SourceText("example", std::string(rule.example)), 2);
    const std::string text = to_text(program.store, program.plan);
    const IaProgram again = parse_ia(SourceText("printed", text), 2);
    EXPECT_EQ(to_text(again.store, again.plan), text) << rule.name;
  }
}

TEST(IaText, HasJoinsOfSeveralRelationsThatNoRuleIsAbout) {
  const std::string inputs =
      "input X[4,4] : f32 cut <2,2> on all\ninput Y[4,6] : f32 cut <2,3> on all\ninput W[6] : f32 cut <3> on <0>\n";
  const std::string text = "kernel f(A[i,j], B[j,k], C[k]) -> [i,j,k] = A[i,j] * B[j,k] + C[k]\n" + inputs;
  const std::string joined = "Z = local_join(<1,2>, <0,2>, f)(X, Y, W)\noutput Z\n";
  const IaProgram program = parse_ia(SourceText("wide", text + joined), 3);
  const IaNode& join = program.store[program.plan.front().id];
  EXPECT_EQ(join.type.relation.key_arity, 3U);
  EXPECT_EQ(join.type.relation.chunks.size(), 12U);
  EXPECT_EQ(join.type.tuples.size(), 12U);  // each where its chunk of W lies
  EXPECT_EQ(to_text(program.store, program.plan), inputs + joined);
  for (const Rule& rule : all_rules()) EXPECT_FALSE(match(program.store, rule, program.plan.front().id)) << rule.name;
}

TEST(IaText, SaysWhichPositionsAJoinOfSeveralRelationsHasNot) {
  const std::string text = "kernel f(A[i], B[i], C[i]) -> [i] = A[i] * B[i] + C[i]\ninput X[4] cut <2>\n";
  EXPECT_THAT(error_of(text + "Z = local_join(<0,1>, <0,1>, f)(X, X, X)"), HasSubstr("names position 1"));
  EXPECT_THAT(error_of(text + "Z = local_join(<0>, <2>, f)(X, X, X)"), HasSubstr("the right list <2>"));
}

TEST(IaText, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(error_of(std::string(two_matrices) + "Z = bcats(X)"), HasSubstr("unknown operation 'bcats'"));
  EXPECT_THAT(error_of(std::string(two_matrices) + "Z = bcast(W)"), HasSubstr("unknown relation 'W'"));
  EXPECT_THAT(error_of(std::string(two_matrices) + "Z = local_join(<0,1,1>, <0>, matAdd)(X, Y)"), HasSubstr("twice"));
  EXPECT_THAT(error_of(std::string(two_matrices) + "Z = local_join(<0,1>, <0>, matAdd)(X, Y)"),
              HasSubstr("2 positions of the left keys cannot be joined with 1"));
  EXPECT_THAT(error_of(std::string(two_matrices) + "Z = shuf(<7>)(X)"), HasSubstr("names position 7"));
  EXPECT_THAT(error_of(std::string(two_matrices) + "Z = shuf(<0>, <3>, <2>)(X)"), HasSubstr("does not fit position 0"));
  EXPECT_THAT(error_of("input X[4] cut <9>\nZ = bcast(X)"), HasSubstr("cannot be cut into 9 parts"));
  EXPECT_THAT(error_of("input X[4] cut <2>\nZ = bcast(X)", 0), HasSubstr("1 to 65536 sites"));
}

TEST(LocalOperations, RefuseWhatOtherSitesHold) {
  EXPECT_THAT(error_of(std::string(two_matrices) + "Z = local_join(<1>, <0>, matMul)(X, Y)"),
              HasSubstr("the tuple <0,1> of the left relation lies on site 0, its partner <1,0> on site 1"));
  EXPECT_THAT(error_of("input X[4,4] cut <2,2> on <0>\nZ = local_concat(0, 0)(X)"),
              HasSubstr("the tuples to concatenate to <0> lie on site 0 and on site 1"));
  EXPECT_THAT(error_of("input X[4,4] cut <2,2> on <0>\nZ = local_aggregate(<1>, matAdd)(X)"),
              HasSubstr("the output Z would hold partial aggregates"));
  EXPECT_THAT(error_of("input X[4,4] cut <2,2> on <0>\nZ = bcast(local_aggregate(<1>, matAdd)(X))"),
              HasSubstr("a broadcast of partial aggregates"));
}

TEST(Layouts, ThatDoNotFitAreRefused) {
  const ParsedTra parsed = parse_tra(SourceText("p.tra", "input X[4,4] cut <2,2>\nZ = transform(relu)(X)"));
  try {
    compile_by_table_1(parsed.program, 2, {{"X", KeyPositions{5}}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the layout of input X"));
  }
  EXPECT_THROW(compile_by_table_1(parsed.program, most_sites + 1), UserError);
}

TEST(SiteGrids, UseAsManySitesAsThePartsAllow) {
  EXPECT_EQ(spread({10, 10}, 10).grid, (std::vector<std::int64_t>{10, 1}));
  EXPECT_EQ(spread({2, 9}, 6).grid, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(spread({3}, 7).grid, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(spread({}, 7).grid, (std::vector<std::int64_t>{}));
  EXPECT_EQ(spread({most_key_value, most_key_value, most_key_value}, 8).grid.size(), 3U);
}

TEST(SiteGrids, SpreadTheLargestKeysThatThereCanBe) {
  const SiteGrid grid = spread({most_key_value + 1}, most_sites);
  EXPECT_EQ(site_of(grid, {0}), 0);
  EXPECT_EQ(site_of(grid, {most_key_value}), most_sites - 1);
}

TEST(Rewriting, SaysWhyARuleDoesNotApply) {
  IaProgram program =
      parse_ia(SourceText("p.ia", std::string(two_matrices) +
                                      "Z = local_map(<k0,k1> -> <k1,k0>, relu)(local_filter(k0 == 0)(X))"),
               2);
  const IaId root = program.plan[0].id;
  EXPECT_THAT(apply(rule_named("R1-3"), program.store, program.plan, root).reason,
              HasSubstr("it applies when the key map is the identity; it is <k0,k1> -> <k1,k0>"));
  EXPECT_THAT(apply(rule_named("R2-4"), program.store, program.plan, root).reason,
              HasSubstr("the operations there are not agg(shuf(X))"));
  EXPECT_THROW(rule_named("R9-9"), UserError);
}

TEST(Rewriting, KeepsThePlansContextAble) {
  // Without the shuffle of the join the aggregate below would find its groups apart.
  IaProgram program =
      parse_ia(SourceText("p.ia", std::string(two_matrices) + "Z = local_aggregate(<1>, matAdd)(shuf(<1>)(X))"), 2);
  const IaId shuffle = program.store[program.plan[0].id].inputs[0];
  EXPECT_THAT(apply(rule_named("R2-8a"), program.store, program.plan, shuffle).reason,
              HasSubstr("tuples that agree on the shuffled keys share a site already"));
}

TEST(Search, StaysWithinItsBudgetAndSaysWhetherItSawAll) {
  const ParsedTra parsed = parse_tra(SourceText("p.tra",
                                                "input A[8,8] cut <4,4> on <0>\ninput B[8,8] cut <4,4> on <0>\n"
                                                "C = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, B))"));
  IaProgram whole = compile_by_table_1(parsed.program, 4, parsed.layouts);
  const Derivation all = cheapest_plan(whole.store, whole.plan);
  EXPECT_TRUE(all.complete);
  EXPECT_LT(all.cost().moved, all.start_cost.moved);
  IaProgram few = compile_by_table_1(parsed.program, 4, parsed.layouts);
  const Derivation some = cheapest_plan(few.store, few.plan, {2, 1'000'000});
  EXPECT_FALSE(some.complete);
  EXPECT_LE(some.plans_seen, 8U);
  IaProgram none = compile_by_table_1(parsed.program, 4, parsed.layouts);
  EXPECT_FALSE(cheapest_plan(none.store, none.plan, {1000, 1}).complete);
}

TEST(Search, MakesIndependentChoicesOneAfterTheOther) {
  std::string text = "input X0[64,64] cut <4,4> on <0>\n";
  for (int i = 0; i < 20; ++i) {
    text += "X" + std::to_string(i + 1) + " = transform(relu)(aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(X" +
            std::to_string(i) + ", X0)))\n";
  }
  const ParsedTra parsed = parse_tra(SourceText("chain.tra", text));
  IaProgram program = compile_by_table_1(parsed.program, 4, parsed.layouts);
  EXPECT_EQ(cheapest_plan(program.store, program.plan).cost().moved, 4 * 64 * 64);  // X0 to everyone, once
}

}  // namespace
}  // namespace einrel::test
