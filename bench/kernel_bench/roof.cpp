#include "roof.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "base/error.h"

namespace einrel::bench {
namespace {

constexpr double measured_seconds = 0.01;

template <class Number, std::size_t bytes>
using Vector [[gnu::vector_size(bytes)]] = Number;

/// Enough independent sums to hide the latency of a multiply-add, few enough for the registers.
template <class Lanes, std::size_t sums>
[[gnu::always_inline]] inline void multiply_add(std::int64_t rounds, double* kept) {
  Lanes sum[sums];
  for (std::size_t i = 0; i < sums; ++i) sum[i] = Lanes{} + static_cast<float>(i);  // else they were one and the same
  const Lanes factor = Lanes{} + 0.5F;
  const Lanes addend = Lanes{} + 1.0F;
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (std::size_t i = 0; i < sums; ++i) sum[i] = sum[i] * factor + addend;
  }
  for (const Lanes& each : sum) *kept += static_cast<double>(each[0]);
}

/// `rounds` times so many multiply-adds, for one instruction set.
struct MultiplyAdds {
  void (*run)(std::int64_t rounds, double* kept);
  double per_round;
};

#if defined(__x86_64__)
[[gnu::target("avx512f")]] void avx512_f32(std::int64_t n, double* kept) {
  multiply_add<Vector<float, 64>, 24>(n, kept);
}
[[gnu::target("avx512f")]] void avx512_f64(std::int64_t n, double* kept) {
  multiply_add<Vector<double, 64>, 24>(n, kept);
}
[[gnu::target("avx2,fma")]] void avx2_f32(std::int64_t n, double* kept) {
  multiply_add<Vector<float, 32>, 12>(n, kept);
}
[[gnu::target("avx2,fma")]] void avx2_f64(std::int64_t n, double* kept) {
  multiply_add<Vector<double, 32>, 12>(n, kept);
}
#endif
void baseline_f32(std::int64_t n, double* kept) { multiply_add<Vector<float, 16>, 12>(n, kept); }
void baseline_f64(std::int64_t n, double* kept) { multiply_add<Vector<double, 16>, 12>(n, kept); }

MultiplyAdds widest(bool f64) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return {f64 ? avx512_f64 : avx512_f32, 24.0 * (f64 ? 8 : 16)};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {f64 ? avx2_f64 : avx2_f32, 12.0 * (f64 ? 4 : 8)};
  }
#endif
  return {f64 ? baseline_f64 : baseline_f32, 12.0 * (f64 ? 2 : 4)};
}

/// Runs `measure` on every thread, which waits at the barrier when it is ready; the sum of the rates they return.
double sum_over_threads(std::size_t threads, const std::function<double(std::barrier<>&)>& measure) {
  std::vector<double> rates(threads);
  std::barrier start(static_cast<std::ptrdiff_t>(threads));
  const auto measured = [&](std::size_t thread) { rates[thread] = measure(start); };
  {
    std::vector<std::jthread> others;
    for (std::size_t thread = 1; thread < threads; ++thread) others.emplace_back(measured, thread);
    measured(0);
  }
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

/// Calls per second, over measured_seconds.
template <class Call>
double rate_of(Call&& call) {
  const auto start = std::chrono::steady_clock::now();
  double calls = 0;
  double seconds = 0;
  do {
    call();
    ++calls;
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  } while (seconds < measured_seconds);
  return calls / seconds;
}

/// Bytes from the system, in the large pages it has for those who ask, as NumPy does.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(std::max<std::size_t>(bytes, 64)) {
    void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw RunError("no memory to measure its bandwidth");
    start_ = mapped;
    madvise(start_, bytes_, MADV_HUGEPAGE);
  }
  ~Pages() { munmap(start_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  void copy_from(const Pages& other) {
    std::memcpy(start_, other.start_, bytes_);
    asm volatile("" : : "r"(start_) : "memory");  // or the compiler leaves out copies that nobody reads
  }
  void fill() { std::memset(start_, 1, bytes_); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* start_ = nullptr;
};

std::size_t part_of(std::int64_t bytes, std::size_t threads) { return static_cast<std::size_t>(bytes) / 2 / threads; }

}  // namespace

double peak_flops(std::size_t bytes, std::size_t threads) {
  const MultiplyAdds loop = widest(bytes == sizeof(double));
  constexpr std::int64_t rounds = 4000;  // some tens of microseconds
  return sum_over_threads(threads, [&](std::barrier<>& start) {
    double kept = 0;
    start.arrive_and_wait();
    return 2 * loop.per_round * static_cast<double>(rounds) * rate_of([&] { loop.run(rounds, &kept); });
  });
}

double copy_bandwidth(std::int64_t bytes, std::size_t threads) {
  return sum_over_threads(threads, [&](std::barrier<>& start) {
    Pages from(part_of(bytes, threads));
    Pages to(from.bytes());
    from.fill();
    to.fill();
    start.arrive_and_wait();
    return 2 * static_cast<double>(from.bytes()) * rate_of([&] { to.copy_from(from); });
  });
}

double fresh_copy_bandwidth(std::int64_t bytes, std::size_t threads) {
  return sum_over_threads(threads, [&](std::barrier<>& start) {
    Pages from(part_of(bytes, threads));
    from.fill();
    start.arrive_and_wait();
    return 2 * static_cast<double>(from.bytes()) * rate_of([&] { Pages(from.bytes()).copy_from(from); });
  });
}

}  // namespace einrel::bench
