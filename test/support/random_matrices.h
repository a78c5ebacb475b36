#pragma once

#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "support/program.h"

namespace einrel::test {

/// Random programs of a few matrix computations, whose tensors are read several times.
class RandomMatrices {
 public:
  explicit RandomMatrices(std::uint64_t seed) : random_(seed) {}

  /// With so many tensors at most that are computed.
  EinGraph graph(std::size_t most) {
    tensors_.clear();
    text_ = "dims";
    for (const std::int64_t extent : extents_) {
      for (const char role : {'i', 'j', 'k'}) text_ += fmt::format(" {}={}", label(extent, role), extent);
    }
    text_ += "\n";
    add_input(any(extents_), any(extents_));
    const std::size_t count = 2 + below(most - 1);
    for (std::size_t v = 0; v < count; ++v) add_vertex(fmt::format("V{}", v));
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

  std::vector<std::int64_t> extents_{1, 5, 12, 30};
  std::mt19937_64 random_;
  std::string text_;
  std::vector<Matrix> tensors_;
};

}  // namespace einrel::test
