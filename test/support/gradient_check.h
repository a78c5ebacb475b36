#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "einsum/check/check.h"
#include "einsum/reference.h"
#include "support/special_values.h"

namespace einrel::test {

/// A program in f64 that computes `loss[]`, differentiated by central differences.
class GradientCheck {
 public:
  /// `inputs`: values of each of its inputs, row-major.
  GradientCheck(std::string program, std::map<std::string, std::vector<double>> inputs)
      : program_(std::move(program)), inputs_(std::move(inputs)) {}

  /// Values of `wanted`, a tensor of the program with `more` behind it.
  std::vector<double> value(const std::string& more, const std::string& wanted) const {
    return evaluated(graph_of(more + "\noutput " + wanted + "\n"), inputs_).front();
  }

  /// Compares the gradient by each of `variables` with differences of the loss, as far as these can be measured.
  void expect_right(const std::vector<std::string>& variables, double tolerance = 1e-6) {
    std::string results;
    std::string names;
    for (const std::string& variable : variables) {
      results += (results.empty() ? "" : ", ") + ("G_" + variable);
      names += (names.empty() ? "" : ", ") + variable;
    }
    SCOPED_TRACE(program_);
    const EinGraph graph = graph_of("gradient " + results + " = loss wrt " + names + "\noutput " + results + "\n");
    const std::vector<std::vector<double>> gradients = evaluated(graph, inputs_);
    const EinGraph loss = graph_of("output loss\n");
    for (std::size_t v = 0; v < variables.size(); ++v) {
      const std::size_t count = inputs_.at(variables[v]).size();
      ASSERT_EQ(gradients[v].size(), count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto [expected, error] = difference(loss, variables[v], i);
        const double bound = tolerance * std::max(1.0, std::abs(expected));
        ++measured_;
        uncertain_ += error > bound ? 1U : 0U;
        EXPECT_NEAR(gradients[v][i], expected, bound + 10 * error) << "by " << variables[v] << ", element " << i;
      }
    }
  }

  std::size_t measured() const { return measured_; }
  /// Elements whose differences were less accurate than was wanted.
  std::size_t uncertain() const { return uncertain_; }

 private:
  EinGraph graph_of(const std::string& more) const {
    return *parse_and_check(SourceText("gradient", program_ + more), {}).graph;
  }

  static std::vector<std::vector<double>> evaluated(const EinGraph& graph,
                                                    const std::map<std::string, std::vector<double>>& inputs) {
    TensorBindings bindings;
    for (const Vertex& vertex : graph.vertices) {
      if (const auto found = inputs.find(vertex.name); found != inputs.end())
        bindings[vertex.name] = tensor_of(vertex.dtype, vertex.bound, found->second);
    }
    std::vector<std::vector<double>> values;
    for (const Tensor& tensor : evaluate_reference(graph, bindings, {})) values.push_back(values_of(tensor));
    return values;
  }

  /// By two steps of different length, whose errors cancel (Richardson); and how far that is from shorter steps.
  std::pair<double, double> difference(const EinGraph& loss, const std::string& variable, std::size_t i) const {
    const auto slope = [&](double step) {
      double values[2];
      for (const int side : {0, 1}) {
        auto moved = inputs_;
        moved.at(variable)[i] += side == 0 ? -step : step;
        values[side] = evaluated(loss, moved).front().front();
      }
      return (values[1] - values[0]) / (2 * step);
    };
    const auto extrapolated = [&](double step) { return (4 * slope(step / 2) - slope(step)) / 3; };
    const double found = extrapolated(1e-4);
    return {found, std::abs(found - extrapolated(2e-5))};
  }

  std::string program_;
  std::map<std::string, std::vector<double>> inputs_;
  std::size_t measured_ = 0;
  std::size_t uncertain_ = 0;
};

/// Numbers between two limits.
inline std::vector<double> numbers_between(double least, double most, std::size_t count, std::uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> any(least, most);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = any(random);
  return numbers;
}

}  // namespace einrel::test
