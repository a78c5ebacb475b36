#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "einsum/reference.h"
#include "support/hyper_dual.h"
#include "support/program.h"
#include "support/rounds.h"

/// Gradients of first and second order of random programs at points where functions have kinks, ties or sides that are
/// not taken, against hyper-dual numbers, which go forward and know nothing of guards or formulas.
namespace einrel {
namespace {

using test::HyperDual;

constexpr std::size_t rows = 3;     // of i
constexpr std::size_t columns = 4;  // of j

/// X[i], Y[i], Z[i,j].
struct Point {
  std::vector<HyperDual> x;
  std::vector<HyperDual> y;
  std::vector<HyperDual> z;
};

using Position = std::pair<std::size_t, std::size_t>;

/// A formula and what it is.
struct Term {
  std::string text;
  std::function<HyperDual(const Point&, Position)> value;
};

class RandomTerm {
 public:
  explicit RandomTerm(std::mt19937_64& random) : random_(random) {}

  Term any(int depth, bool over_j) {
    if (depth == 0) return leaf(over_j);
    switch (below(over_j ? 8 : 10)) {
      case 0:
      case 1: return of_one(any(depth - 1, over_j));
      case 2:
      case 3:
      case 4: return of_two(any(depth - 1, over_j), any(depth - 1, over_j));
      case 5: return chosen(any(depth - 1, over_j), any(depth - 1, over_j), any(depth - 1, over_j));
      case 6: return guarded(any(depth - 1, over_j), over_j);
      case 7: return leaf(over_j);
      default: return reduced(any(depth - 1, true));
    }
  }

  /// Of more than 64 parts.
  static Term lengthened(const Term& term) {
    std::string text;
    for (int n = 1; n <= 12; ++n) text += fmt::format("{}sigmoid({}.5 + {})", n == 1 ? "" : " * ", n, term.text);
    return {"(" + text + ")", [=](const Point& at, Position p) {
              const HyperDual u = term.value(at, p);
              HyperDual product{1};
              for (int n = 1; n <= 12; ++n) product = product * sigmoid(HyperDual{n + 0.5} + u);
              return product;
            }};
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint64_t>(n)); }

  Term leaf(bool over_j) {
    switch (below(over_j ? 6 : 4)) {
      case 0: return {"X[i]", [](const Point& at, Position p) { return at.x[p.first]; }};
      case 1: return {"Y[i]", [](const Point& at, Position p) { return at.y[p.first]; }};
      case 2: return {"f64(i)", [](const Point&, Position p) { return HyperDual{static_cast<double>(p.first)}; }};
      case 3: {
        const double number = std::vector<double>{0, 1, -1, 0.5, 2}[random_() % 5];
        return {fmt::format("({})", number), [=](const Point&, Position) { return HyperDual{number}; }};
      }
      default: return {"Z[i,j]", [](const Point& at, Position p) { return at.z[p.first * columns + p.second]; }};
    }
  }

  Term of_one(const Term& u) {
    struct Function {
      std::string text;
      HyperDual (*value)(const HyperDual&);
    };
    static const std::vector<Function> functions{
        {"abs({})", [](const HyperDual& x) { return abs(x); }},
        {"relu({})", [](const HyperDual& x) { return relu(x); }},
        {"sq({})", [](const HyperDual& x) { return x * x; }},
        {"exp(min({}, 2))", [](const HyperDual& x) { return exp(larger(x * -1, HyperDual{-2}) * -1); }},
        {"tanh({})", [](const HyperDual& x) { return tanh(x); }},
        {"sigmoid({})", [](const HyperDual& x) { return sigmoid(x); }},
        {"gelu({})", [](const HyperDual& x) { return gelu(x); }},
        {"silu({})", [](const HyperDual& x) { return x * sigmoid(x); }},
        {"erf({})", [](const HyperDual& x) { return erf(x); }},
        {"erfc({})", [](const HyperDual& x) { return HyperDual{1} - erf(x); }},
        {"sin({})", [](const HyperDual& x) { return x.through(std::sin(x.x), std::cos(x.x), -std::sin(x.x)); }},
        {"cos({})", [](const HyperDual& x) { return x.through(std::cos(x.x), -std::sin(x.x), -std::cos(x.x)); }},
        {"expm1(min({}, 1))",
         [](const HyperDual& x) { return exp(larger(x * -1, HyperDual{-1}) * -1) - HyperDual{1}; }},
        {"log1p(sq({}))", [](const HyperDual& x) { return log(HyperDual{1} + x * x); }},
        {"sqrt(1 + sq({}))", [](const HyperDual& x) { return sqrt(HyperDual{1} + x * x); }},
        {"rsqrt(2 + sq({}))", [](const HyperDual& x) { return rsqrt(HyperDual{2} + x * x); }},
        {"(-({}))", [](const HyperDual& x) { return x * -1; }},
        {"step({})", [](const HyperDual& x) { return HyperDual{x.x > 0 ? 1.0 : 0.0}; }},
        {"floor({})", [](const HyperDual& x) { return HyperDual{std::floor(x.x)}; }},
        {"stop_gradient({})", [](const HyperDual& x) { return HyperDual{x.x}; }},
        {"(({}) ** 3)", [](const HyperDual& x) { return x * x * x; }}};
    const Function& f = functions[random_() % functions.size()];
    return {fmt::format(fmt::runtime(f.text), u.text),
            [=, of = f.value](const Point& at, Position p) { return of(u.value(at, p)); }};
  }

