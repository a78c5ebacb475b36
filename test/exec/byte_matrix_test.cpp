#include "exec/starpu/byte_matrix.h"

#include <gtest/gtest.h>

#include "exec/starpu/session.h"

namespace einrel::test {
namespace {

/// None of them has any memory: it is StarPU's arithmetic that this is about.
TEST(RegisteredBytes, AreAsManyAsAskedForAlsoBeyond32Bits) {
  const StarpuSession session({1, {}, {}}, {});
  constexpr std::int64_t gigabyte = std::int64_t{1} << 30;
  constexpr std::int64_t prime = 1'610'612'741;
  for (const std::int64_t elements : {std::int64_t{0}, std::int64_t{1}, gigabyte / 4, gigabyte / 4 + 1, gigabyte,
                                      264'000 * std::int64_t{8192}, 3 * gigabyte, prime}) {
    starpu_data_handle_t handle = register_bytes(4 * elements, 4);
    const auto* const matrix =
        static_cast<starpu_matrix_interface*>(starpu_data_get_interface_on_node(handle, STARPU_MAIN_RAM));
    EXPECT_EQ(static_cast<std::int64_t>(starpu_data_get_size(handle)), std::max<std::int64_t>(1, 4 * elements));
    EXPECT_LE(matrix->elemsize, static_cast<std::size_t>(gigabyte));
    EXPECT_LE(matrix->ny, INT32_MAX);
    starpu_data_unregister(handle);
  }
}

}  // namespace
}  // namespace einrel::test
