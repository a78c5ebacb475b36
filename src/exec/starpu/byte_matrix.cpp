#include "exec/starpu/byte_matrix.h"

#include <algorithm>

namespace einrel {
namespace {

/// The fewest rows of at most a gigabyte; rows of one element where there are none that are few.
std::int64_t rows_of(std::int64_t bytes, std::int64_t element) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30;
  constexpr std::int64_t few = 1 << 20;
  for (std::int64_t rows = std::max<std::int64_t>(1, (bytes + most_bytes - 1) / most_bytes); rows <= few; ++rows) {
    if (bytes % rows == 0) return rows;
  }
  return bytes / element;
}

}  // namespace

starpu_data_handle_t register_bytes(std::int64_t bytes, std::int64_t element) {
  const std::int64_t all = std::max<std::int64_t>(1, bytes);
  const auto rows = static_cast<std::uint32_t>(rows_of(all, element));
  starpu_data_handle_t handle = nullptr;
  starpu_matrix_data_register(&handle, -1, 0, 1, 1, rows, static_cast<std::size_t>(all / rows));
  return handle;
}

}  // namespace einrel
