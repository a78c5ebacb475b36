#include "support/only_target.h"

// clang-format off: before anything of Highway.
#include "kernel/targets.h"
// clang-format on

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "kernel/products/pack_ops.h"

namespace einrel::test {
namespace {

/// A page of elements, behind which nothing may be read or written.
class Page {
 public:
  Page() : bytes_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* const mapped = mmap(nullptr, 2 * bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::runtime_error("no memory for a test");
    begin_ = static_cast<std::byte*>(mapped);
    mprotect(begin_ + bytes_, bytes_, PROT_NONE);
  }
  ~Page() { munmap(begin_, 2 * bytes_); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  /// So many elements at its end.
  template <class T>
  T* last(std::int64_t count) const {
    return reinterpret_cast<T*>(begin_ + bytes_) - count;
  }

 private:
  std::size_t bytes_;
  std::byte* begin_ = nullptr;
};

constexpr std::int64_t most_lines = 64;
constexpr std::int64_t most_count = 33;

/// Whether each element comes where it belongs, and nothing is written beside them.
template <class T>
bool transposes(const std::vector<Page>& pages, std::int64_t width, std::int64_t count, std::int64_t step) {
  std::vector<const T*> lines;
  for (std::int64_t l = 0; l < width; ++l) {
    T* const line = pages[static_cast<std::size_t>(l)].last<T>(count);
    for (std::int64_t p = 0; p < count; ++p) line[p] = static_cast<T>(100 * l + p);
    lines.push_back(line);
  }
  const T untouched = static_cast<T>(-1);
  std::vector<T> to(static_cast<std::size_t>(count * step), untouched);
  contraction::transpose_lines(lines.data(), width, count, to.data(), step);
  for (std::int64_t p = 0; p < count; ++p) {
    for (std::int64_t l = 0; l < step; ++l) {
      const T want = l < width ? static_cast<T>(100 * l + p) : untouched;
      if (to[static_cast<std::size_t>(p * step + l)] != want) return false;
    }
  }
  return true;
}

template <class T>
void expect_all_extents() {
  const std::vector<Page> pages(most_lines);
  for (std::int64_t width = 1; width <= most_lines; ++width) {
    for (std::int64_t count = 1; count <= most_count; ++count) {
      for (const std::int64_t step : {width, width + 3}) {
        ASSERT_TRUE(transposes<T>(pages, width, count, step)) << width << " lines of " << count << ", step " << step;
      }
    }
  }
}

TEST(TransposeLines, PutsEveryElementInPlaceAndTouchesNothingElseOnEveryInstructionSet) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const OnlyTarget only(target);
    SCOPED_TRACE(hwy::TargetName(target));
    expect_all_extents<float>();
    expect_all_extents<double>();
    expect_all_extents<std::int32_t>();
  }
}

}  // namespace
}  // namespace einrel::test
