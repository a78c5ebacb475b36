#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/program.h"

namespace einrel::test {

/// Random programs of a few matrix computations, whose tensors are read several times.
class RandomMatrices {
 public:
  /// Matrices have these extents. With `depths` a computation may also be one of stacks: tensors of three dimensions,
  /// of which the first has one of these extents.
  explicit RandomMatrices(std::uint64_t seed, std::vector<std::int64_t> extents = {1, 5, 12, 30},
                          std::vector<std::int64_t> depths = {})
      : extents_(std::move(extents)), depths_(std::move(depths)), random_(seed) {}

  /// With so many tensors at most that are computed.
  EinGraph graph(std::size_t most) {
    tensors_.clear();
    stacks_.clear();
    text_ = "dims";
    for (const std::int64_t extent : extents_) {
      for (const char role : {'i', 'j', 'k'}) text_ += fmt::format(" {}={}", label(extent, role), extent);
    }
    for (const std::int64_t depth : depths_) text_ += fmt::format(" {}={}", label(depth, 'd'), depth);
    text_ += "\n";
    add_input(any(extents_), any(extents_));
    const std::size_t count = 2 + below(most - 1);
    for (std::size_t v = 0; v < count; ++v) {
      const std::string name = fmt::format("V{}", v);
      if (!depths_.empty() && below(2) == 0) {
        add_stack_vertex(name);
      } else {
        add_vertex(name);
      }
    }
    return einrel::graph_of(text_);
  }
  const std::string& text() const { return text_; }
  double real() { return static_cast<double>(random_() >> 11U) * 0x1p-53; }
  std::size_t below(std::size_t n) { return random_() % n; }

 private:
  struct Matrix {
    std::string name;
    std::int64_t rows = 1;
    std::int64_t columns = 1;
  };
  struct Stack {
    std::string name;
    std::int64_t depth = 1;
    std::int64_t rows = 1;
    std::int64_t columns = 1;
  };
  template <class Item>
  Item any(const std::vector<Item>& items) {
    return items[below(items.size())];
  }
  static std::string label(std::int64_t extent, char role) { return fmt::format("{}{}", role, extent); }

  Matrix add_input(std::int64_t rows, std::int64_t columns) {
    const Matrix matrix{fmt::format("X{}", tensors_.size()), rows, columns};
    text_ += fmt::format("input {}[{},{}] : f64\n", matrix.name, label(rows, 'i'), label(columns, 'j'));
    tensors_.push_back(matrix);
    return matrix;
  }

  /// A matrix of this form: one of those that there are, or a new input.
  template <class Fits>
  Matrix find(const Fits& fits, std::int64_t rows, std::int64_t columns) {
    std::vector<Matrix> fitting;
    for (const Matrix& matrix : tensors_) {
      if (fits(matrix)) fitting.push_back(matrix);
    }
    return fitting.empty() || below(5) == 0 ? add_input(rows, columns) : any(fitting);
  }

  void add_vertex(const std::string& name) {
    const Matrix x = any(tensors_);
    const std::string i = label(x.rows, 'i');
    const std::string j = label(x.columns, 'j');
    switch (below(5)) {
      case 0:
      case 1: {
        const Matrix y = find([&](const Matrix& m) { return m.rows == x.columns; }, x.columns, any(extents_));
        const std::string k = label(y.columns, 'k');
        text_ += fmt::format("{0}[{1},{2}] = sum[{3}] {4}[{1},{3}] * {5}[{3},{2}]\n", name, i, k, j, x.name, y.name);
        tensors_.push_back({name, x.rows, y.columns});
        return;
      }
      case 2: {
        const Matrix y =
            find([&](const Matrix& m) { return m.rows == x.rows && m.columns == x.columns; }, x.rows, x.columns);
        text_ += fmt::format("{0}[{1},{2}] = {3}[{1},{2}] + 2 * {4}[{1},{2}]\n", name, i, j, x.name, y.name);
        tensors_.push_back({name, x.rows, x.columns});
        return;
      }
      case 3:
        text_ += fmt::format("{0}[{2},{1}] = exp({3}[{1},{2}])\n", name, i, j, x.name);
        tensors_.push_back({name, x.columns, x.rows});
        return;
      default: text_ += fmt::format("{0}[{1}] = max[{2}] {3}[{1},{2}]\n", name, i, j, x.name);
    }
  }

  Stack find_stack() {
    if (!stacks_.empty() && below(3) != 0) return any(stacks_);
    const Stack stack{fmt::format("T{}", stacks_.size()), any(depths_), any(extents_), any(extents_)};
    text_ += fmt::format("input {}[{},{},{}] : f64\n", stack.name, label(stack.depth, 'd'), label(stack.rows, 'i'),
                         label(stack.columns, 'j'));
    stacks_.push_back(stack);
    return stack;
  }

  /// Computed of a stack; a stack itself but for a sum of its matrices.
  void add_stack_vertex(const std::string& name) {
    const Stack t = find_stack();
    const std::string d = label(t.depth, 'd');
    const std::string i = label(t.rows, 'i');
    const std::string j = label(t.columns, 'j');
    switch (below(4)) {
      case 0: {
        const Matrix y = find([&](const Matrix& m) { return m.rows == t.columns; }, t.columns, any(extents_));
        const std::string k = label(y.columns, 'k');
        text_ += fmt::format("{0}[{1},{2},{3}] = sum[{4}] {5}[{1},{2},{4}] * {6}[{4},{3}]\n", name, d, i, k, j, t.name,
                             y.name);
        stacks_.push_back({name, t.depth, t.rows, y.columns});
        return;
      }
      case 1: {
        const Matrix y =
            find([&](const Matrix& m) { return m.rows == t.rows && m.columns == t.columns; }, t.rows, t.columns);
        text_ += fmt::format("{0}[{1},{2},{3}] = {4}[{1},{2},{3}] + {5}[{2},{3}]\n", name, d, i, j, t.name, y.name);
        stacks_.push_back({name, t.depth, t.rows, t.columns});
        return;
      }
      case 2:
        text_ += fmt::format("{0}[{1},{3},{2}] = exp({4}[{1},{2},{3}])\n", name, d, i, j, t.name);
        stacks_.push_back({name, t.depth, t.columns, t.rows});
        return;
      default:
        text_ += fmt::format("{0}[{2},{3}] = sum[{1}] {4}[{1},{2},{3}]\n", name, d, i, j, t.name);
        tensors_.push_back({name, t.rows, t.columns});
    }
  }

  std::vector<std::int64_t> extents_;
  std::vector<std::int64_t> depths_;
  std::mt19937_64 random_;
  std::string text_;
  std::vector<Matrix> tensors_;
  std::vector<Stack> stacks_;
};

}  // namespace einrel::test