  Term of_two(const Term& u, const Term& v) {
    const auto made = [&](const std::string& text, HyperDual (*of)(const HyperDual&, const HyperDual&)) {
      return Term{fmt::format(fmt::runtime(text), u.text, v.text),
                  [=](const Point& at, Position p) { return of(u.value(at, p), v.value(at, p)); }};
    };
    using Two = const HyperDual&;
    switch (below(6)) {
      case 0: return made("({} + {})", [](Two x, Two y) { return x + y; });
      case 1: return made("({} - {})", [](Two x, Two y) { return x - y; });
      case 2: return made("({} / (3 + sq({})))", [](Two x, Two y) { return x / (HyperDual{3} + y * y); });
      case 3: return made("max({}, {})", [](Two x, Two y) { return larger(x, y); });
      case 4: return made("min({}, {})", [](Two x, Two y) { return larger(x * -1, y * -1) * -1; });
      default: return made("({} * {})", [](Two x, Two y) { return x * y; });
    }
  }

  Term chosen(const Term& c, const Term& u, const Term& v) {
    return {fmt::format("where({} > 0.5, {}, {})", c.text, u.text, v.text),
            [=](const Point& at, Position p) { return c.value(at, p).x > 0.5 ? u.value(at, p) : v.value(at, p); }};
  }

  /// What has no derivative, or an infinite one, on the other side.
  Term guarded(const Term& u, bool over_j) {
    struct Guarded {
      std::string text;
      HyperDual (*value)(const HyperDual&);
    };
    static const std::vector<Guarded> all{
        {"log({})", [](const HyperDual& x) { return log(x); }},
        {"(1 / {})", [](const HyperDual& x) { return HyperDual{1} / x; }},
        {"sqrt({})", [](const HyperDual& x) { return sqrt(x); }},
        {"rsqrt({})", [](const HyperDual& x) { return rsqrt(x); }},
        {"(({}) ** -1.5)", [](const HyperDual& x) { return power(x, -1.5); }},
        {"(({}) ** 0.3)", [](const HyperDual& x) { return power(x, 0.3); }},
        {"exp(1000 * (0.001 - {})) ", [](const HyperDual& x) { return exp((HyperDual{0.001} - x) * 1000); }}};
    // In a reduction, which is a tensor of its own, only derivatives that are infinite by themselves count for nothing.
    const Guarded& f = all[random_() % (all.size() - (over_j ? 1 : 0))];
    Term inside{fmt::format(fmt::runtime(f.text), u.text),
                [=, of = f.value](const Point& at, Position p) { return of(u.value(at, p)); }};
    if (!over_j && below(2) == 0) inside = lengthened(inside);
    return {fmt::format("where({} > 0, {}, 0)", u.text, inside.text),
            [=](const Point& at, Position p) { return u.value(at, p).x > 0 ? inside.value(at, p) : HyperDual{}; }};
  }

  Term reduced(const Term& u) {
    using Values = std::vector<HyperDual>;
    const auto made = [&](const std::string& reducer, HyperDual (*of)(const Values&)) {
      return Term{fmt::format("({}[j] ({} + 0 * Z[i,j]))", reducer, u.text), [=](const Point& at, Position p) {
                    Values values;
                    for (std::size_t j = 0; j < columns; ++j) values.push_back(u.value(at, {p.first, j}));
                    return of(values);
                  }};
    };
    static const auto sum_of = [](const Values& values) {
      HyperDual sum;
      for (const HyperDual& value : values) sum = sum + value;
      return sum;
    };
    static const auto largest_of = [](const Values& values, double sign) {
      double largest = sign * values[0].x;
      for (const HyperDual& value : values) largest = std::max(largest, sign * value.x);
      Values those;
      for (const HyperDual& value : values) {
        if (sign * value.x == largest) those.push_back(value);
      }
      return sum_of(those) * (1 / static_cast<double>(those.size()));
    };
    switch (below(6)) {
      case 0: return made("sum", [](const Values& values) { return sum_of(values); });
      case 1: return made("mean", [](const Values& values) { return sum_of(values) * (1.0 / columns); });
      case 2: return made("max", [](const Values& values) { return largest_of(values, 1); });
      case 3: return made("min", [](const Values& values) { return largest_of(values, -1); });
      case 4:
        return made("prod", [](const Values& values) {
          HyperDual product{1};
          for (const HyperDual& value : values) product = product * value;
          return product;
        });
      default:
        return made("logsumexp", [](const Values& values) {
          Values exponentials;
          for (const HyperDual& value : values) exponentials.push_back(exp(value));
          return log(sum_of(exponentials));
        });
    }
  }

