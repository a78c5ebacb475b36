#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tra/mistakes.h"

// Every kind of wrong program gets an error that says where and what.

namespace einrel::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// The one error of a program whose inputs are A (two by two chunks of 4 x 4) and B (two chunks of 2 x 8).
std::string mistake(const std::string& statements) {
  const std::vector<std::string> found = mistakes("input A[4,4] cut <2,2>\ninput B[2,8] cut <1: 2>\n" + statements);
  if (found.size() == 1) return found.front();
  return fmt::format("{} errors: {}", found.size(), fmt::join(found, "; "));
}

TEST(TraMistakes, UnknownNamesAreShownWithNearOnes) {
  EXPECT_THAT(mistake("C = agregate(<0>, matAdd)(A)"),
              StartsWith("3:5 unknown operation 'agregate' | did you mean 'aggregate'?"));
  EXPECT_THAT(mistake("C = aggregate(<0>, matAd)(A)"),
              StartsWith("3:20 unknown kernel 'matAd' | did you mean 'matAdd'?"));
  EXPECT_THAT(mistake("C = aggregate(<0>, mine)(A)"), StartsWith("3:20 unknown kernel 'mine' | "));
  EXPECT_THAT(mistake("kernel mine(X[i,j]) -> [i,j] = X[i,j]\nC = transform(mime)(A)"),
              HasSubstr("did you mean 'mine'?"));
  EXPECT_THAT(mistake("Cost = transform(relu)(A)\nD = transform(relu)(Cots)"),
              StartsWith("4:21 unknown relation 'Cots' | did you mean 'Cost'?"));
  EXPECT_THAT(mistake("C = transform(relu)(D)\nD = transform(relu)(A)"),
              StartsWith("3:21 'D' is read before its statement"));
  EXPECT_THAT(mistake("C = transform(relu)(C)"), StartsWith("3:21 'C' is read before its statement"));
  EXPECT_THAT(mistake("C = transform(relu)(relu)"), HasSubstr("it is a kernel"));
  EXPECT_THAT(mistake("C = filter(k0 == k2)(A)"),
              StartsWith("3:18 unknown name 'k2' | the keys have 2 positions: k0 to k1"));
  EXPECT_THAT(mistake("C = filter(i == 0)(A)"), StartsWith("3:12 unknown name 'i'"));
  EXPECT_THAT(mistake("C = rekey(<a,b> -> <a,c>)(A)"),
              StartsWith("3:23 unknown name 'c' | the names on the left are a, b"));
  EXPECT_THAT(mistake("output D"), StartsWith("3:8 unknown relation 'D'"));
  EXPECT_THAT(mistake("inptu C[4]"), StartsWith("3:1 'inptu' does not start a statement | did you mean 'input'?"));
  EXPECT_THAT(mistake("input C[4] : f23"), StartsWith("3:14 unknown dtype 'f23' | did you mean 'f32'?"));
}

