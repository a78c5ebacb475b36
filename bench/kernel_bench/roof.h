#pragma once

#include <cstddef>
#include <cstdint>

namespace einrel::bench {

/// What this machine's cores can do at most, measured now for about a hundredth of a second each.

/// Fused multiply-adds on registers, two operations each: operations per second of all threads together, in vectors as
/// wide as the processor has. `bytes` per number: 4 (f32) or 8 (f64).
double peak_flops(std::size_t bytes, std::size_t threads);

/// memcpy of half as many bytes into memory that has been written before: bytes read and written per second, all
/// threads together, each with its part.
double copy_bandwidth(std::int64_t bytes, std::size_t threads);

/// The same into memory new from the system, as a large result is: its pages are cleared at the first touch.
double fresh_copy_bandwidth(std::int64_t bytes, std::size_t threads);

}  // namespace einrel::bench
