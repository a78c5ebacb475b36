// The loops of select_loops.h. Included by exact_loops.cpp once for each instruction set.

#include <cstdint>

#include "kernel/movement/select_loops.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

template <class T>
void add_row(const T* from, std::int64_t count, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(from[i]);
}

void add_scaled(const std::int64_t* values, std::int64_t factor, std::int64_t count, std::int64_t* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    sums[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sums[i]) +
                                        static_cast<std::uint64_t>(values[i]) * static_cast<std::uint64_t>(factor));
  }
}

void note_outside(const std::int64_t* positions, std::int64_t extent, std::int64_t count, std::int64_t* is_outside,
                  std::int64_t* inside) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t outside = positions[i] < 0 || positions[i] >= extent ? -1 : 0;
    is_outside[i] |= outside;
    inside[i] = positions[i] & ~outside;
  }
}

constexpr SelectLoops all_select_loops{{add_row<float>, add_row<double>}, add_scaled, note_outside};

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
