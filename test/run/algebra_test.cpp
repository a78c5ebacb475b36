#include "run/algebra.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ia/rules/rule.h"
#include "report/algebra_text.h"
#include "report/lists.h"
#include "report/report_json.h"
#include "support/program.h"
#include "tra/text/parse.h"

namespace einrel {
namespace {

using testing::HasSubstr;

constexpr const char* multiplication = "dims i=40 j=40 k=40\ninput A[i,j], B[j,k]\nC[i,k] = sum[j] A[i,j] * B[j,k]";

AlgebraPlan plan_of(const std::string& text, std::int64_t sites, bool search) {
  return plan_algebra(algebra_of(compile("test.ein", graph_of(text)), sites), sites, {}, search);
}

TEST(AlgebraText, ShowsBothAlgebrasAndWhatMoves) {
  const std::string text = algebra_text(facts_of(plan_of(multiplication, 4, false)));
  EXPECT_THAT(text, HasSubstr("t1 = join(<1>, <0>, C)(A, B)"));
  EXPECT_THAT(text, HasSubstr("C = aggregate(<0,2>, add)(t1)"));
  EXPECT_THAT(text, HasSubstr("local_join(<1>, <0>, C)(t1, B)"));
  EXPECT_THAT(text, HasSubstr("in all 12800 floats moved; the busiest site has 25 % of the work"));  // 4*1600 + 4*1600
}

TEST(AlgebraText, ShowsTheDerivationStepByStep) {
  const std::string text = algebra_text(facts_of(plan_of(multiplication, 4, true)));
  EXPECT_THAT(text, HasSubstr("join(bcast(X),Y) = join(X,bcast(Y))\n"
                              "      from local_join(<1>, <0>, C)(bcast(A), B)\n"
                              "      to   local_join(<1>, <0>, C)(A, bcast(B))\n"));
  EXPECT_THAT(text, HasSubstr("in all 6400 floats moved"));
}

TEST(AlgebraText, TellsThePapersCountFromTheExactOne) {
  ParsedTra parsed = parse_tra(SourceText("sum.tra",
                                          "input X[8,8] cut <4,2> on <0>\n"
                                          "S = aggregate(<1>, matAdd)(X)\n"));
  AlgebraPlan plan = plan_algebra(std::move(parsed.program), 4, parsed.layouts, false);
  // Four sites, each with a partial aggregate of two arrays of 2 x 4; the paper counts each key once.
  const Rule& rule = rule_named("R2-5");
  const Match found = match(plan.ia.store, rule, plan.ia.plan[0].id).value();
  plan.ia.plan[0].id = rule.build(plan.ia.store, found).front();
  EXPECT_THAT(algebra_text(facts_of(plan)),
              HasSubstr("in all 64 floats moved; counted as in the paper, each key once: 16 floats"));
}

TEST(ExplainJson, HoldsBothAlgebrasAndTheDerivation) {
  const Compiled compiled = compile("test.ein", graph_of(multiplication));
  const auto json = nlohmann::json::parse(explanation_json(
      {.program = "test.ein", .compiled = &compiled, .algebra = facts_of(plan_of(multiplication, 4, true))}));
  EXPECT_EQ(json["sites"], 4);
  EXPECT_EQ(json["planner"], "ia-rules");
  EXPECT_EQ(json["cost"]["floats"], 6400);
  EXPECT_EQ(json["derivation"].size(), 2U);
  EXPECT_EQ(json["derivation"][0]["rule"], "R2-6a");
  double moved = 0;
  for (const auto& line : json["ia"]) moved += line["floats"].get<double>();
  EXPECT_EQ(moved, 6400);
}

TEST(Rules, ReadAsInTheGoldenFile) {
  std::ifstream file(EINREL_GOLDEN_RULES);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(rules_text(), golden.str()) << "if that is wanted, put `einrel list rules` there and say why in the commit";
}

}  // namespace
}  // namespace einrel
