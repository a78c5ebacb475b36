#include "engine/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "tensor/rows.h"

namespace einrel {

namespace {

/// Takes elements one after the other, in several lanes: one sum, minimum and maximum would wait for each other. Which
/// lane an element is in depends on its number alone, so that a tensor gives the same bits however it is stored.
class Lanes {
 public:
  Lanes() {
    all_.min.fill(std::numeric_limits<double>::infinity());
    all_.max.fill(-std::numeric_limits<double>::infinity());
  }

  template <class Load>
  void take(std::int64_t count, Load&& load) {
    for (std::int64_t i = 0; i < count;) {
      double* const to = waiting_.data() + filled_;
      const std::int64_t taken = std::min(count - i, static_cast<std::int64_t>(waiting_.size() - filled_));
      for (std::int64_t j = 0; j < taken; ++j) to[j] = load(i + j);
      i += taken;
      filled_ += static_cast<std::size_t>(taken);
      if (filled_ == waiting_.size()) add();
    }
  }

  /// Of `count` elements, which have all been taken.
  Summary finish(std::int64_t count) {
    add();
    Summary summary{all_.min.front(), all_.max.front(), 0, 0};
    bool is_nan = count == 0;
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      summary.min = std::min(summary.min, all_.min[lane]);
      summary.max = std::max(summary.max, all_.max[lane]);
      summary.sum += all_.sum[lane];
      // An infinity on each side sums to NaN although no element is one: only elements decide about min and max.
      is_nan = is_nan || std::isnan(all_.nan[lane]);
    }
    if (is_nan) summary.min = summary.max = std::numeric_limits<double>::quiet_NaN();
    summary.mean = summary.sum / static_cast<double>(count);
    return summary;
  }

 private:
  static constexpr std::size_t lanes = 8;
  struct Values {
    std::array<double, lanes> min{};
    std::array<double, lanes> max{};
    std::array<double, lanes> sum{};
    std::array<double, lanes> nan{};  ///< 0, or NaN where an element was

    void add(std::size_t lane, double value) {
      min[lane] = value < min[lane] ? value : min[lane];
      max[lane] = value > max[lane] ? value : max[lane];
      sum[lane] += value;
      nan[lane] += std::isnan(value) ? value : 0;
    }
  };

  void add() {
    Values all = all_;
    for (std::size_t i = 0; i + lanes <= filled_; i += lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) all.add(lane, waiting_[i + lane]);
    }
    for (std::size_t i = filled_ / lanes * lanes; i < filled_; ++i) all.add(i % lanes, waiting_[i]);
    all_ = all;
    filled_ = 0;
  }

  std::array<double, 128 * lanes> waiting_{};
  std::size_t filled_ = 0;
  Values all_;
};

}  // namespace

Summary summarize(const Tensor& tensor) {
  Lanes lanes;
  with_stored_type(tensor.dtype(), [&]<class Stored>() {
    for_each_row(tensor.shape(), tensor.strides(), [&](std::int64_t offset, std::int64_t count, std::int64_t stride) {
      const auto value = [&](std::int64_t at) { return static_cast<double>(widen(tensor.load<Stored>(at))); };
      if (stride == 1)
        lanes.take(count, [&](std::int64_t i) { return value(offset + i); });
      else
        lanes.take(count, [&](std::int64_t i) { return value(offset + i * stride); });
    });
  });
  return lanes.finish(tensor.count());
}

namespace {

/// The sign of a NaN says nothing, and some operations set it.
double unsigned_nan(double value) { return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value; }

}  // namespace

std::string summary_line(const std::string& name, const Tensor& tensor) {
  return summary_line(name, tensor.dtype(), tensor.shape(), summarize(tensor));
}

std::string summary_line(const std::string& name, DType dtype, const Shape& shape, const Summary& summary) {
  return fmt::format("{}  {} {}  min {:.6g}  max {:.6g}  mean {:.6g}  sum {:.9g}", name, name_of(dtype),
                     to_string(shape), unsigned_nan(summary.min), unsigned_nan(summary.max), unsigned_nan(summary.mean),
                     unsigned_nan(summary.sum));
}

std::string runs_line(const std::vector<double>& seconds) {
  std::vector<std::string> texts;
  for (const double of_one : seconds) texts.push_back(seconds_text(of_one));
  return fmt::format("{}: {}", counted(seconds.size(), "run"), fmt::join(texts, ", "));
}

}  // namespace einrel
