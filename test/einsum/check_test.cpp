#include "einsum/check/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "einsum/graph/print.h"
#include "support/program.h"

namespace einrel {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string inputs = "dims i=3 j=4 k=5\ninput X[i,j], Y[j,k]\ninput N[i] : i64\n";

/// The formulas of all vertices but the inputs.
std::vector<std::string> formulas(const std::string& text, const Environment& environment = {}) {
  const EinGraph graph = graph_of(text, environment);
  std::vector<std::string> lines;
  for (const Vertex& vertex : graph.vertices) {
    if (!std::holds_alternative<Input>(vertex.op)) lines.push_back(formula(vertex, graph));
  }
  return lines;
}

DType type_of(const std::string& expression) {
  const std::string text =
      "dims i=3\ninput A[i] : f32, B[i] : f64, H[i] : f16, G[i] : bf16, I[i] : i32, L[i] : i64, C[i] : bool\n"
      "scalar eta = 0.5, n = 2\nZ[i] = " +
      expression + "\noutput Z\n";
  const EinGraph graph = graph_of(text);
  return graph[graph.outputs.front()].dtype;
}

TEST(ErrorMessage, LooksAsTheDesignShowsIt) {
  try {
    check_text("dims a=300 b=400\ninput X[i,a], Y[b,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n");
    FAIL() << "the extents conflict";
  } catch (const ProgramError& error) {
    EXPECT_STREQ(error.what(),
                 "error: label 'j' has extent 300 in X[i,j] but 400 in Y[j,k]\n"
                 "  --> test.ein:3:21\n"
                 " 3 | Z[i,k] = sum[j] X[i,j] * Y[j,k]\n"
                 "   |                     ^      ^\n"
                 "  help: declare both with the same extent, or rename one label\n");
  }
}

TEST(ErrorMessage, CountsColumnsInCharactersNotBytes) {
  EXPECT_THAT(errors_of("dims i=3\ninput größe[i]\nZ[i] = größe[i] + q\n"), ElementsAre("3:19 unknown name 'q'"));
}

struct ErrorCase {
  std::string name;
  std::string statements;
  std::vector<std::string> errors;
};

/// How GoogleTest shows a case.
std::ostream& operator<<(std::ostream& out, const ErrorCase& one) { return out << one.name; }

class EveryKindOfError : public testing::TestWithParam<ErrorCase> {};

TEST_P(EveryKindOfError, IsReportedAtItsPlace) {
  EXPECT_EQ(errors_of(inputs + GetParam().statements), GetParam().errors);
}

INSTANTIATE_TEST_SUITE_P(
    Check, EveryKindOfError,
    testing::Values(
        ErrorCase{"UnknownTensor", "Z[i] = sum[j] XX[i,j]\n", {"4:15 unknown tensor 'XX'"}},
        ErrorCase{"UnknownName", "Z[i] = N[i] * eta\n", {"4:15 unknown name 'eta'"}},
        ErrorCase{"MisspeltReduction", "Z[i] = summ[j] X[i,j]\n", {"4:8 unknown reduction 'summ'"}},
        ErrorCase{"UnknownFunction", "Z[i,j] = rellu(X[i,j])\n", {"4:10 unknown function or macro 'rellu'"}},
        ErrorCase{"ExtentConflict",
                  "Z[i,k] = sum[j] X[i,j] * X[j,k]\n",
                  {"4:28 label 'j' has extent 4 in dims but 3 in X[j,k]",
                   "4:30 label 'k' has extent 5 in dims but 4 in X[j,k]"}},
        ErrorCase{"NotReduced",
                  "Z[i] = X[i,j]\n",
                  {"4:12 label 'j' is not reduced: it stands in X[i,j] but not on the left"}},
        ErrorCase{"ReducedButAbsent",
                  "Z[i] = sum[k] N[i]\n",
                  {"4:12 label 'k' is reduced but does not occur in the reduced expression"}},
        ErrorCase{"ReducedAndOnTheLeft",
                  "Z[i] = sum[i] N[i]\n",
                  {"4:3 label 'i' is reduced on the right, so it cannot stand on the left too"}},
        ErrorCase{"WrongRank", "Z[i] = X[i]\n", {"4:8 'X' has 2 dimensions but is read with 1 index"}},
        ErrorCase{"WrongDtype", "Z[i] = N[i] / 2\n", {"4:8 division of integers"}},
        ErrorCase{"FractionMeetsIntegers",
                  "Z[i] = N[i] * 0.5\n",
                  {"4:8 the number 0.5 is written as a fraction, but meets i64"}},
        ErrorCase{"Cycle", "Z[i] = W[i]\nW[i] = Z[i]\n", {"4:8 cyclic definition: Z needs W needs Z"}},
        ErrorCase{"CycleThroughItself", "Z[i] = Z[i] + 1\n", {"4:8 cyclic definition: Z needs Z"}},
        ErrorCase{"ReadBeforeDefinition", "Z[i] = W[i]\nW[i] = N[i]\n", {"4:8 'W' is read before its definition"}},
        ErrorCase{"Duplicate", "Z[i] = N[i]\nZ[i] = N[i]\n", {"5:1 'Z' is defined twice"}},
        ErrorCase{"WindowOutOfRange",
                  "dims o=4 d=2\nZ[o] = sum[d] N[o+d]\n",
                  {"5:17 N[o+d] reads position 4 of dimension 1, whose extent is 3"}},
        ErrorCase{
            "WindowBelowZero", "Z[i] = N[i-1]\n", {"4:10 N[i-1] reads position -1 of dimension 1, whose extent is 3"}},
        ErrorCase{"BadNumber", "Z[i] = 1.2.3 * N[i]\n", {"4:8 bad number '1.2.3'"}},
        ErrorCase{"BadExponent", "Z[i] = 1e * N[i]\n", {"4:8 bad number '1e'"}},
        ErrorCase{
            "NumberTooLarge", "Z[i] = 1e999 * X[i,0]\n", {"4:8 bad number '1e999': it is beyond the range of f64"}},
        ErrorCase{"UnclosedBracket", "Z[i] = (N[i] + 1\n", {"4:8 '(' is never closed"}},
        ErrorCase{"UnopenedBracket", "Z[i] = N[i]) + 1\n", {"4:12 ')' closes nothing"}},
        ErrorCase{"CrossedBrackets", "Z[i] = (N[i)] + 1\n", {"4:12 ')' cannot close '['", "4:13 ']' cannot close '('"}},
        ErrorCase{"MissingExtent", "Z[i,q] = N[i]\n", {"4:5 nothing tells the extent of label 'q'"}},
        ErrorCase{"MaxOverNothing",
                  "dims z=0\ninput E[z]\nZ[] = max[z] E[z]\n",
                  {"6:7 max[z] has no value: the label's extent is 0"}},
        ErrorCase{"Gradient",
                  "L[i] = sum[j] X[i,j]\ngradient G = L wrt X\n",
                  {"5:14 'L' has 1 dimension, but a gradient is that of one number"}},
        ErrorCase{"MacroLabelCount",
                  "Z[i,j] = norm(X[i,j])\n",
                  {"4:10 macro 'norm' takes 1 label and 1 argument, not 0 and 1"}},
        ErrorCase{"MacroFreeLabel",
                  "def f(x) = x * N[i]\n",
                  {"4:18 label 'i' in macro 'f' is neither a parameter nor reduced"}},
        ErrorCase{"MacroRecursion", "def f(x) = f(x)\n", {"4:12 macro 'f' calls itself"}},
        ErrorCase{"ViewDoesNotDivide",
                  "dims a=3\nZ[i,a,b] = view X[i,(a b)]\n",
                  {"5:22 dimension 2 of 'X' has extent 4, which 3 does not divide"}},
        ErrorCase{"ViewLosesALabel", "Z[i] = view X[i,j]\n", {"4:17 label 'j' of this view is missing on the left"}},
        ErrorCase{"LabelTwice", "Z[i,i] = N[i]\n", {"4:5 label 'i' stands twice"}},
        ErrorCase{"ReservedWord", "sum[i] = N[i]\n", {"4:1 'sum' is a word of the language and cannot name a tensor"}},
        ErrorCase{"ChainedComparison", "Z[i] = 0 < N[i] < 2\n", {"4:17 comparisons do not chain"}},
        ErrorCase{"ReductionWithoutLabels", "Z[] = sum(N[i])\n", {"4:7 'sum' is a word of the language"}},
        ErrorCase{"ForeignCharacter", "Z[i] = N[i] ^ 2\n", {"4:13 '^' is not part of the language"}}),
    [](const auto& one) { return one.param.name; });

TEST(Check, TakesExtentsOfTheLabelsOfAViewFromOutside) {
  Environment environment;
  environment.inputs["X"] = {make_shape({6, 4}), "f32", {DType::f32}, "x.npy"};
  const std::string text = "input X[n,b]\nY[i,j,b] = view X[(i j),b]\nZ[(j b),i] = view Y[i,j,b]\n";
  EXPECT_THAT(errors_of(text, environment),
              ElementsAre("2:20 only one extent of a group can be found, but 'i' and 'j' are both open"));
  for (const auto& [label, other] : {std::pair("i", 3), std::pair("j", 3)}) {
    environment.dims = {{label, 2}};
    const EinGraph graph = graph_of(text, environment);
    EXPECT_EQ(graph.vertices[1].bound,
              label == std::string("i") ? make_shape({2, other, 4}) : make_shape({other, 2, 4}));
  }
  environment.dims = {{"i", 4}};
  EXPECT_THAT(errors_of(text, environment),
              ElementsAre("2:20 dimension 1 of 'X' has extent 6, which 4 does not divide"));
  environment.dims = {{"i", 2}, {"k", 2}};
  EXPECT_THAT(errors_of(text, environment), ElementsAre(testing::HasSubstr("the program has no label 'k'")));
}

TEST(Check, ReportsTheErrorsOfAllStatementsTogether) {
  EXPECT_THAT(
      errors_of("dims i=3\ninput X[i\nZ[i] = Y[i] +\nW[i] = sum[q] 2\nV[i] = W[i] * X[i] + Q[i]\n"),
      ElementsAre("2:8 '[' is never closed", "3:14 an expression is missing before the end of the line",
                  "4:12 label 'q' is reduced but does not occur in the reduced expression", "5:22 unknown tensor 'Q'"));
}

TEST(Check, DoesNotBlameStatementsThatReadABrokenOne) {
  EXPECT_THAT(errors_of(inputs + "A[i] = X[i,j]\nB[i] = A[i] * 2\nC[] = sum[i] B[i]\n"),
              ElementsAre(HasSubstr("label 'j' is not reduced")));
}

TEST(Check, SuggestsTheNearestName) {
  try {
    check_text("dims i=3\ninput weights[i]\nZ[i] = wieghts[i]\n");
    FAIL() << "the tensor is unknown";
  } catch (const ProgramError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'weights'?"));
  }
}

TEST(Check, AdvisesParenthesesWhereAReductionEndsTooEarly) {
  try {
    check_text(inputs + "Z[] = sum[i] N[i] + N[i]\n");
    FAIL() << "the second N[i] is outside the sum";
  } catch (const ProgramError& error) {
    EXPECT_THAT(error.what(), HasSubstr("put what it covers in parentheses, sum[i] (...)"));
  }
}

TEST(Check, ComparesDataWithTheDeclaration) {
  Environment environment;
  environment.inputs["X"] = {make_shape({3, 4}), "f32", {DType::f32}, "x.npy"};
  environment.inputs["Y"] = {make_shape({5, 6}), "f64", {DType::f64}, "y.npy"};
  environment.inputs["W"] = {make_shape({3}), "f32", {DType::f32}, "w.npy"};
  environment.inputs["Q"] = {make_shape({3}), "f32", {DType::f32}, "q.npy"};
  EXPECT_THAT(errors_of("input X[i,j], Y[j,k], W[i,j]\nZ[i,k] = sum[j] X[i,j] * Y[j,k] * W[i,j]\n", environment),
              ElementsAre("1:15 'Y' is declared f32, but y.npy holds f64",
                          "1:17 label 'j' has extent 4 in X[i,j] (x.npy) but 5 in Y[j,k] (y.npy)",
                          "1:23 W[i,j] has 2 dimensions, but w.npy has shape (3,)",
                          "the program has no input 'Q', which q.npy is bound to"));
}

TEST(Check, TakesExtentsFromDataAndFromOverrides) {
  Environment environment;
  environment.inputs["X"] = {make_shape({3, 4}), "f32", {DType::f32}, "x.npy"};
  environment.dims["k"] = 7;
  const EinGraph graph = graph_of("dims k=2\ninput X[i,j]\nZ[i,k] = sum[j] X[i,j] * k\n", environment);
  EXPECT_EQ(graph[graph.outputs.front()].bound, make_shape({3, 7}));
}

TEST(Check, NamesTheExtentsThatOnlyDataCanGive) {
  const CheckedProgram checked = check_text("dims k=2\ninput X[i,j], Y[j,k]\nZ[i,k] = sum[j] X[i,j] * Y[j,k]\n");
  EXPECT_THAT(checked.unknown_extents, ElementsAre("i", "j"));
  EXPECT_FALSE(checked.graph.has_value());
}

TEST(Check, InfersTheExtentOfAWindowThatStaysInside) {
  const auto bound = [](const std::string& statement) {
    const EinGraph graph = graph_of("dims n=10 d=3\ninput X[n], K[d]\n" + statement);
    return graph[graph.outputs.front()].bound.front().value();
  };
  EXPECT_EQ(bound("Z[y] = sum[d] X[y+d] * K[d]\n"), 8);
  EXPECT_EQ(bound("Z[y] = sum[d] X[2*y+d] * K[d]\n"), 4);
  EXPECT_EQ(bound("Z[y] = sum[d] X[y+2*d] * K[d]\n"), 6);
  EXPECT_EQ(bound("Z[y] = X[3*y]\n"), 4);
  EXPECT_EQ(bound("Z[y] = X[9-y]\n"), 10);
  EXPECT_EQ(bound("Z[y] = X[8-2*y]\n"), 5);
}

TEST(Check, MakesOneVertexPerReductionAndOneForTheRest) {
  EXPECT_THAT(formulas(inputs + "Z[i] = 2 * sum[j] X[i,j] - max[j] X[i,j] / sum[j] X[i,j]\n"),
              ElementsAre("Z_1[i] = sum[j] X[i,j]", "Z_2[i] = max[j] X[i,j] / Z_1[i]", "Z[i] = 2 * Z_1[i] - Z_2[i]"));
}

TEST(Check, BindsReductionsLooserThanProductsAndTighterThanSums) {
  EXPECT_THAT(formulas(inputs + "Z[i] = sum[j] X[i,j] * 2 + 1\n"),
              ElementsAre("Z_1[i] = sum[j] X[i,j] * 2", "Z[i] = Z_1[i] + 1"));
  EXPECT_THAT(formulas(inputs + "Z[i] = 3 * sum[j] X[i,j] * 2\n"),
              ElementsAre("Z_1[i] = sum[j] X[i,j] * 2", "Z[i] = 3 * Z_1[i]"));
  EXPECT_THAT(formulas(inputs + "Z[i,j] = -X[i,j]**2**3\n"), ElementsAre("Z[i,j] = -X[i,j]**2**3"));
}

TEST(Check, SharesEqualVertices) {
  EXPECT_THAT(
      formulas(inputs + "Z[i,j] = softmax[j](X[i,j])\n"),
      ElementsAre("Z_1[i] = max[j] X[i,j]", "Z_2[i] = sum[j] exp(X[i,j] - where(f64(Z_1[i]) == -inf, 0, Z_1[i]))",
                  "Z[i,j] = exp(X[i,j] - where(f64(Z_1[i]) == -inf, 0, Z_1[i])) / (Z_2[i] + f32(Z_2[i] == 0))"));
}

TEST(Check, KeepsAMacrosOwnLabelsApartFromTheCallers) {
  EXPECT_THAT(formulas(inputs + "def total(x) = sum[j] x * Y[j,0]\nZ[i,j] = total(X[i,j])\n"),
              ElementsAre("Z[i,j] = sum[j2] X[i,j] * Y[j2,0]"));
}

TEST(Check, LetsAReductionShadowAnOuterLabel) {
  EXPECT_THAT(formulas(inputs + "Z[i,j] = X[i,j] / sum[j] X[i,j]\n"),
              ElementsAre("Z_1[i] = sum[j] X[i,j]", "Z[i,j] = X[i,j] / Z_1[i]"));
}

TEST(Check, NamesIntermediatesUnlikeAnyTensor) {
  EXPECT_THAT(formulas(inputs + "Z_1[i] = N[i]\nZ[i] = 1 + sum[j] X[i,j]\n"),
              ElementsAre("Z_1[i] = N[i]", "Z_2[i] = sum[j] X[i,j]", "Z[i] = 1 + Z_2[i]"));
}

TEST(Types, PromoteAsInNumPy) {
  EXPECT_EQ(type_of("A[i] + B[i]"), DType::f64);
  EXPECT_EQ(type_of("H[i] + G[i]"), DType::f32);
  EXPECT_EQ(type_of("H[i] * H[i]"), DType::f16);
  EXPECT_EQ(type_of("I[i] + L[i]"), DType::i64);
  EXPECT_EQ(type_of("I[i] + A[i]"), DType::f64);
  EXPECT_EQ(type_of("C[i] * A[i]"), DType::f32);
  EXPECT_EQ(type_of("exp(I[i])"), DType::f64);
  EXPECT_EQ(type_of("abs(I[i])"), DType::i32);
  EXPECT_EQ(type_of("I[i] ** 2"), DType::i32);
}

TEST(Types, OfBareNumbersAndLabelsFollowWhatTheyMeet) {
  EXPECT_EQ(type_of("2"), DType::f32);
  EXPECT_EQ(type_of("i"), DType::i64);
  EXPECT_EQ(type_of("i + 2"), DType::i64);
  EXPECT_EQ(type_of("i * 0.5"), DType::f32);
  EXPECT_EQ(type_of("2 * B[i]"), DType::f64);
  EXPECT_EQ(type_of("i * I[i]"), DType::i32);
  EXPECT_EQ(type_of("H[i] * eta"), DType::f16);
  EXPECT_EQ(type_of("I[i] * n"), DType::i32);
  EXPECT_EQ(type_of("where(i <= 1, A[i], -inf)"), DType::f32);
  EXPECT_EQ(type_of("1 / 3"), DType::f32);
  EXPECT_EQ(type_of("I[i] + -2147483648"), DType::i32);
}

TEST(Types, OfScalarsDoNotDependOnTheirDefaults) {
  EXPECT_EQ(type_of("n * i"), DType::f32);
  EXPECT_EQ(type_of("eta * i"), DType::f32);
  EXPECT_EQ(type_of("L[i] + where(L[i] > 0, n, 0)"), DType::i64);
  EXPECT_THAT(errors_of("dims i=2\nscalar s\ninput L[i] : i64\nZ[i] = L[i] + exp(s)\n"),
              ElementsAre(HasSubstr("a fraction meets i64")));
  EXPECT_THAT(errors_of("dims i=2\nscalar s = 0.5\ninput L[i] : i64\nZ[i] = L[i] + s\n"),
              ElementsAre("4:8 scalar 's' meets integers: 0.5 is no i64"));
}

TEST(Types, OfBoolsCountAsZeroAndOne) {
  EXPECT_EQ(type_of("A[i] > 0"), DType::boolean);
  EXPECT_EQ(type_of("(A[i] > 0) + (B[i] > 0)"), DType::i64);
  EXPECT_EQ(type_of("max(C[i], C[i])"), DType::boolean);
  EXPECT_EQ(type_of("C[i] * 2"), DType::i64);
  EXPECT_EQ(type_of("C[i] * 0.5"), DType::f32);
}

TEST(Types, OfReductions) {
  const auto reduced = [](const std::string& expression) {
    const EinGraph graph = graph_of("dims i=3\ninput H[i] : f16, I[i] : i32, C[i] : bool\nZ[] = " + expression + "\n");
    return graph[graph.outputs.front()].dtype;
  };
  EXPECT_EQ(reduced("sum[i] I[i]"), DType::i32);
  EXPECT_EQ(reduced("sum[i] C[i]"), DType::i64);
  EXPECT_EQ(reduced("mean[i] I[i]"), DType::f64);
  EXPECT_EQ(reduced("mean[i] H[i]"), DType::f16);
  EXPECT_EQ(reduced("argmax[i] H[i]"), DType::i64);
  EXPECT_EQ(reduced("any[i] I[i]"), DType::boolean);
  EXPECT_EQ(reduced("logsumexp[i] I[i]"), DType::f64);
  EXPECT_EQ(reduced("max[i] C[i]"), DType::boolean);
}

TEST(Budget, BoundsNestingAndExpansion) {
  EXPECT_THAT(errors_of("Z[] = " + std::string(100000, '(')), testing::Not(testing::IsEmpty()));
  EXPECT_THAT(errors_of("Z[] = " + std::string(100000, '-') + "1\n"),
              ElementsAre(HasSubstr("nests more than 256 deep")));
  std::string doubling = "dims i=2\ninput X[i]\ndef m0(x) = x * x\n";
  for (int n = 1; n < 60; ++n)
    doubling +=
        "def m" + std::to_string(n) + "(x) = m" + std::to_string(n - 1) + "(m" + std::to_string(n - 1) + "(x))\n";
  EXPECT_THAT(errors_of(doubling + "Z[i] = m59(X[i])\n"), testing::Contains(HasSubstr("expands to more than")));
}

TEST(Budget, AllowsLongSumsAndManyLabels) {
  std::string sum = "dims i=2\ninput X[i]\nZ[i] = X[i]";
  for (int n = 0; n < 20000; ++n) sum += " + X[i]";
  EXPECT_THAT(errors_of(sum + "\n"), testing::IsEmpty());
  std::string labels;
  for (int n = 0; n < 60; ++n) labels += (n > 0 ? ",l" : "l") + std::to_string(n);
  std::string dims = "dims";
  for (int n = 0; n < 60; ++n) dims += " l" + std::to_string(n) + "=2";
  EXPECT_THAT(errors_of(dims + "\ninput X[" + labels + "]\nZ[] = sum[" + labels + "] X[" + labels + "]\n"),
              testing::IsEmpty());
}

TEST(Extents, OfViewsAndPaddedWindowsAreBounded) {
  EXPECT_THAT(errors_of("dims a=4294967296 b=4294967296 c=0\ninput X[a,b,c]\nY[(a b),c] = view X[a,b,c]\n"),
              ElementsAre("3:4 the labels of this group have more than 2^63 elements"));
  EXPECT_THAT(errors_of("dims a=9000000000000 i=3\ninput X[i]\nY[a] = pad(X[2000000*a], 0)\n"),
              ElementsAre(HasSubstr("reaches positions beyond 2^62")));
}

TEST(Extents, BeyondSixtyThreeBitsAreAnError) {
  EXPECT_THAT(errors_of("dims a=9223372036854775807\ninput X[a]\nZ[] = sum[a] X[a]\n"),
              ElementsAre(HasSubstr("X[a] is too large")));
  EXPECT_THAT(errors_of("dims a=4000000000 b=4000000000\ninput X[a]\nZ[a,b] = X[a]\n"),
              ElementsAre(HasSubstr("'Z' is too large")));
  EXPECT_THAT(errors_of("dims a=9223372036854775808\ninput X[a]\nZ[] = sum[a] X[a]\n"),
              ElementsAre(HasSubstr("is not an extent")));
}

TEST(CheckWithoutData, APositionBelow0IsAMistakeWhateverTheExtents) {
  const std::string input = "input A[i,j]\n";
  EXPECT_THAT(errors_of(input + "B[i] = A[i,-1]\n"), ElementsAre("2:12 A[i,-1] reads position -1 of dimension 2"));
  EXPECT_THAT(errors_of(input + "B[] = A[-2,-3]\n"), ElementsAre("2:9 A[-2,-3] reads position -2 of dimension 1",
                                                                 "2:12 A[-2,-3] reads position -3 of dimension 2"));
  EXPECT_THAT(
      errors_of(input + "dims p=3 q=3\nB[i,p] = A[i,p-2] + sum[q] A[i,1-q]\n"),
      ElementsAre("3:14 A[i,p-2] reads position -2 of dimension 2", "3:32 A[i,-q+1] reads position -1 of dimension 2"));
  EXPECT_THAT(errors_of(input + "dims i=0\nB[i] = A[i,-1]\n"),
              ElementsAre("3:12 A[i,-1] reads position -1 of dimension 2"));
  for (const char* right : {"B[i] = A[i,0]", "B[i] = A[i,7]", "B[i] = pad(A[i,-1], 0)", "dims p=0\nB[i,p] = A[i,p-1]",
                            "dims p=3\nB[i,p] = A[i,2-p]", "B[i,p] = A[i,p-1]"})
    EXPECT_THAT(errors_of(input + right + "\n"), ElementsAre()) << right;
}

TEST(CheckWithoutData, APositionBelow0SaysWhereCountingBegins) {
  try {
    check_text("input A[i,j]\nB[i] = A[i,-1]\n");
    FAIL() << "it is a mistake";
  } catch (const ProgramError& error) {
    EXPECT_THAT(error.what(), HasSubstr("positions count from 0"));
  }
}

}  // namespace
}  // namespace einrel
