// Times every loop over blocks, on data in the first-level cache, and every reduction also on data from memory: time
// per value.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "kernel/elementwise/accumulate.h"
#include "kernel/elementwise/block_ops.h"

namespace einrel {
namespace {

template <class T>
std::vector<T> random_values(std::size_t count) {
  std::vector<T> all(count);
  std::uint32_t state = 1;
  for (T& value : all) {
    state = state * 1664525U + 1013904223U;
    const double uniform = static_cast<double>(state >> 8U) / (1U << 24U);  // in [0, 1)
    value = static_cast<T>(std::is_integral_v<T> ? uniform * 1000 - 500 : uniform * 8 - 4);
  }
  return all;
}

template <class T>
constexpr DType dtype_of = std::is_same_v<T, float>    ? DType::f32
                           : std::is_same_v<T, double> ? DType::f64
                                                       : DType::i64;

template <class T>
std::string name_of_type() {
  return std::string(name_of(dtype_of<T>));
}

/// Calls `work`, which handles `count` values, again and again.
template <class Work>
void time(const std::string& name, std::size_t count, Work work) {
  benchmark::RegisterBenchmark(name.c_str(), [count, work](benchmark::State& state) {
    for (auto _ : state) {
      work();
      benchmark::ClobberMemory();
    }
    const auto total = static_cast<double>(state.iterations()) * static_cast<double>(count);
    state.counters["per_value"] = benchmark::Counter(total, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  });
}

template <class T>
struct Block {
  alignas(64) std::array<T, lanes_per_block> values{};
};

/// Random values, kept until the program ends.
template <class T>
T* block() {
  static std::deque<Block<T>> kept;
  std::ranges::copy(random_values<T>(lanes_per_block), kept.emplace_back().values.begin());
  return kept.back().values.data();
}

constexpr std::size_t n = lanes_per_block;

template <class T>
void time_functions() {
  T* const x = block<T>();
  T* const y = block<T>();
  T* const z = block<T>();
  std::int64_t* const c = block<std::int64_t>();
  const std::string type = name_of_type<T>();
  T* const positive = block<T>();
  apply_block(UnaryFunction::abs, x, positive, n);
  for (int f = 0; f <= static_cast<int>(UnaryFunction::floor); ++f) {
    const auto function = static_cast<UnaryFunction>(f);
    if (std::is_integral_v<T> && !keeps_integers(function)) continue;
    if (function == UnaryFunction::log || function == UnaryFunction::log1p) {
      time(type + " " + std::string(name_of(function)) + " positive", n,
           [=] { apply_block(function, positive, z, n); });
    }
    time(type + " " + std::string(name_of(function)), n, [=] { apply_block(function, x, z, n); });
  }
  for (int f = 0; f <= static_cast<int>(BinaryFunction::minimum); ++f) {
    const auto function = static_cast<BinaryFunction>(f);
    if (std::is_integral_v<T> && function == BinaryFunction::divide) continue;
    time(type + " binary " + std::string(name_of(function)), n,
         [=] { is_comparison(function) ? compare_block(function, x, y, c, n) : apply_block(function, x, y, z, n); });
  }
  time(type + " where", n, [=] { select_block(c, x, y, z, n); });
}

template <class From, class To>
void time_conversion(DType to) {
  const From* const x = block<From>();
  To* const z = block<To>();
  time(name_of_type<From>() + " to " + std::string(name_of(to)), n, [=] { convert_block(to, x, z, n); });
}

template <class T>
void time_memory(DType stored, std::int64_t step) {
  const std::size_t bytes = n * static_cast<std::size_t>(step) * size_of(stored);
  const auto memory = std::make_shared<std::vector<std::byte>>(bytes);
  T* const x = block<T>();
  store_block(stored, x, memory->data(), step, n);
  const std::string what = std::string(name_of(stored)) + " step " + std::to_string(step);
  time("load " + what, n, [=] {
    const ElementSpan span{0, 0, n};
    load_block(stored, memory->data(), &span, 1, step, x);
  });
  time("store " + what, n, [=] { store_block(stored, x, memory->data(), step, n); });
}

template <class T>
void time_reductions() {
  constexpr std::size_t large = std::size_t{1} << 24U;
  const T* const in_cache = block<T>();
  static const std::vector<T> in_memory = random_values<T>(large);
  for (int r = 0; r <= static_cast<int>(Reducer::logsumexp); ++r) {
    const auto reducer = static_cast<Reducer>(r);
    const std::string name = name_of_type<T>() + " " + std::string(name_of(reducer));
    const auto accumulators = std::make_shared<Accumulators>(reducer, dtype_of<T>);
    time("add " + name, n * 16, [=] {
      accumulators->start({0, n});
      for (std::int64_t i = 0; i < 16; ++i) accumulators->add(in_cache, {0, n}, 1, i);
    });
    time("fold " + name, n * 16, [=] {
      accumulators->start({0, 1});
      for (std::int64_t i = 0; i < 16; ++i) accumulators->fold(in_cache, {0, 1}, n, i * static_cast<std::int64_t>(n));
    });
    time("memory " + name, large, [=] {
      accumulators->start({0, 1});
      for (std::size_t i = 0; i < large; i += n) {
        accumulators->fold(in_memory.data() + i, {0, 1}, n, static_cast<std::int64_t>(i));
      }
    });
  }
}

void time_everything() {
  time_functions<float>();
  time_functions<double>();
  time_functions<std::int64_t>();
  time_conversion<float, double>(DType::f64);
  time_conversion<double, float>(DType::f32);
  for (const DType to : {DType::i32, DType::i64, DType::boolean}) {
    time_conversion<float, std::int64_t>(to);
    time_conversion<double, std::int64_t>(to);
    time_conversion<std::int64_t, std::int64_t>(to);
  }
  time_conversion<std::int64_t, float>(DType::f32);
  time_conversion<std::int64_t, double>(DType::f64);
  for (const std::int64_t step : {1, 2, 3, 4, 8, 1000}) {
    for (const DType stored : {DType::f32, DType::bf16, DType::f16}) time_memory<float>(stored, step);
    time_memory<double>(DType::f64, step);
    for (const DType stored : {DType::i32, DType::i64, DType::boolean}) time_memory<std::int64_t>(stored, step);
  }
  time_reductions<float>();
  time_reductions<double>();
  time_reductions<std::int64_t>();
}

}  // namespace
}  // namespace einrel

int main(int argc, char** argv) {
  einrel::time_everything();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
