#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace einrel {

/// A tensor in a few numbers, computed in double. NaN in any element makes all four NaN; over nothing, min, max and
/// mean are NaN.
struct Summary {
  double min = 0;
  double max = 0;
  double mean = 0;
  double sum = 0;
  std::int64_t integer = 0;  ///< of a scalar in i64: itself, which a double may not hold
};

Summary summarize(const Tensor& tensor);

/// A scalar in as few digits as read back as the same value of its type: "0.1", "9007199254740993", "nan".
std::string scalar_text(DType dtype, const Summary& scalar);

/// "Z  f32 (2, 3)  min -1  max 2  mean 0.5  sum 3"; of a scalar "loss  f32  0.5".
std::string summary_line(const std::string& name, DType dtype, const Shape& shape, const Summary& summary);

/// The same of complex numbers, of whose parts the summary is: "Z  c64 (2, 3)  parts min -1  max 2  mean 0.5  sum 3".
std::string complex_summary_line(const std::string& name, DType parts, const Shape& shape, const Summary& summary);

/// "2 runs: 912 ms, 310 ms": how long each took.
std::string runs_line(const std::vector<double>& seconds);
/// "100 steps: 310 ms, 3.1 ms each (median)": how long they took together, and one of them.
std::string steps_line(std::vector<double> seconds);

}  // namespace einrel
