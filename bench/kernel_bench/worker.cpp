#include "worker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <iostream>
#include <limits>

namespace einrel::bench {
namespace {

constexpr double sample_seconds = 0.02;
/// A call that takes this long is its own warm-up.
constexpr double long_seconds = 0.1;

}  // namespace

double seconds_of(const Compute& compute, std::int64_t repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < repeats; ++i) compute();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Timed::Timed(Compute compute, const std::function<void(const Tensor&)>& look) : compute_(std::move(compute)) {
  const auto start = std::chrono::steady_clock::now();
  const Tensor first = compute_();
  first_seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  look(first);
  if (first_seconds_ > long_seconds) return;
  double seconds = seconds_of(compute_, 1);
  for (std::int64_t tried = 1; seconds < sample_seconds; seconds = seconds_of(compute_, tried)) {
    const double wanted = sample_seconds / std::max(seconds, 1e-9) * static_cast<double>(tried);
    tried = std::min(static_cast<std::int64_t>(wanted) + 1, 64 * tried);
    repeats_ = tried;
  }
}

double Timed::sample() const {
  if (repeats_ > 1) compute_();
  return seconds_of(compute_, repeats_) / static_cast<double>(repeats_);
}

double difference(const Tensor& got, const Tensor& expected) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (got.shape() != expected.shape()) return infinite;
  const std::vector<double> a = values_of(got);
  const std::vector<double> b = values_of(expected);
  double largest = 0;
  double scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (!same && !(std::isfinite(a[i]) && std::isfinite(b[i]))) return infinite;
    if (!same) largest = std::max(largest, std::abs(a[i] - b[i]));
    if (std::isfinite(b[i])) scale = std::max(scale, std::abs(b[i]));
  }
  return largest == 0 ? 0 : largest / scale;
}

void serve(const Handlers& handlers) {
  for (std::string line; std::getline(std::cin, line);) {
    Json reply;
    try {
      const Json request = Json::parse(line);
      reply = handlers.at(request.at("do").get<std::string>())(request);
    } catch (const std::exception& failure) {
      reply = {{"error", failure.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
}

}  // namespace einrel::bench
