// Einrel in a C++ program: one program in the language, one as expressions, a plan, an error.
#include <einrel/einrel.h>

#include <exception>
#include <iostream>
#include <vector>

namespace {

/// Made-up data: whole numbers between -4 and 4.
einrel::Tensor data(std::int64_t rows, std::int64_t columns, int seed) {
  std::vector<float> values;
  for (std::int64_t n = 0; n < rows * columns; ++n) values.push_back(static_cast<float>((n * 5 + seed) % 9 - 4));
  return {{rows, columns}, std::move(values)};  // takes the vector; nothing is copied
}

/// A program in the language, as text or from a file. Extents that it leaves out come from the tensors.
einrel::Tensor scores(const einrel::Tensor& images, const einrel::Tensor& weights) {
  const einrel::Program program = einrel::Program::parse(R"(
      input X[b,f], W[f,l]
      S[b,l] = sum[f] X[b,f] * W[f,l]
  )");
  return program.run({{"X", images}, {"W", weights}})["S"];
}

/// The same language as C++ expressions.
einrel::Program classifier(std::int64_t images, std::int64_t features, std::int64_t classes) {
  using namespace einrel;
  const Label b("b", images);
  const Label f("f", features);
  const Label l("l", classes);
  const Variable x = input("X", {b, f});
  const Variable w = input("W", {f, l});
  const Variable s = define("S", {b, l}, sum({f}, x(b, f) * w(f, l)));
  return Program::build({define("best", {b}, argmax({l}, s(b, l))), define("P", {b, l}, softmax({l}, s(b, l)))});
}

int run() {
  constexpr std::int64_t images = 6;
  constexpr std::int64_t features = 8;
  constexpr std::int64_t classes = 3;
  const einrel::Tensor x = data(images, features, 1);
  const einrel::Tensor w = data(features, classes, 2);

  const einrel::Tensor s = scores(x, w);
  std::cout << "scores:";
  for (const float score : s.values<float>()) std::cout << ' ' << score;

  const einrel::Program program = classifier(images, features, classes);
  std::cout << "\n\nthe expressions as text:\n" << program.text();
  std::cout << "\nhow 4 sites would share the work on 60000 images:\n"
            << classifier(60000, 784, 10).explain({.sites = 4}) << '\n';

  const einrel::RunResult result = program.run({{"X", x}, {"W", w}}, {.sites = 4});
  std::cout << "classes:";
  for (const std::int64_t best : result["best"].values<std::int64_t>()) std::cout << ' ' << best;
  std::cout << "\nby the plan of " << result.report.planner.value() << " for " << result.report.sites
            << " sites, which moves " << result.report.bytes_moved << " bytes\n";

  std::cout << "\nnumpy.einsum's notation:";
  const einrel::Tensor totals = einrel::einsum("bf->b", {x}, {.reduce = "max"});
  for (const float total : totals.values<float>()) std::cout << ' ' << total;

  std::cout << "\n\na mistake:\n";
  try {
    scores(x, x);
  } catch (const einrel::UserError& error) {
    std::cout << error.what() << '\n';
  }
  return 0;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
