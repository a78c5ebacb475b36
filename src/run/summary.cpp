#include "run/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "base/text.h"
#include "einsum/expr/complex_function.h"
#include "kernel/elementwise/row_folds.h"
#include "tensor/convert.h"
#include "tensor/rows.h"

namespace einrel {

namespace {

/// Takes elements one after the other and adds up some thousand at a time, in vectors. How depends on their numbers
/// alone, so that a tensor gives the same bits however it is stored. T: float, or double for what float does not hold.
template <class T>
class Accumulation {
 public:
  /// `copy` puts the elements [first, first + count) of what is taken somewhere.
  template <class Copy>
  void take(std::int64_t count, Copy&& copy) {
    for (std::int64_t i = 0; i < count;) {
      const std::int64_t taken = std::min(count - i, static_cast<std::int64_t>(waiting_.size() - filled_));
      copy(i, taken, waiting_.data() + filled_);
      i += taken;
      filled_ += static_cast<std::size_t>(taken);
      if (filled_ == waiting_.size()) add();
    }
  }

  /// Of `count` elements, which have all been taken.
  Summary finish(std::int64_t count) {
    add();
    // Which of two zeros an extreme is depends on its lane: it is the one without a sign.
    Summary summary{static_cast<double>(min_) + 0.0, static_cast<double>(max_) + 0.0, 0, sum_};
    if (count == 0) summary.min = summary.max = std::numeric_limits<double>::quiet_NaN();
    summary.mean = sum_ / static_cast<double>(count);
    return summary;
  }

 private:
  void add() {
    if (filled_ == 0) return;
    add_row_sums(waiting_.data(), 1, filled_, &sum_);
    take_row_extremes(false, waiting_.data(), 1, filled_, &min_);
    take_row_extremes(true, waiting_.data(), 1, filled_, &max_);
    filled_ = 0;
  }

  std::array<T, 4096> waiting_{};
  std::size_t filled_ = 0;
  T min_ = std::numeric_limits<T>::infinity();
  T max_ = -std::numeric_limits<T>::infinity();
  double sum_ = 0;
};

template <class Stored>
using Taken = std::conditional_t<std::is_same_v<Stored, float>, float, double>;

}  // namespace

Summary summarize(const Tensor& tensor) {
  return with_stored_type(tensor.dtype(), [&]<class Stored>() {
    using T = Taken<Stored>;
    Accumulation<T> all;
    for_each_row(tensor.shape(), tensor.strides(), [&](std::int64_t offset, std::int64_t count, std::int64_t stride) {
      all.take(count, [&](std::int64_t first, std::int64_t taken, T* to) {
        if (std::is_same_v<Stored, T> && stride == 1) {
          const std::int64_t begin = (offset + first) * static_cast<std::int64_t>(sizeof(T));
          std::memcpy(to, tensor.data() + begin, static_cast<std::size_t>(taken) * sizeof(T));
          return;
        }
        for (std::int64_t i = 0; i < taken; ++i) {
          to[i] = static_cast<T>(widen(tensor.load<Stored>(offset + (first + i) * stride)));
        }
      });
    });
    Summary summary = all.finish(tensor.count());
    if constexpr (std::is_same_v<Stored, std::int64_t>) {
      if (tensor.shape().empty()) summary.integer = tensor.load<Stored>(0);
    }
    return summary;
  });
}

namespace {

/// The sign of a NaN says nothing, and some operations set it.
double unsigned_nan(double value) { return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value; }

/// The shortest decimal that rounds to this value of the type.
template <class Stored>
std::string shortest(double value) {
  for (int digits = 1; digits < std::numeric_limits<double>::max_digits10; ++digits) {
    const double rounded = std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
    if (static_cast<double>(widen(narrow<Stored>(rounded))) != value) continue;
    return fmt::format("{:.{}g}", rounded, std::max(digits, 6));  // 400, not 4e+02
  }
  return fmt::format("{:.{}g}", value, std::numeric_limits<double>::max_digits10);
}

}  // namespace

std::string scalar_text(DType dtype, const Summary& scalar) {
  if (dtype == DType::i64) return fmt::format("{}", scalar.integer);
  if (!is_float(dtype)) return fmt::format("{:.0f}", scalar.sum);
  const double value = unsigned_nan(scalar.sum);  // a number: its sum is itself
  return with_stored_type(dtype, [&]<class Stored>() { return shortest<Stored>(value); });
}

std::string summary_line(const std::string& name, DType dtype, const Shape& shape, const Summary& summary) {
  if (shape.empty()) return fmt::format("{}  {}  {}", name, name_of(dtype), scalar_text(dtype, summary));
  return fmt::format("{}  {} {}  min {:.6g}  max {:.6g}  mean {:.6g}  sum {:.9g}", name, name_of(dtype),
                     to_string(shape), unsigned_nan(summary.min), unsigned_nan(summary.max), unsigned_nan(summary.mean),
                     unsigned_nan(summary.sum));
}

std::string complex_summary_line(const std::string& name, DType parts, const Shape& shape, const Summary& summary) {
  const Shape own(shape.begin(), shape.end() - 1);
  return fmt::format("{}  {} {}  parts min {:.6g}  max {:.6g}  mean {:.6g}  sum {:.9g}", name, name_of_complex(parts),
                     to_string(own), unsigned_nan(summary.min), unsigned_nan(summary.max), unsigned_nan(summary.mean),
                     unsigned_nan(summary.sum));
}

std::string runs_line(const std::vector<double>& seconds) {
  std::vector<std::string> texts;
  for (const double of_one : seconds) texts.push_back(seconds_text(of_one));
  return fmt::format("{}: {}", counted(seconds.size(), "run"), fmt::join(texts, ", "));
}

std::string steps_line(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  const double all = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return fmt::format("{}: {}, {} each (median)", counted(seconds.size(), "step"), seconds_text(all),
                     seconds_text(*middle));
}

}  // namespace einrel
