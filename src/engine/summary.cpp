#include "engine/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace einrel {

Summary summarize(const Tensor& tensor) {
  Summary summary;
  summary.min = std::numeric_limits<double>::infinity();
  summary.max = -summary.min;
  with_stored_type(tensor.dtype(), [&]<class Stored>() {
    for_each_offset(tensor.shape(), tensor.strides(), [&](std::int64_t offset) {
      const auto value = static_cast<double>(widen(tensor.load<Stored>(offset)));
      summary.min = value < summary.min || std::isnan(value) ? value : summary.min;
      summary.max = value > summary.max || std::isnan(value) ? value : summary.max;
      summary.sum += value;
    });
  });
  if (tensor.count() == 0) summary.min = summary.max = std::numeric_limits<double>::quiet_NaN();
  summary.mean = summary.sum / static_cast<double>(tensor.count());
  // An infinity on each side sums to NaN although no element is one: only elements decide about min and max.
  if (std::isnan(summary.min) || std::isnan(summary.max))
    summary.min = summary.max = std::numeric_limits<double>::quiet_NaN();
  return summary;
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

}  // namespace einrel
