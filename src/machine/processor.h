#pragma once

#include <cstdint>

namespace einrel {

/// A core, its caches, and what it costs that several cores work together. Models of seconds, sizes of what is to stay
/// in a cache and parts that are to be worth a thread are made of these figures. The defaults are a server's of today,
/// where large products and programs that read memory took about as long as models made of them say.
struct Processor {
  double flops_per_core = 5e10;  ///< scalar operations a second on f32; half as many on f64

  // Instructions.
  double cycle_seconds = 0.28e-9;
  double operations_per_cycle = 2;  ///< vector operations that begin in a cycle, and as many loads beside them
  double latency_cycles = 4;        ///< from a multiply-add to the next one that needs its result
  std::int64_t vector_bytes = 64;   ///< of the widest registers

  // Caches and memory.
  std::int64_t line_bytes = 64;                       ///< of what comes from memory or a cache at a time
  std::int64_t page_bytes = 4096;                     ///< beyond them a core does not foresee what is read
  std::int64_t first_cache = std::int64_t{32} << 10;  ///< bytes of a core's first-level cache for data
  std::int64_t first_cache_ways = 8;                  ///< lines a page apart that it holds at a time
  std::int64_t second_cache = std::int64_t{1} << 20;  ///< bytes of a core's second-level cache
  std::int64_t third_cache = std::int64_t{16} << 20;  ///< bytes that a core finds of what several share
  double fetched_line_cycles = 0.5;                   ///< to use a line that was asked for in time
  double missed_line_cycles = 5;                      ///< to use one that was not
  std::int64_t fetch_ahead = 2048;                    ///< bytes from what is read to what should be asked for
  double cache_bandwidth = 1e11;                      ///< bytes a second of one thread, from the third level
  double thread_bandwidth = 2.5e10;                   ///< the same, from memory

  // Threads.
  double call_seconds = 0.5e-6;     ///< to start a kernel call
  double hand_over_seconds = 4e-6;  ///< when the next task is another thread's: memory that it takes over, caches
  double wake_seconds = 20e-6;      ///< until a thread that sleeps is at work
  double part_seconds = 5e-5;       ///< of work, at least, to be worth another thread

  bool operator==(const Processor&) const = default;
};

/// What kernels choose, cut and model for, wherever they run: the order of additions follows from that, so one plan
/// gives the same bits on all processors with the same vector instructions. Nothing that is measured or asked of the
/// system may change it.
///
/// What stands with the kernels are figures of their own loops: nanoseconds to pack an element, cycles to set up a
/// tile, blocks that were found best by measuring on such a processor. They change with the loops.
inline constexpr Processor nominal_processor{};

}  // namespace einrel
