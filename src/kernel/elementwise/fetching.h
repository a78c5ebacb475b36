#pragma once

#include <atomic>
#include <limits>

namespace einrel {

/// Whether a kernel brings its operands before it computes with them (BlockRun::fetch), found by trying both: on one
/// processor that halves the time, the next one foresees more and loses a fifth by it. The bits are the same.
/// May be used by several threads at a time.
class FetchingChoice {
 public:
  /// What the next part should do.
  bool fetches() const {
    constexpr int enough = 3;
    if (without_.tries < enough || with_.tries < enough) return with_.tries <= without_.tries;
    return with_.least < without_.least;
  }
  /// What a part did, and how long it took, relative to what it had to do.
  void record(bool fetched, double seconds) {
    Way& way = fetched ? with_ : without_;
    double least = way.least;
    while (seconds < least && !way.least.compare_exchange_weak(least, seconds)) {
    }
    ++way.tries;
  }

 private:
  struct Way {
    std::atomic<int> tries = 0;
    std::atomic<double> least = std::numeric_limits<double>::infinity();
  };
  Way with_;
  Way without_;
};

}  // namespace einrel