TEST(TraMistakes, CallsOfTheWrongFormAreShownWithTheRightOne) {
  EXPECT_THAT(mistake("C = join(<1>, matMul)(A, A)"), StartsWith("3:5 join takes 3 parameters, not 2 | as in join("));
  EXPECT_THAT(mistake("C = join(<1>, <0>, matMul)(A)"), StartsWith("3:5 join takes 2 relations, not 1 | as in join("));
  EXPECT_THAT(mistake("C = transform(relu)(A, B)"), StartsWith("3:5 transform takes 1 relation, not 2"));
  EXPECT_THAT(mistake("C = transform(relu)"), StartsWith("3:5 transform takes 1 parameter, not 0"));
  EXPECT_THAT(mistake("C = transform(A)(relu)(A)"), StartsWith("3:23 'transform' is called three times over"));
  EXPECT_THAT(mistake("C = aggregate(matAdd, <0>)(A)"), StartsWith("3:15 key positions are expected here"));
  EXPECT_THAT(mistake("C = aggregate(<0>, <0>)(A)"), StartsWith("3:20 the name of a kernel is expected here"));
  EXPECT_THAT(mistake("C = rekey(k0)(A)"), StartsWith("3:11 a map of keys is expected here"));
  EXPECT_THAT(mistake("C = rekey(<k0> -> <k0>)(A)"),
              StartsWith("3:11 the left side names 1 position, but the keys have 2"));
  EXPECT_THAT(mistake("C = rekey(<k0,k0> -> <k0>)(A)"), StartsWith("3:15 'k0' stands twice"));
  EXPECT_THAT(mistake("C = rekey(<k0+1,k1> -> <k0>)(A)"), StartsWith("3:12 the left side names the positions"));
  EXPECT_THAT(mistake("C = filter(<0>)(A)"), StartsWith("3:12 a condition on keys is expected here"));
  EXPECT_THAT(mistake("C = tile(<1>, 2)(A)"), StartsWith("3:10 the dimension is a whole number"));
  EXPECT_THAT(mistake("C = tile(0-1, 2)(A)"), StartsWith("3:10 the dimension cannot be negative"));
  EXPECT_THAT(mistake("C = repartition(<2,2>)(A)"), StartsWith("3:17 two cuts are expected here"));
  EXPECT_THAT(mistake("C = positions(4, 2)"), StartsWith("3:18 one cut is expected here"));
  EXPECT_THAT(mistake("C = A"), StartsWith("3:5 'C' would only be another name for 'A'"));
  EXPECT_THAT(mistake("C = join(filter(k0 == k1)(A), <0>, matMul)(A, A)"),
              HasSubstr("an operation cannot be a parameter"));
  EXPECT_THAT(mistake("C = filter(f(k0) == 1)(A)"), StartsWith("3:18 expected ',' before '=='"));
  EXPECT_THAT(mistake("C = filter(k0 < k1 < 2)(A)"), HasSubstr("comparisons do not chain"));
  EXPECT_THAT(mistake("C = filter(abs(k0, k1) + 1)(A)"), HasSubstr("3:"));
}

TEST(TraMistakes, BrokenTextIsShownWhereItBreaks) {
  EXPECT_THAT(mistake("C = join(<1>, <0>, matMul(A, A)"), StartsWith("3:9 '(' is never closed | add ')'"));
  EXPECT_THAT(mistake("C = join(<1, <0>, matMul)(A, A)"), HasSubstr("3:14"));
  EXPECT_THAT(mistake("C = join(<1>, <0>, matMul)(A, A"), StartsWith("3:27 '(' is never closed | add ')'"));
  EXPECT_THAT(mistake("C = join(<1>, <0>, matMul)(A, A))"), StartsWith("3:33 ')' closes nothing"));
  EXPECT_THAT(mistake("C = "), HasSubstr("expected a relation or an operation before the end"));
  EXPECT_THAT(mistake("C"), StartsWith("3:1 'C' does not start a statement"));
  EXPECT_THAT(mistake("C = transform(relu)(A);"),
              StartsWith("3:23 ';' is not part of the language | write each statement"));
  EXPECT_THAT(mistake("C = tile(1x, 2)(A)"), StartsWith("3:10 bad number '1x'"));
  EXPECT_THAT(mistake("C = tile(1.5, 2)(A)"), StartsWith("3:10 '1.5' is no whole number"));
  EXPECT_THAT(mistake("C = transform(\xff)(A)"), HasSubstr("not UTF-8"));
  EXPECT_THAT(mistake("input C[4"), StartsWith("3:8 '[' is never closed | add ']'"));
  EXPECT_THAT(mistake("kernel k(X[i) -> [i] = X[i]"), HasSubstr("3:"));
  EXPECT_THAT(mistake("kernel k(X[i]) -> [i] = "), HasSubstr("expected an expression"));
  EXPECT_THAT(mistake("kernel k() -> [i] = 1"), HasSubstr("expected an array before ')'"));
  EXPECT_THAT(mistakes(""), ElementsAre(HasSubstr("computes nothing")));
  EXPECT_THAT(mistakes("# nothing\n"), ElementsAre(HasSubstr("computes nothing")));
}