  std::mt19937_64& random_;
};

struct Inputs {
  std::vector<double> x, y, z;     // where
  std::vector<double> dx, dy, dz;  // the direction of the second derivative
};

Inputs random_inputs(std::mt19937_64& random) {
  const std::vector<double> special{0, 0, 1, 1, -1, 0.5, 2, -2, 0.25};
  const auto some = [&](std::size_t count) {
    std::vector<double> values(count);
    for (double& value : values) value = special[random() % special.size()];
    return values;
  };
  const auto directions = [&](std::size_t count) {
    std::vector<double> values(count);
    for (double& value : values) value = static_cast<double>(1 + random() % 8) / 8;
    return values;
  };
  return {some(rows), some(rows), some(rows * columns), directions(rows), directions(rows), directions(rows * columns)};
}

/// The loss, where the element `moved` of all inputs together moves along the first direction.
HyperDual loss_of(const Term& term, const Inputs& inputs, std::size_t moved) {
  std::size_t element = 0;
  const auto numbers = [&](const std::vector<double>& at, const std::vector<double>& along) {
    std::vector<HyperDual> values;
    for (std::size_t i = 0; i < at.size(); ++i) values.push_back({at[i], element++ == moved ? 1.0 : 0.0, along[i], 0});
    return values;
  };
  const Point point{numbers(inputs.x, inputs.dx), numbers(inputs.y, inputs.dy), numbers(inputs.z, inputs.dz)};
  HyperDual loss;
  for (std::size_t i = 0; i < rows; ++i) loss = loss + term.value(point, {i, 0}) * static_cast<double>(i + 1);
  return loss;
}

std::string program_of(const Term& term) {
  // Each input is read by its own, so that it always has a gradient.
  return "dims i=3 j=4\ninput X[i], Y[i], Z[i,j], V[i], W[i], U[i,j] : f64\n"
         "loss[] = (sum[i] (i + 1) * (" +
         term.text +
         ")) + (sum[i] (sq(X[i]) + sq(Y[i]))) + sum[i,j] sq(Z[i,j])\n"
         "gradient A, B, C = loss wrt X, Y, Z\n"
         "along[] = (sum[i] (A[i] * V[i] + B[i] * W[i])) + sum[i,j] C[i,j] * U[i,j]\n"
         "gradient D, E, F = along wrt X, Y, Z\noutput A, B, C, D, E, F\n";
}

/// The first element that is wrong, if any is.
std::string wrong_element(const Term& term, const Inputs& inputs) {
  const EinGraph graph = graph_of(program_of(term));
  const std::map<std::string, std::vector<double>> given{{"X", inputs.x},  {"Y", inputs.y},  {"Z", inputs.z},
                                                         {"V", inputs.dx}, {"W", inputs.dy}, {"U", inputs.dz}};
  TensorBindings bindings;
  for (const Vertex& vertex : graph.vertices) {
    if (const auto found = given.find(vertex.name); found != given.end())
      bindings[vertex.name] = tensor_of(vertex.dtype, vertex.bound, found->second);
  }
  const std::vector<Tensor> results = evaluate_reference(graph, bindings, {});
  std::size_t element = 0;
  for (std::size_t t = 0; t < 3; ++t) {
    const std::vector<double> first = values_of(results[t]);
    const std::vector<double> second = values_of(results[t + 3]);
    const std::vector<double>& at = t == 0 ? inputs.x : t == 1 ? inputs.y : inputs.z;
    const std::vector<double>& along = t == 0 ? inputs.dx : t == 1 ? inputs.dy : inputs.dz;
    for (std::size_t i = 0; i < first.size(); ++i, ++element) {
      const HyperDual loss = loss_of(term, inputs, element);
      constexpr double most = 1e7;  // differences of larger numbers are not exact enough
      const auto is_right = [&](double found, double expected) {
        return !(std::abs(expected) < most) || std::abs(found - expected) <= 1e-7 * (1 + std::abs(expected));
      };
      if (!is_right(first[i], loss.a + 2 * at[i]))
        return fmt::format("first, element {}: {} is not {}", element, first[i], loss.a + 2 * at[i]);
      if (!is_right(second[i], loss.c + 2 * along[i]))
        return fmt::format("second, element {}: {} is not {}", element, second[i], loss.c + 2 * along[i]);
    }
  }
  return "";
}

/// Other programs with each round of --gtest_shuffle --gtest_repeat=N.
std::uint64_t first_seed() {
  return static_cast<std::uint64_t>(testing::UnitTest::GetInstance()->random_seed()) * 1'000'000;
}

TEST(GradientAtSpecialPoints, OfFirstAndSecondOrderIsThatOfHyperDualNumbers) {
  for (int round = 0; round < test::rounds(1500); ++round) {
    const std::uint64_t seed = first_seed() + static_cast<std::uint64_t>(round);
    std::mt19937_64 random(seed);
    RandomTerm terms(random);
    Term term = terms.any(1 + static_cast<int>(random() % 4), false);
    if (random() % 8 == 0) term = RandomTerm::lengthened(term);
    const Inputs inputs = random_inputs(random);
    const std::string wrong = wrong_element(term, inputs);
    EXPECT_EQ(wrong, "") << "seed " << seed << "\n" << program_of(term);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace einrel
