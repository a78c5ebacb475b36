#include "exec/job/byte_matrix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/executors/starpu/session.h"

namespace einrel::test {
namespace {

/// None of them has any memory: it is StarPU's arithmetic that this is about.
TEST(RegisteredBytes, AreAsManyAsAskedForAlsoBeyond32Bits) {
  const StarpuSession session({1, {}, {}}, {});
  constexpr std::int64_t gigabyte = std::int64_t{1} << 30;
  constexpr std::int64_t prime = 2'147'483'659;
  constexpr std::int64_t large_prime = 4'294'967'311;
  for (const std::int64_t bytes : {std::int64_t{0}, std::int64_t{1}, gigabyte - 1, gigabyte, gigabyte + 1,
                                   264'000 * std::int64_t{32768}, 12 * gigabyte, prime, 4 * large_prime}) {
    starpu_data_handle_t handle = register_bytes(bytes);
    const auto* const matrix =
        static_cast<starpu_matrix_interface*>(starpu_data_get_interface_on_node(handle, STARPU_MAIN_RAM));
    const bool has_divisors = bytes % prime != 0 && bytes % large_prime != 0;
    const std::int64_t most_more = bytes > 0 && !has_divisors ? 16 : 0;
    const auto size = static_cast<std::int64_t>(starpu_data_get_size(handle));
    EXPECT_GE(size, std::max<std::int64_t>(1, bytes));
    EXPECT_LE(size, std::max<std::int64_t>(1, bytes + most_more));
    EXPECT_LE(matrix->elemsize, static_cast<std::size_t>(gigabyte));
    EXPECT_LE(matrix->ny, INT32_MAX);
    starpu_data_unregister(handle);
  }
}

TEST(RegisteredBytes, OfMemoryThatIsThereAreExactlyThese) {
  const StarpuSession session({1, {}, {}}, {});
  const std::vector<std::byte> memory(1000);
  starpu_data_handle_t handle = register_bytes_at(memory.data(), 1000);
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(starpu_data_get_local_ptr(handle), memory.data());
  EXPECT_EQ(starpu_data_get_size(handle), 1000U);
  starpu_data_unregister(handle);
  EXPECT_EQ(register_bytes_at(memory.data(), 0), nullptr);
  constexpr std::int64_t prime = 2'147'483'659;
  EXPECT_EQ(register_bytes_at(memory.data(), prime), nullptr);
}

}  // namespace
}  // namespace einrel::test
