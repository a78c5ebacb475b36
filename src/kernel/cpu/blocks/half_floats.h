#pragma once

#include <cstddef>

namespace einrel {

/// z[i] = the i-th of n f16 values that lie side by side at `halves`, at any alignment.
void widen_halves(const std::byte* halves, float* z, std::size_t n);

/// The other way, rounded to nearest.
void narrow_to_halves(const float* x, std::byte* halves, std::size_t n);

}  // namespace einrel