TEST(TraMistakes, AllErrorsAreShownAtOnceAndFollowUpsAreNot) {
  EXPECT_THAT(mistakes(R"(input A[4,4] cut <2>
C = transform(relu)(A)
D = transform(reul)(A)
E = transform(relu)(D)
F = transform(
G = transform(relu)(F)
H = transform(relu)(I)
)"),
              ElementsAre(StartsWith("1:18 the cut has 1 entry, but the tensor has 2 dimensions"),
                          StartsWith("5:14 '(' is never closed | add ')'"), StartsWith("7:21 unknown relation 'I'")));
}

TEST(TraMistakes, NamesStandForOneThing) {
  EXPECT_THAT(mistake("A = transform(relu)(B)"), StartsWith("3:1 'A' is defined twice"));
  EXPECT_THAT(mistake("scalar s\nscalar s\nC = transform(relu)(A)"), StartsWith("4:8 scalar 's' is declared twice"));
  EXPECT_THAT(mistake("kernel k(X[i]) -> [i] = X[i]\nkernel k(X[i]) -> [i] = X[i]\nC = transform(relu)(A)"),
              StartsWith("4:8 kernel 'k' is defined twice"));
  EXPECT_THAT(mistake("kernel relu(X[i]) -> [i] = X[i]\nC = transform(relu)(A)"),
              StartsWith("3:8 there is a kernel 'relu' already"));
  EXPECT_THAT(mistake("C = transform(relu)(A)\noutput C, C"), StartsWith("4:11 'C' is an output twice"));
}

TEST(TraMistakes, CutsThatDoNotFitAreRefused) {
  EXPECT_THAT(mistake("input C[4,4] cut <5,1>"), AllOf(StartsWith("3:19 dimension 0 of 'C'"), HasSubstr("5")));
  EXPECT_THAT(mistake("input C[4,4] cut <0,1>"), StartsWith("3:19 dimension 0 of 'C'"));
  EXPECT_THAT(mistake("input C[4,4] cut <1,2 by 3>"), StartsWith("3:21 dimension 1 of 'C'"));
  EXPECT_THAT(mistake("input C[4,4] cut <2: 2>"), StartsWith("3:22 dimension 2 is cut, but 'C' has 2 dimensions"));
  EXPECT_THAT(mistake("input C[4,4] cut <1: 2, 2>"), HasSubstr("some of these say which dimension they cut"));
  EXPECT_THAT(mistake("input C[4,4] cut <1: 2, 1: 2>\nD = transform(relu)(C)"),
              HasSubstr("dimension 1 is cut by two key positions"));
  EXPECT_THAT(mistake("input C[4,4] cut <2,2> on <2>"), StartsWith("3:27 "));
  EXPECT_THAT(mistake("input C[4,4] cut <2,2> on <0>, <2>, <2>"),
              StartsWith("3:32 key positions alone say how an input is spread"));
  EXPECT_THAT(mistake("C = positions(4, <5>)"), StartsWith("3:18 "));
  EXPECT_THAT(mistake("C = repartition(<2,2> -> <5,1>)(A)"), AllOf(StartsWith("3:5 "), HasSubstr("5")));
  EXPECT_THAT(mistake("C = repartition(<1,2> -> <2,2>)(A)"), StartsWith("3:5 "));
  EXPECT_THAT(mistake("C = repartition(<2,2> -> <2,2>)(B)"), StartsWith("3:5 "));
}

TEST(TraMistakes, HugeNumbersAreRefusedBeforeAnythingIsMade) {
  EXPECT_THAT(mistake("input C[1000000000000000000] cut <1000000000000000000>\nD = transform(relu)(C)"),
              AllOf(StartsWith("3:"), HasSubstr("chunks")));
  EXPECT_THAT(mistake("input C[99999999999999999999]"), StartsWith("3:9 "));
  EXPECT_THAT(mistake("input C[9223372036854775807,9223372036854775807]\nD = transform(id)(C)"), StartsWith("3:"));
  EXPECT_THAT(mistake("C = tile(1, 99999999999999999999)(A)"), StartsWith("3:13 "));
  EXPECT_THAT(mistake("C = tile(99999999999, 2)(A)"), AllOf(StartsWith("3:5 "), HasSubstr("99999999999")));
  EXPECT_THAT(mistake("C = positions(1000000000000000000, <1000000000000000000>)"),
              AllOf(StartsWith("3:"), HasSubstr("chunks")));
  EXPECT_THAT(mistake("C = filter(9223372036854775807 + 1 == k0)(A)"), AllOf(StartsWith("3:"), HasSubstr("63 bits")));
  EXPECT_THAT(mistake("C = filter(9223372036854775807 * (k0 + 2) == 1)(A)"),
              AllOf(StartsWith("3:5 "), HasSubstr("63 bits")));
  EXPECT_THAT(mistake("C = filter(1 / k0 == 1)(A)"), AllOf(StartsWith("3:5 "), HasSubstr("divides by zero")));
  EXPECT_THAT(mistake("C = aggregate(<9223372036854775807>, matAdd)(A)"), StartsWith("3:5 "));
  EXPECT_THAT(mistake("kernel k(X[i,j]) -> [i,y] with y=9223372036854775807 = X[i,y+5]\nC = transform(k)(A)"),
              HasSubstr("too large"));
}

TEST(TraMistakes, DeepNestingIsRefused) {
  const auto times = [](const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  EXPECT_THAT(mistake("C = " + times("transform(relu)(", 300) + "A" + times(")", 300)),
              HasSubstr("nests more than 256 deep"));
  EXPECT_THAT(mistake("C = filter(" + times("(", 100000) + "k0" + times(")", 100000) + ")(A)"),
              HasSubstr("nests more than 256 deep"));
  EXPECT_THAT(mistake("C = filter(" + times("-", 100000) + "k0)(A)"), HasSubstr("nests more than 256 deep"));
  EXPECT_THAT(mistake("C = filter(" + times("min(", 1000) + "k0)(A)"), HasSubstr("nests more than 256 deep"));
  EXPECT_THAT(mistake("C = filter(k0" + times(" + k0", 10000) + ")(A)"), HasSubstr("too long"));
  EXPECT_THAT(mistake("C = transform(relu" + times(" . relu", 1000) + ")(A)"), HasSubstr("more than 64 kernels"));
  EXPECT_THAT(mistake("C = " + times("transform(relu)(", 200) + "A" + times(")", 200)), "0 errors: ");
}

TEST(TraMistakes, WhatOperationsDoToKeysIsChecked) {
  EXPECT_THAT(mistake("C = rekey(<k0,k1> -> <k0>)(A)"),
              AllOf(StartsWith("3:5 "), HasSubstr("<0,0>"), HasSubstr("<0,1>"), HasSubstr("<0>")));
  EXPECT_THAT(mistake("C = rekey(<k0,k1> -> <k0 - 1, k1>)(A)"), AllOf(StartsWith("3:5 "), HasSubstr("<-1,0>")));
  EXPECT_THAT(mistake("C = transform(relu)(filter(k0 == k1)(A))"),
              AllOf(StartsWith("3:21 "), HasSubstr("<0,1>"), HasSubstr("<1,0>"), HasSubstr("holes")));
  EXPECT_THAT(mistake("C = filter(k0 > 5)(A)"), AllOf(StartsWith("3:5 "), HasSubstr("no tuple")));
  EXPECT_THAT(mistake("C = join(<1>, <0>, matMul)(A, A3)\ninput A3[4,4] cut <3,2>"), HasSubstr("read before"));
  EXPECT_THAT(mistake("input D[6,4] cut <3,2>\nC = join(<1>, <0>, matMul)(A, D)"),
              AllOf(StartsWith("4:5 "), HasSubstr("frontier <2,2>"), HasSubstr("frontier <3,2>")));
  EXPECT_THAT(mistake("C = join(<1>, <0,1>, matMul)(A, A)"), AllOf(StartsWith("3:5 "), HasSubstr("1 positions")));
  EXPECT_THAT(mistake("C = join(<2>, <0>, matMul)(A, A)"), AllOf(StartsWith("3:5 "), HasSubstr("position 2")));
  EXPECT_THAT(mistake("C = aggregate(<0,0>, matAdd)(A)"), AllOf(StartsWith("3:5 "), HasSubstr("twice")));
  EXPECT_THAT(mistake("C = aggregate(<0>, matSub)(A)"), AllOf(StartsWith("3:5 "), HasSubstr("associative")));
  EXPECT_THAT(mistake("C = tile(1, 0)(A)"), AllOf(StartsWith("3:5 "), HasSubstr("at least 1, not 0")));
  EXPECT_THAT(mistake("C = tile(1, 0 - 3)(A)"), AllOf(StartsWith("3:5 "), HasSubstr("not -3")));
  EXPECT_THAT(mistake("C = concat(2, 0)(A)"), AllOf(StartsWith("3:5 "), HasSubstr("position 2")));
  EXPECT_THAT(mistake("C = transform(relu)(transform(relu)(concat(0, 7)(A)))"),
              AllOf(StartsWith("3:37 "), HasSubstr("dimension 7")));
}

TEST(TraMistakes, SeveralOperationsCanBeWrongAtOnce) {
  EXPECT_THAT(mistakes("input A[4,4] cut <2,2>\nB = tile(1, 0)(A)\nC = transform(relu)(B)\nD = tile(9, 1)(A)\n"
                       "E = transform(relu)(A)\nF = rekey(<a,b> -> <b>)(E)"),
              ElementsAre(StartsWith("2:5 "), StartsWith("4:5 "), StartsWith("6:5 ")));
}

TEST(TraMistakes, KernelsOfTheWrongShapeAreRefused) {
  EXPECT_THAT(mistake("C = transform(matMul)(A)"), StartsWith("3:15 kernel matMul takes 2 arrays, not 1"));
  EXPECT_THAT(mistake("C = join(<0>, <0>, relu . relu)(A, A)"), StartsWith("3:27 kernel relu takes 1 array, not 2"));
  EXPECT_THAT(mistake("C = transform(diag . rowSum)(A)"),
              StartsWith("3:15 kernel diag takes arrays with 2 dimensions"));
  EXPECT_THAT(mistake("C = join(<1>, <0>, matMul)(B, A)"), StartsWith("3:5 "));
  EXPECT_THAT(mistake("input D[4,6] cut <2,2>\nC = join(<0,1>, <0,1>, matAdd)(A, D)"),
              AllOf(StartsWith("4:5 "), HasSubstr("kernel matAdd"), HasSubstr("<0,0>"), HasSubstr("3")));
  EXPECT_THAT(mistake("kernel k(X[i]) -> [i] = X[i]\nC = transform(k)(A)"),
              StartsWith("4:15 kernel k takes arrays with 1 dimension as X, not with 2"));
  EXPECT_THAT(mistake("kernel k(X[i,j], Y[i]) -> [i] = Y[i]\nC = transform(k)(A)"),
              StartsWith("4:15 kernel k takes 2 arrays, not 1"));
}

TEST(TraMistakes, ErrorsInsideKernelsStandWhereTheyAreWritten) {
  EXPECT_THAT(mistake("kernel k(X[i,j]) -> [i] = sum[j] X[i,k] * X[i,j]\nC = transform(k)(A)"),
              StartsWith("3:38 label 'k' is not reduced"));
  EXPECT_THAT(mistake("kernel k(X[i,j]) -> [i,q] = X[i,q] + Y[i]\nC = transform(k)(A)"),
              StartsWith("3:38 unknown tensor 'Y'"));
  EXPECT_THAT(mistake("kernel unused(X[i]) -> [i] = X[i] +* 2\nC = transform(relu)(A)"), StartsWith("3:36 "));
  EXPECT_THAT(mistake("kernel k(X[i,j]) -> [i,j] = rate * X[i,j]\nC = transform(k)(A)"),
              StartsWith("3:29 unknown name 'rate'"));
  EXPECT_THAT(mistake("kernel k(X[i,j]) -> [o,j] = X[o+1,j]\nC = transform(k)(A)"), HasSubstr("extent of label 'o'"));
  EXPECT_THAT(
      mistake("kernel k(X[i,j]) -> [i,j] = T[i] + X[i,j] given T[i] = mean[k] X[i,k] + X[i,l]\nC = transform(k)(A)"),
      StartsWith("3:77 label 'l' is not reduced"));
  EXPECT_THAT(
      mistake("scalar s = 0.5\nkernel k(X[i]) -> [i] = s * X[i]\ninput N[4] : i64 cut <2>\nC = transform(k)(N)"),
      StartsWith("3:8 scalar 's' meets integers in a kernel"));
  // The same kernel used with two types is wrong once.
  EXPECT_THAT(mistake("kernel k(X[i]) -> [i] = X[i,i]\ninput P[4] cut <2>\ninput N[4] : i64 cut <2>\n"
                      "C = transform(k)(N)\nD = transform(k)(P)"),
              StartsWith("3:25 "));
}

TEST(TraMistakes, RightProgramsHaveNone) {
  EXPECT_THAT(mistakes("input A[4,4] cut <2,2>\nC = aggregate(<0,2>, matAdd)(join(<1>, <0>, matMul)(A, A))"),
              IsEmpty());
}

}  // namespace
}  // namespace einrel::test
