#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tensor/tensor.h"

namespace einrel::bench {

using Json = nlohmann::json;

/// One computation on inputs it holds, into a new result.
using Compute = std::function<Tensor()>;

/// Seconds of `repeats` calls, results dropped.
double seconds_of(const Compute& compute, std::int64_t repeats);

/// A computation and how often a sample repeats it.
class Timed {
 public:
  /// Calls it, shows the first result to `look`, and goes on until it is known how many calls take sample_seconds;
  /// a first call that takes long is the only one.
  explicit Timed(
      Compute compute, const std::function<void(const Tensor&)>& look = [](const Tensor&) {});

  /// Of the very first call, with cold caches.
  double first_seconds() const { return first_seconds_; }
  /// Seconds per call over at least sample_seconds; short ones are called once before to warm the caches.
  double sample() const;

 private:
  Compute compute_;
  double first_seconds_ = 0;
  std::int64_t repeats_ = 1;
};

/// The largest difference relative to the largest finite value of `expected`; infinite when shapes differ or when
/// NaNs or infinities stand elsewhere.
double difference(const Tensor& got, const Tensor& expected);

using Handlers = std::map<std::string, std::function<Json(const Json&)>>;
/// Reads requests from standard input, one JSON object a line, and answers each with one line: what the handler named
/// by its "do" returns, or {"error": ...}. Returns at the end of the input.
void serve(const Handlers& handlers);

}  // namespace einrel::bench
