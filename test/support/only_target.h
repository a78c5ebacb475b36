#pragma once

// clang-format off: before anything of Highway.
#include "kernel/targets.h"
// clang-format on

#include <cstdint>

#include "hwy/targets.h"

namespace einrel::test {

/// Lets kernels see a processor with one instruction set, until the end of the scope.
class OnlyTarget {
 public:
  explicit OnlyTarget(std::int64_t target) { set(target); }
  ~OnlyTarget() { set(0); }
  OnlyTarget(const OnlyTarget&) = delete;
  OnlyTarget& operator=(const OnlyTarget&) = delete;

 private:
  static void set(std::int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().DeInit();
  }
};

}  // namespace einrel::test
