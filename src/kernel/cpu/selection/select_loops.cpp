#include "kernel/cpu/selection/select_loops.h"

#include "kernel/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cpu/selection/select_loops.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::selecting::HWY_NAMESPACE {
namespace {

void add_floats(const float* from, std::int64_t count, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(from[i]);
}
void add_doubles(const double* from, std::int64_t count, double* sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += from[i];
}

void add_products(const std::int64_t* values, std::int64_t factor, std::int64_t count, std::int64_t* sums) {
  for (std::int64_t i = 0; i < count; ++i) {
    sums[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sums[i]) +
                                        static_cast<std::uint64_t>(values[i]) * static_cast<std::uint64_t>(factor));
  }
}

void find_outside(const std::int64_t* positions, std::int64_t extent, std::int64_t count, std::int64_t* is_outside,
                  std::int64_t* inside) {
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t outside = positions[i] < 0 || positions[i] >= extent ? -1 : 0;
    is_outside[i] |= outside;
    inside[i] = positions[i] & ~outside;
  }
}

}  // namespace
}  // namespace einrel::selecting::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace einrel::selecting {
namespace {

HWY_EXPORT(add_floats);
HWY_EXPORT(add_doubles);
HWY_EXPORT(add_products);
HWY_EXPORT(find_outside);

}  // namespace

void add_row(const float* from, std::int64_t count, double* sums) {
  HWY_DYNAMIC_DISPATCH(add_floats)(from, count, sums);
}
void add_row(const double* from, std::int64_t count, double* sums) {
  HWY_DYNAMIC_DISPATCH(add_doubles)(from, count, sums);
}
void add_scaled(const std::int64_t* values, std::int64_t factor, std::int64_t count, std::int64_t* sums) {
  HWY_DYNAMIC_DISPATCH(add_products)(values, factor, count, sums);
}
void note_outside(const std::int64_t* positions, std::int64_t extent, std::int64_t count, std::int64_t* is_outside,
                  std::int64_t* inside) {
  HWY_DYNAMIC_DISPATCH(find_outside)(positions, extent, count, is_outside, inside);
}

}  // namespace einrel::selecting
#endif
