#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "einsum/check/expand.h"
#include "einsum/front/text/print_program.h"
#include "support/gradient_check.h"
#include "support/program.h"
#include "support/random_gradient_program.h"
#include "support/rounds.h"

namespace einrel {
namespace {

using test::GradientCheck;
using test::infinity;
using test::numbers_between;
using ::testing::DoubleNear;
using ::testing::ElementsAre;

/// A function of x, and where it is smooth.
struct Smooth {
  std::string text;
  double least = -2;
  double most = 2;
};

std::vector<Smooth> smooth_functions() {
  return {{"-x"},
          {"abs(x)", 0.2, 2},
          {"abs(x)", -2, -0.2},
          {"exp(x)"},
          {"log(x)", 0.3, 3},
          {"log1p(x)", -0.6, 3},
          {"expm1(x)"},
          {"sqrt(x)", 0.3, 3},
          {"rsqrt(x)", 0.3, 3},
          {"sq(x)"},
          {"tanh(x)"},
          {"sigmoid(x)"},
          {"relu(x)", 0.2, 2},
          {"relu(x)", -2, -0.2},
          {"gelu(x)"},
          {"silu(x)"},
          {"erf(x)"},
          {"erfc(x)"},
          {"sin(x)"},
          {"cos(x)"},
          {"x + 2"},
          {"3 - x"},
          {"x * x"},
          {"2 / x", 0.5, 2},
          {"x / 3"},
          {"x ** 3"},
          {"x ** 2"},
          {"x ** 1"},
          {"x ** 0 + x"},
          {"x ** -1.5", 0.4, 2},
          {"2 ** x"},
          {"x ** x", 0.4, 2},
          {"max(x, 0.5 * x + 5)"},
          {"min(x, 0.5 * x + 5)"},
          {"where(x < 5, x * x, x)"},
          {"where(x > 5, x * x, 3 * x)"},
          {"x * step(x) * step(x + 5)", 0.2, 2},
          {"floor(x) * x", 0.1, 0.9},
          {"f64(f32(2)) * f64(x)"}};
}

std::string with_x(std::string text, const std::string& x) {
  for (std::size_t at = 0; (at = text.find('x', at)) != std::string::npos;) {
    const auto is_letter = [&](std::size_t i) { return i < text.size() && (std::isalnum(text[i]) != 0); };
    if ((at > 0 && is_letter(at - 1)) || is_letter(at + 1)) {
      ++at;
      continue;
    }
    text.replace(at, 1, x);
    at += x.size();
  }
  return text;
}

TEST(Gradient, OfEachFunction) {
  for (const Smooth& f : smooth_functions()) {
    GradientCheck(
        "dims i=5\ninput X[i] : f64\ninput S[i] : f64\nloss[] = sum[i] S[i] * (" + with_x(f.text, "X[i]") + ")\n",
        {{"X", numbers_between(f.least, f.most, 5)}, {"S", numbers_between(-1, 1, 5, 2)}})
        .expect_right({"X"});
  }
}

TEST(Gradient, OfEachFunctionOfEachOther) {
  for (const Smooth& f : smooth_functions()) {
    for (const Smooth& g : smooth_functions()) {
      if (f.least != -2 || f.most != 2 || f.text == "2 ** x") continue;  // g may lie elsewhere
      GradientCheck("dims i=2\ninput X[i] : f64\nY[i] = " + with_x(g.text, "X[i]") + "\nloss[] = sum[i] (" +
                        with_x(f.text, "0.3 * Y[i]") + ") + sum[i] (" +
                        with_x(f.text, "(" + with_x(g.text, "X[i]") + ")") + ")\n",
                    {{"X", numbers_between(g.least, g.most, 2)}})
          .expect_right({"X"}, 1e-5);
    }
  }
}

TEST(Gradient, OfEachReductionOfEachFunction) {
  for (const std::string reducer : {"sum", "sumsq", "prod", "max", "min", "mean", "logsumexp"}) {
    for (const Smooth& f : smooth_functions()) {
      GradientCheck("dims i=2 j=3 k=2\ninput X[i,j,k] : f64\ninput S[i] : f64\nZ[i] = " + reducer + "[j,k] (" +
                        with_x(f.text, "X[i,j,k]") + ")\nloss[] = sum[i] S[i] * sq(Z[i])\n",
                    {{"X", numbers_between(f.least, f.most, 12)}, {"S", numbers_between(-1, 1, 2, 2)}})
          .expect_right({"X", "S"}, 1e-5);
    }
  }
}

/// Programs in X[i,j] of 3 x 4, S[i] of 3, K[k] of 2 and M[i,l] of 3 x 3.
std::vector<std::string> constructs() {
  return {
      "loss[] = sum[i,j] S[i] * X[i,j]",
      "loss[] = sum[j] sq(sum[i] S[i] * X[i,j])",
      "Y[i] = sum[j] X[i,j]\nloss[] = sum[i] Y[i] * Y[i] * S[i]",
      "Y[j,i] = X[i,j]\nZ[i] = sum[j] Y[j,i] * Y[j,i]\nloss[] = sum[i] exp(Z[i])",
      "Y[i,l] = sum[j] X[i,j] * X[l,j]\nloss[] = sum[i,l] Y[i,l] * sin(M[i,l])",
      "Y[i,j] = sum[l] M[i,l] * X[l,j] * S[l]\nloss[] = sum[i,j] sq(Y[i,j])",
      "Y[i,b] = X[i,0]\nloss[] = sum[i,b] Y[i,b] * S[i]",
      "Y[i,b] = X[i,0] * b\nloss[] = sum[i,b] Y[i,b]",
      "loss[] = sum[i] M[i,i] * S[i]",
      "loss[] = sum[i] M[i,i] * M[2-i,i]",
      "loss[] = X[1,2] * X[1,2] + X[0,3]",
      "Y[i,z] = sum[k] X[i,z+k] * K[k]\nloss[] = sum[i,z] S[i] * sq(Y[i,z])",
      "Y[i,j] = sum[k] pad(X[i,j+k-1], 0) * K[k]\nloss[] = sum[i,j] S[i] * sq(Y[i,j])",
      "Y[i,j] = sum[k] pad(X[i,j+2*k-1], 3) * K[k]\nloss[] = sum[i,j] S[i] * sq(Y[i,j])",
      "Y[i,z] = sum[k] X[i,2*z+k] * K[k]\nloss[] = sum[i,z] S[i] * sq(Y[i,z])",
      "Y[i,z] = sum[k] exp(X[i,z+k]) * K[k] / S[i]\nloss[] = sum[i,z] z * sq(Y[i,z])",
      "Y[i,z] = max[k] (X[i,2*z+k] * K[k])\nloss[] = sum[i,z] S[i] * sq(Y[i,z])",
      "Y[i,z] = X[2-i,3-z]\nloss[] = sum[i,z] S[i] * sq(Y[i,z]) * z",
      "Y[z] = X[z,z+1]\nloss[] = sum[z] sq(Y[z]) * exp(z)",
      "Y[i,a,c] = view X[i,(a c)]\nloss[] = sum[i,a,c] Y[i,a,c] ** 3 * S[i] * (a + 2 * c)",
      "Y[(i j)] = view X[i,j]\nloss[] = sum[q] sq(Y[q]) * q",
      "Y[(j i)] = view X[i,j]\nZ[q] = sin(Y[q]) * q\nW[a,i,c] = view Z[(a i c)]\nloss[] = sum[a,i,c] sq(W[a,i,c]) * "
      "S[i]",
      "A[i,l] = M[i,l] + where(i == l, 4, 0)\nB[i,l] = inverse[i,l](A[i,l])\nloss[] = sum[i,l] B[i,l] * S[i] * l",
      "A[c,l,i] = (c + 1) * M[i,l] + where(i == l, 4, 0)\nB[i,c,l] = inverse[l,i](A[c,l,i])\nloss[] = sum[i,l,c] "
      "sq(B[i,c,l]) * S[i] * l",
      // Both factors and each alone, of square, tall and wide matrices.
      "Q[i,m] = qr_q[i,l,m](M[i,l])\nR[m,l] = qr_r[i,l,m](M[i,l])\nloss[] = sum[i,m] Q[i,m] * S[i] * m + sum[m,l] "
      "sin(R[m,l]) * (l + 1)",
      "Q[j,m] = qr_q[j,i,m](X[i,j])\nR[m,i] = qr_r[j,i,m](X[i,j])\nloss[] = sum[j,m] sq(Q[j,m]) * j * m + sum[m,i] "
      "R[m,i] * S[i] * m",
      "Q[j,m] = qr_q[j,i,m](X[i,j])\nloss[] = sum[j,m] sin(Q[j,m]) * (j + m * m)",
      "R[m,i] = qr_r[j,i,m](X[i,j])\nloss[] = sum[m,i] sq(R[m,i]) * (i + 2 * m)",
      "Q[i,m] = qr_q[i,j,m](X[i,j])\nR[m,j] = qr_r[i,j,m](X[i,j])\nloss[] = sum[i,m] Q[i,m] * S[i] * m + sum[m,j] "
      "sin(R[m,j]) * (j + 1)",
      "A[b,j,i] = X[i,j] + b * where(i == j, 3, 0)\nQ[m,b,j] = qr_q[j,i,m](A[b,j,i])\nR[m,b,i] = "
      "qr_r[j,i,m](A[b,j,i])\n"
      "loss[] = sum[b,j,m] Q[m,b,j] * j * sq(m + b) + sum[b,m,i] R[m,b,i] * S[i]",
      "P[i,j] = softmax[j](X[i,j])\nloss[] = sum[i,j] P[i,j] * S[i] * j",
      "loss[] = sum[i] S[i] * logsumexp[j] X[i,j]",
      "P[i,j] = logsoftmax[j](X[i,j])\nloss[] = sum[i,j] P[i,j] * S[i] * j",
      "P[i,j] = layernorm[j](X[i,j], 0.01)\nloss[] = sum[i,j] P[i,j] * S[i] * j",
      "P[i,j] = rmsnorm[j](X[i,j], 0.01)\nloss[] = sum[i,j] P[i,j] * S[i] * j",
      "P[i] = norm[j](X[i,j])\nloss[] = sum[i] P[i] * S[i]",
      "P[i] = variance[j](X[i,j])\nloss[] = sum[i] P[i] * S[i]",
      "Y[i] = mean[j] X[i,j]\nloss[] = mean[i] sq(Y[i] - S[i])",
      "Y[i,l] = M[i,l]\nZ[i,l] = sum[m] Y[i,m] * Y[m,l]\nloss[] = sum[i,l] Z[i,l] * Z[l,i]",
      "A1[] = 2 * S[1]\nA2[] = A1[] * A1[]\nloss[] = A2[] + A1[] * S[0]",
      "T[i] = argmax[j] X[i,j]\nloss[] = sum[i] S[i] * S[i] * T[i]",
      "loss[] = sum[i,j] where(X[i,j] > 0, X[i,j] * S[i], exp(X[i,j]))",
      "Y[i] = f64(f32(S[i]))\nloss[] = sum[i] f64(f32(2)) * S[i] * S[i]",
      "loss[] = sum[i] (prod[j] X[i,j]) * S[i]",
      "loss[] = prod[i,j] X[i,j]",
      "loss[] = sum[i] (max[j] X[i,j]) * S[i] + sum[j] (min[i] X[i,j])",
      // What flows back into a view is read otherwise than the view lies.
      "Y[a,i,c] = view X[i,(a c)]\nloss[] = sum[a,i,c] Y[a,i,c] * X[i,a+c] * S[2-i]",
      "Y[i,a,c] = view X[i,(a c)]\nloss[] = sum[i,a,c] Y[i,a,c] * K[1-a] * M[c+1,i]",
      "Y[a,c,i] = view X[i,(a c)]\nZ[c,a,i] = Y[a,c,i]\nloss[] = sum[c,a,i] sin(Z[c,a,i]) * (c + 1) * (a + 2) * S[i]",
      "V[l,i] = view M[i,l]\nloss[] = sum[i,l] V[l,i] * M[l,i]",
      // One index decides a label after another one had to be equal to it.
      "loss[] = sum[k] X[2*k,1-k]",
      "loss[] = sum[k] X[1-k,2*k] * K[k]",
      "loss[] = sum[z,k] sq(pad(X[z,2*k-z+1], 0.5)) * K[k]",
      // Elements that elements of others pick, and sums that add up where they say.
      "T[i] = abs(2 * i - 2)\nloss[] = sum[i,j] sq(M[T[i],i]) * X[T[i],j]",
      "T[i] = 2 - i\nY[i,j] = X[T[i],j] * S[i]\nloss[] = sum[i,j] sq(Y[i,j]) * X[i,T[i]]",
      "T[i] = 3 * i - 2\nloss[] = sum[i,j] sq(pad(X[T[i],j], 0)) * S[i]",
      "T[i] = i * i\nY[l,j] = sum[i] where(l == T[i], X[i,j] * S[i], 0)\nloss[] = sum[l,j] sq(Y[l,j]) * (l + 1)",
      "loss[] = sum[i,j] sq(X[abs(i - 1),3 - abs(j - 2)]) * S[i]",
      // Squares that are written otherwise.
      "loss[] = sqrt((sum[i,j] X[i,j] ** 2) + 0.5)",
      "loss[] = sqrt(0.5 * sum[i] S[i] ** 2)",
  };
}

TEST(Gradient, OfEachConstruct) {
  const std::string inputs =
      "dims i=3 j=4 k=2 l=3 m=3 b=2 a=2 c=2 q=12\ninput X[i,j], S[i], K[k], M[i,l] : f64\n"
      "used[] = S[0] + K[0] + X[0,0] + M[0,0]\n";
  for (const std::string& construct : constructs()) {
    std::vector<std::string> variables;
    for (const std::string variable : {"X", "S", "K", "M"}) {
      const bool is_read = construct.find(variable + "[") != std::string::npos;
      const bool is_at_jumps = construct.find("argmax") != std::string::npos && variable == "X";
      if (is_read && !is_at_jumps) variables.push_back(variable);
    }
    GradientCheck(inputs + construct + "\n", {{"X", numbers_between(-1, 1, 12, 1)},
                                              {"S", numbers_between(0.3, 1, 3, 2)},
                                              {"K", numbers_between(-1, 1, 2, 3)},
                                              {"M", numbers_between(-1, 1, 9, 4)}})
        .expect_right(variables, 1e-6);
  }
}

/// Values of the gradient of sum[i] f(X[i]) by X.
std::vector<double> gradient_at(const std::string& f, const std::vector<double>& x) {
  const std::string count = std::to_string(x.size());
  return GradientCheck("dims i=" + count + "\ninput X[i] : f64\nloss[] = sum[i] (" + f + ")\n", {{"X", x}})
      .value("gradient G = loss wrt X", "G");
}

TEST(Gradient, AtKinksIsWhatIsSaid) {
  EXPECT_THAT(gradient_at("abs(X[i])", {0}), ElementsAre(0));
  EXPECT_THAT(gradient_at("relu(X[i])", {0, 1, -1}), ElementsAre(0, 1, 0));
  EXPECT_THAT(gradient_at("max(X[i], 0)", {0, 1, -1}), ElementsAre(0.5, 1, 0));
  EXPECT_THAT(gradient_at("min(X[i], 0)", {0, 1, -1}), ElementsAre(0.5, 0, 1));
  EXPECT_THAT(gradient_at("max(X[i], X[i])", {3}), ElementsAre(1));
  EXPECT_THAT(gradient_at("sqrt(X[i])", {0, 4}), ElementsAre(infinity, 0.25));
  EXPECT_THAT(gradient_at("X[i] ** 2", {0}), ElementsAre(0));
  EXPECT_THAT(gradient_at("X[i] ** 1", {0}), ElementsAre(1));
  EXPECT_THAT(gradient_at("X[i] * step(X[i])", {0, 2}), ElementsAre(0, 1));
}

/// Of f, a function of all of X, by X.
std::vector<double> gradient_of(const std::string& f, const std::vector<double>& x) {
  const std::string count = std::to_string(x.size());
  return GradientCheck("dims i=" + count + "\ninput X[i] : f64\n" + f + "\n", {{"X", x}})
      .value("gradient G = loss wrt X", "G");
}

TEST(Gradient, OfReductionsAtKinks) {
  EXPECT_THAT(gradient_of("loss[] = max[i] X[i]", {1, 3, 3, 2}), ElementsAre(0, 0.5, 0.5, 0));
  EXPECT_THAT(gradient_of("loss[] = max[i] (2 * X[i])", {1, 3, 3, 2}), ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(gradient_of("loss[] = min[i] X[i]", {1, 3, 1, 1}), ElementsAre(1 / 3., 0, 1 / 3., 1 / 3.));
  EXPECT_THAT(gradient_of("loss[] = prod[i] X[i]", {2, 0, 3}), ElementsAre(0, 6, 0));
  EXPECT_THAT(gradient_of("loss[] = prod[i] X[i]", {0, 0, 3}), ElementsAre(0, 0, 0));
  EXPECT_THAT(gradient_of("loss[] = logsumexp[i] X[i]", {-infinity, -infinity}), ElementsAre(0, 0));
  EXPECT_THAT(gradient_of("loss[] = logsumexp[i] X[i]", {-infinity, 2}), ElementsAre(0, 1));
  EXPECT_THAT(gradient_of("loss[] = norm[i](X[i])", {0, 0}), ElementsAre(0, 0));
  EXPECT_THAT(gradient_of("loss[] = norm[i](X[i])", {3, 4}),
              ElementsAre(DoubleNear(0.6, 1e-15), DoubleNear(0.8, 1e-15)));
  for (const std::string squares :
       {"X[0] * X[0] + sq(X[1])", "sum[i] X[i] ** 2", "0.5 * sum[i] sq(X[i])", "sum[i] sq(X[i]) / 2",
        "f64(f32(sum[i] sq(X[i])))", "sum[i] where(i < 1, sq(X[i]), 0)", "mean[i] X[i] ** 4"})
    EXPECT_THAT(gradient_of("loss[] = sqrt(" + squares + ")", {0, 0}), ElementsAre(0, 0)) << squares;
}

TEST(Gradient, OfSidesNotTakenIsNoNaN) {
  EXPECT_THAT(gradient_at("where(X[i] > 0, log(X[i]), 0)", {0, 2}), ElementsAre(0, 0.5));
  EXPECT_THAT(gradient_at("where(X[i] > 0, sqrt(X[i]), X[i])", {0, -1, 4}), ElementsAre(1, 1, 0.25));
  EXPECT_THAT(gradient_at("where(X[i] == 0, 3, 1 / X[i])", {0, 2}), ElementsAre(0, -0.25));
  EXPECT_THAT(gradient_at("where(X[i] < 10, exp(X[i]), X[i])", {0, 10000}), ElementsAre(1, 1));
  // Across statements, too.
  EXPECT_THAT(gradient_of("Y[i] = log(X[i])\nloss[] = sum[i] where(X[i] > 0, Y[i], 0)", {0, 2}), ElementsAre(0, 0.5));
  EXPECT_THAT(gradient_of("Y[i] = sqrt(X[i])\nloss[] = sum[i] where(X[i] > 0, Y[i], 0)", {0, -3, 4}),
              ElementsAre(0, 0, 0.25));
  EXPECT_THAT(gradient_of("Y[i] = 1 / X[i]\nloss[] = sum[i] where(X[i] > 0, Y[i], 0)", {0, 2}), ElementsAre(0, -0.25));
  EXPECT_THAT(gradient_of("Y[i] = X[i] ** -0.5\nloss[] = sum[i] where(X[i] > 0, Y[i], 0)", {0, 1}),
              ElementsAre(0, -0.5));
}

TEST(Gradient, OfGradients) {
  // d/dx of 3 x^2 by y is 6 x; a Hessian times a vector.
  GradientCheck hessian(
      "dims i=3 j=3\ninput X[i], V[i], M[i,j] : f64\n"
      "f[] = sum[i,j] M[i,j] * sin(X[i]) * exp(X[j])\ngradient G = f wrt X\nloss[] = sum[i] G[i] * V[i]\n",
      {{"X", numbers_between(-1, 1, 3)}, {"V", numbers_between(-1, 1, 3, 2)}, {"M", numbers_between(-1, 1, 9, 3)}});
  hessian.expect_right({"X", "V", "M"});
  GradientCheck(
      "dims i=3 j=4\ninput X[i,j], W[j] : f64\nP[i,j] = softmax[j](X[i,j] * W[j])\n"
      "f[] = sum[i,j] P[i,j] * P[i,j] * j\ngradient G, H = f wrt X, W\nloss[] = sum[i,j] sq(G[i,j]) * H[j]\n",
      {{"X", numbers_between(-1, 1, 12)}, {"W", numbers_between(-1, 1, 4, 2)}})
      .expect_right({"X", "W"}, 1e-5);
  // At a flow of 0, where the second derivative is none.
  EXPECT_THAT(gradient_of("f[] = sum[i] sq(log(X[i]))\ngradient D = f wrt X\nloss[] = sum[i] D[i]", {1}),
              ElementsAre(2));
}

TEST(Gradient, GivenWhatFlowsBack) {
  GradientCheck product("dims i=2 j=2\ninput X[i,j], Y[j], S[i] : f64\nZ[i] = sum[j] X[i,j] * Y[j]\n",
                        {{"X", {1, 2, 3, 4}}, {"Y", {5, 6}}, {"S", {10, 100}}});
  EXPECT_THAT(product.value("gradient G = Z wrt Y given S", "G"), ElementsAre(310, 420));
  EXPECT_THAT(product.value("gradient G = Z wrt X given S", "G"), ElementsAre(50, 60, 500, 600));
  EXPECT_THAT(product.value("gradient G = Z wrt Z given S", "G"), ElementsAre(10, 100));
}

TEST(Gradient, OfRandomPrograms) {
  std::size_t measured = 0;
  std::size_t uncertain = 0;
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(test::rounds(2000)); ++seed) {
    const test::RandomGradientProgram program(seed);
    std::map<std::string, std::vector<double>> inputs;
    std::vector<std::string> variables;
    for (const auto& [name, count] : program.inputs()) {
      inputs[name] = numbers_between(0.3, 1.3, count, seed + variables.size());
      variables.push_back(name);
    }
    GradientCheck check(program.text(), inputs);
    check.expect_right(variables, 1e-5);
    if (HasFailure()) FAIL() << "seed " << seed;
    measured += check.measured();
    uncertain += check.uncertain();
  }
  EXPECT_LT(uncertain, measured / 50);
}

TEST(Gradient, HasTheTypeOfWhatItIsTakenBy) {
  const std::string program = "dims i=3\ninput X[i] : f32\ninput Y[i] : f64\ninput H[i] : f16\n";
  for (const std::string loss : {"sum[i] X[i] * i", "sum[i] X[i]", "sum[i] X[i] * Y[i]", "sum[i] X[i] * H[i]"}) {
    const EinGraph graph =
        graph_of(program + "loss[] = " + loss + "\ngradient G = loss wrt X\nZ[i] = G[i] * 2\noutput G, Z\n");
    for (const VertexId output : graph.outputs) EXPECT_EQ(graph[output].dtype, DType::f32) << loss;
  }
}

TEST(Gradient, OfNothingIsZero) {
  EXPECT_THAT(GradientCheck("dims b=0 i=2\ninput X[b,i], W[i] : f64\nY[i] = W[i] * 2\n"
                            "loss[] = sum[b,i] (X[b,i] + Y[i])\n",
                            {{"X", {}}, {"W", {1, 2}}})
                  .value("gradient G = loss wrt W", "G"),
              ElementsAre(0, 0));
}

TEST(Gradient, IsNotTakenOfWhatIsWrong) {
  using Errors = std::vector<std::string>;
  // Each program has one error, and nothing is said besides.
  for (const auto& [program, error] : std::vector<std::pair<std::string, std::string>>{
           {"loss[] = sum[i] X[i] X[i]\ngradient A = loss wrt X\n", "3:"},
           {"input wrt[i] : f64\nloss[] = sum[i] X[i]\ngradient A = loss wrt wrt\n", "3:"},
           {"C[i] = X[i] * Q[i]\nM[i] = C[i] * 2\nloss[] = sum[i] exp(M[i]) * X[i]\ngradient G = loss wrt X\n",
            "3:15"}}) {
    const Errors errors = errors_of("dims i=3\ninput X[i] : f64\n" + program);
    ASSERT_EQ(errors.size(), 1) << program << ::testing::PrintToString(errors);
    EXPECT_EQ(errors.front().rfind(error, 0), 0) << errors.front();
  }
}

/// The text that a program expands to.
std::string expanded_text(const std::string& text) {
  build::Program program = expanded(check_text(text));
  return print(program);
}

TEST(Gradient, StaysOfTheSizeOfTheProgram) {
  // Nested, and long: the formulas of gradients hold each other's.
  std::string extreme = "X[i]";
  std::string logarithm = "X[i]";
  std::string squares;
  for (int n = 1; n <= 40; ++n) {
    extreme = "max(" + std::to_string(n) + ", " + extreme + ")";
    logarithm = "log(" + logarithm + " + 3)";
  }
  for (int n = 0; n < 300; ++n) squares += (n == 0 ? "" : " + ") + ("X[i] * " + std::to_string(n));
  for (const std::string& body : {extreme, logarithm, "sq(" + squares + ")", "sqrt(1 + sq(" + squares + "))"}) {
    const std::string program = "dims i=2\ninput X[i]\nloss[] = sum[i] " + body + "\n";
    const std::size_t before = expanded_text(program).size();
    EXPECT_LT(expanded_text(program + "gradient G = loss wrt X\n").size(), 60 * before) << body.substr(0, 20);
  }
}

TEST(Expanded, HasNoWordsOfTheLanguageForLabels) {
  const std::string text = expanded_text(
      "dims p=3 q=5\ninput X[p], Y[q] : f64\nA[] = sum[f3] sq(X[f3])\n"
      "B[] = sum[f3] sq(Y[f3])\noutput A, B\n");
  EXPECT_THAT(errors_of(text), ::testing::IsEmpty()) << text;
}

}  // namespace
}  // namespace einrel
