#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "einsum/graph/vertex_facts.h"
#include "support/gradient_check.h"
#include "support/jet.h"
#include "support/program.h"
#include "support/special_values.h"

/// The forms that gradients are computed in: their types, ranges, guards and sizes.
namespace einrel {
namespace {

using test::Jet;
using ::testing::ElementsAre;

/// Values of the outputs of a program.
std::vector<std::vector<double>> values_of_outputs(const std::string& program,
                                                   const std::map<std::string, std::vector<double>>& inputs) {
  const EinGraph graph = graph_of(program);
  TensorBindings bindings;
  for (const Vertex& vertex : graph.vertices) {
    if (const auto found = inputs.find(vertex.name); found != inputs.end())
      bindings[vertex.name] = tensor_of(vertex.dtype, vertex.bound, found->second);
  }
  std::vector<std::vector<double>> values;
  for (const Tensor& tensor : evaluate_reference(graph, bindings, {})) values.push_back(values_of(tensor));
  return values;
}

TEST(GradientForms, OfTermsThatReadNoTensorHaveItsType) {
  // Each is linear in X, so that its value at 1 is its gradient.
  for (const std::string type : {"f32", "f64"}) {
    for (const std::string body :
         {"sum[i] X[] * (1e39 * i)", "sum[i] X[] * ((1 + 1e-9 * i) - 1)", "sum[k] X[] * k * k * k * k",
          "sum[i] X[] * where(I[i] == 1, 0.1, 0.3)", "sum[i] X[] * f64(i) * 0.1", "sum[i] X[] / (i + 1) * 0.7",
          "sum[i,j] (X[] / (i + 1)) * (j + 1)", "sum[i,j] X[] * i / (j + 1)", "sum[i] (X[] * 2) * exp(0.1 * i)",
          "mean[i] X[] * (i * 0.1)", "sum[i] where(i == 2, X[] * 0.1, X[] * (0.3 * i))", "sum[i] X[] * (i ** 3) * 0.1",
          "sum[i] f64(X[]) * ((1 + 1e-9 * i) - 1)", "sum[i] f32(X[]) * (0.1 * i)",
          "sum[i] where(f32(i) * 0.1 == f32(0.3), X[] * 0.1, X[] * 0.7)"}) {
      const std::string program = "dims i=4 j=3 k=60000\ninput X[] : " + type + "\ninput I[i] : i64\nloss[] = " + body +
                                  "\nM[] = 1 * loss[]\ngradient D = M wrt X\n";
      const auto values = values_of_outputs(program + "output loss, D\n", {{"X", {1}}, {"I", {1, 0, 1, 2}}});
      if (!std::isfinite(values[0][0])) continue;  // in f32
      const auto rounded = [&](double x) { return type == "f32" ? static_cast<double>(static_cast<float>(x)) : x; };
      EXPECT_DOUBLE_EQ(rounded(values[0][0]), values[1][0]) << type << " " << body;
      // In a second derivative, too: of X * the gradient by X of X^2 / 2 times the same terms.
      const auto second = values_of_outputs(program + "Q[] = D[] * X[] * X[]\ngradient E = Q wrt X\noutput D, E\n",
                                            {{"X", {1}}, {"I", {1, 0, 1, 2}}});
      EXPECT_DOUBLE_EQ(rounded(2 * second[0][0]), second[1][0]) << type << " " << body;
    }
  }
}

TEST(GradientForms, OfSelectionsOfNumbersHaveTheTypeOfWhatIsRead) {
  const auto values = values_of_outputs(
      "dims i=3 z=2\ninput X[i] : f64\nloss[] = sum[z] X[2*z] * 0.1\ngradient D = loss wrt X\noutput D\n",
      {{"X", {1, 2, 3}}});
  EXPECT_THAT(values[0], ElementsAre(0.1, 0, 0.1));
}

TEST(GradientForms, OfLabelsThatWereCastCompareAsTheyDid) {
  // 0.1f * 3 is above 0.3f in f32, and equal to it in f64.
  for (const std::string condition : {"f32(i) * 0.1 == f32(0.3)", "f64(i) * i * i * i < 9e18", "i32(i) + 1 == 3"}) {
    const std::string value = "where(" + condition + ", X[i], 3 * X[i])";
    const auto values = values_of_outputs("dims i=4\ninput X[i] : f64\nY[i] = " + value +
                                              "\nloss[] = sum[i] Y[i]\ngradient D = loss wrt X\noutput Y, D\n",
                                          {{"X", {1, 1, 1, 1}}});
    EXPECT_EQ(values[0], values[1]) << condition;
  }
}

TEST(GradientForms, OfQuotientsStayInTheRangeOfTheirType) {
  const std::vector<double> a{1e20, 1e-30, 3, 1e30};
  const std::vector<double> b{1e20, 1e-30, 2, 1e20};
  const std::string inputs = "dims i=4\ninput a[i], b[i] : ";
  const auto check = [&](const std::string& type, double scale, const std::string& loss) {
    std::map<std::string, std::vector<double>> at{{"a", a}, {"b", b}};
    for (auto& [name, values] : at) {
      for (double& value : values) value = std::pow(value, scale);
    }
    const auto values =
        values_of_outputs(inputs + type + "\n" + loss + "\ngradient G, H = loss wrt a, b\noutput G, H\n", at);
    const double tolerance = type == "f32" ? 1e-6 : 1e-14;
    for (std::size_t i = 0; i < 4; ++i) {
      const double x = at["a"][i];
      const double y = at["b"][i];
      EXPECT_NEAR(values[0][i] * y, 1, tolerance) << type << loss << i;
      EXPECT_NEAR(values[1][i] / (x / y / y), -1, tolerance) << type << loss << i;
    }
  };
  for (const std::string loss : {"loss[] = sum[i] (a[i] / b[i])", "Z[i] = a[i] / b[i]\nloss[] = sum[i] Z[i]",
                                 "loss[] = sum[i] 0.5 * (a[i] / b[i] * 2)"}) {
    check("f32", 1, loss);
    check("f64", 1, loss);
    check("f64", 10, loss);  // 1e200 / 1e200, 1e300 / 1e200
  }
  // 1 / c is infinite, a / c is not.
  const auto values =
      values_of_outputs("input X[], a[], c[] : f32\nloss[] = (X[] * a[]) / c[]\ngradient G = loss wrt X\noutput G\n",
                        {{"X", {1}}, {"a", {1e-10}}, {"c", {1e-40}}});
  EXPECT_NEAR(values[0][0] / 1e30, 1, 1e-4);
}

/// 80 parts and more around what has no derivative, or none that is finite, at 0.
std::string long_product(const std::string& x, int factors = 14) {
  std::string text;
  for (int n = 1; n <= factors; ++n) text += fmt::format("{}sin({} + {})", n == 1 ? "" : " * ", n, x);
  return text;
}

TEST(GradientForms, KeepSidesThatAreNotTakenInLongStatements) {
  for (const std::string inner :
       {"log(X[i])", "log(log(X[i] + 1))", "1 / X[i]", "exp(1000 * (1 - X[i])) * X[i]", "X[i] ** -1.5",
        "sqrt(X[i] - 0.5)", "logsumexp[j] log(X[i] + 0 * Z[j])", "max[j] log(X[i] + Z[j])"}) {
    for (const std::string outer : {"where(X[i] > 0, L, 0)", "where(X[i] <= 0, 0, where(X[i] > 0, L, 7))",
                                    "where(X[i] > 0, L + sq(L), X[i])", "where(X[i] > 0, max(L, 0.1) * min(L, 0.2), 0)",
                                    "where(X[i] > 0, abs(L) * max(L, -L), 0) + where(X[i] > 0.5, L, 0)"}) {
      std::string body = outer;
      for (std::size_t at = 0; (at = body.find('L', at)) != std::string::npos;) {
        const std::string product = "(" + long_product(inner) + ")";
        body.replace(at, 1, product);
        at += product.size();
      }
      const std::string program = "dims i=3 j=2\ninput X[i], Z[j] : f64\nloss[] = sum[i] (" + body +
                                  ")\ngradient D = loss wrt X\ntwice[] = sum[i] sq(D[i])\ngradient H = twice wrt X\n"
                                  "output D, H\n";
      const auto values = values_of_outputs(program, {{"X", {0, 1, 2}}, {"Z", {0, 0}}});
      const double at_nothing = outer.find(", X[i])") == std::string::npos ? 0 : 1;
      EXPECT_EQ(values[0][0], at_nothing) << inner << " in " << outer;
      EXPECT_EQ(values[1][0], 0) << inner << " in " << outer;
      for (const auto& gradient : values) {
        for (const double value : gradient) EXPECT_TRUE(std::isfinite(value)) << inner << " in " << outer;
      }
    }
  }
}

TEST(GradientForms, OfLongStatementsAreThoseOfShortOnes) {
  // The same in one statement and in a statement for each factor.
  std::string pieces;
  std::string product;
  for (int n = 1; n <= 14; ++n) {
    pieces += fmt::format("P{0}[i] = sin({0} + X[i] * S[i])\n", n);
    product += fmt::format("{}P{}[i]", n == 1 ? "" : " * ", n);
  }
  const std::string after =
      "\ngradient D, E = loss wrt X, S\ntwice[] = sum[i] sq(D[i]) + sum[i] D[i] * E[i]\n"
      "gradient H, I = twice wrt X, S\noutput D, E, H, I\n";
  for (const std::string reducer : {"sum", "sumsq", "max", "min", "logsumexp", "mean", "prod"}) {
    const std::map<std::string, std::vector<double>> inputs{{"X", {0.3, 1, 2}}, {"S", {1, 2, 0.7}}};
    const std::string begin = "dims i=3\ninput X[i], S[i] : f64\n";
    const auto in_one =
        values_of_outputs(begin + "loss[] = " + reducer + "[i] (" + long_product("X[i] * S[i]") + ")" + after, inputs);
    const auto in_many =
        values_of_outputs(begin + pieces + "loss[] = " + reducer + "[i] (" + product + ")" + after, inputs);
    for (std::size_t v = 0; v < in_one.size(); ++v) {
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(in_one[v][i], in_many[v][i], 1e-12 * std::max(1.0, std::abs(in_many[v][i]))) << reducer;
    }
  }
}

TEST(GradientForms, OfPaddedWindowsInLongStatementsAreFinite) {
  const auto values = values_of_outputs(
      "dims i=5 k=4 m=3 n=1\ninput X[k,n], W[i,k] : f64\n"
      "Z[i,k,m] = (0.4 + sq(logsoftmax[m](pad(X[2,i+2*m-1], 0)) * W[i,k])) ** 0.5\n"
      "loss[] = sum[i,k,m] Z[i,k,m]\ngradient D = loss wrt X\ntwice[] = sum[a,b] sin(D[a,b])\n"
      "gradient H = twice wrt X\noutput H\n",
      {{"X", test::numbers_between(-1, 1, 4)}, {"W", test::numbers_between(-1, 1, 20, 2)}});
  for (const double value : values[0]) EXPECT_TRUE(std::isfinite(value));
}

/// How many steps all bodies of a program have.
std::size_t steps_of(const EinGraph& graph) {
  std::size_t steps = 0;
  for (const Vertex& vertex : graph.vertices) {
    if (const EinSum* const einsum = einsum_of(vertex)) steps += einsum->body.steps.size();
  }
  return steps;
}

/// x d/dx, so often, of a function of x.
std::string nested_gradients(int levels) {
  std::string program = "dims i=3\ninput X[i] : f64\nL0[] = sum[i] exp(sin(X[i]) * X[i]) / (1 + sq(X[i]))\n";
  for (int level = 0; level < levels; ++level)
    program += fmt::format("gradient G{0} = L{0} wrt X\nL{1}[] = sum[i] G{0}[i] * X[i]\n", level, level + 1);
  return program;
}

TEST(NestedGradients, GrowByAFactorWithEachLevel) {
  const std::vector<double> at{0.3, 0.4, 0.5};
  std::size_t before = 0;
  for (int level = 1; level <= 6; ++level) {
    const std::string program = nested_gradients(level);
    const std::size_t steps = steps_of(graph_of(program));
    EXPECT_LT(steps, (level == 1 ? 1000 : 5 * before + 300)) << level;
    before = steps;
    double expected = 0;
    for (const double x : at) {
      Jet value = Jet::variable(x);
      value = exp(sin(value) * value) / (Jet::number(1) + value * value);
      for (int n = 0; n < level; ++n) value = Jet::variable(x) * value.slope();
      expected += value.value();
    }
    const double found = values_of_outputs(program + fmt::format("output L{}\n", level), {{"X", at}})[0][0];
    EXPECT_NEAR(found, expected, 1e-9 * std::abs(expected)) << level;
  }
}

TEST(NestedGradients, AreBoundWithAMessage) {
  const std::vector<std::string> errors = errors_of(nested_gradients(12));
  ASSERT_EQ(errors.size(), 1);
  EXPECT_THAT(errors[0], ::testing::HasSubstr("1 the gradients of this program expand to more than 200000 operations"));
}

TEST(NestedGradients, OfDeepNestsAreAsLongAsTheseAre) {
  std::string macros = "def f1(x) = relu(x * 1.001 - 0.0001)\n";
  for (int n = 2; n <= 11; ++n) macros += fmt::format("def f{0}(x) = f{1}(f{1}(x))\n", n, n - 1);
  const std::string program = macros + "dims i=2\ninput X[i] : f64\nloss[] = sum[i] f11(X[i])\n";
  const std::string with_gradient = program + "gradient D = loss wrt X\noutput D\n";
  EXPECT_LT(steps_of(graph_of(with_gradient)), 8 * steps_of(graph_of(program)));
  const auto values = values_of_outputs(with_gradient, {{"X", {1, -1}}});
  EXPECT_NEAR(values[0][0], std::pow(1.001, 1024), 1e-9);
  EXPECT_EQ(values[0][1], 0);
}

TEST(NestedGradients, OfASharedPartHoldItOnce) {
  // f(f(f(x))) as a text has f's argument many times, and its gradient is no longer than it is.
  const std::string program =
      "def f(t) = t / (1 + sq(t))\ndims i=3\ninput X[i] : f64\nloss[] = sum[i] where(X[i] > 0, "
      "sin(f(f(f(f(log(X[i])))))), "
      "0)\n";
  const std::string with_gradient = program + "gradient D = loss wrt X\noutput D\n";
  EXPECT_LT(steps_of(graph_of(with_gradient)), 10 * steps_of(graph_of(program)));
  const auto values = values_of_outputs(with_gradient, {{"X", {0, 1, 2}}});
  EXPECT_EQ(values[0][0], 0);
  EXPECT_NEAR(values[0][1], 1, 1e-14);
}

}  // namespace
}  // namespace einrel
