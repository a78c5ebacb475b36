#include "exec/job/byte_matrix.h"

#include <algorithm>

namespace einrel {
namespace {

/// The fewest rows of at most a gigabyte that are equally long; where none of few are, the last one is a few bytes
/// short.
std::int64_t rows_of(std::int64_t bytes) {
  constexpr std::int64_t most_bytes = std::int64_t{1} << 30;  // StarPU and MPI count some bytes in 32 bits
  constexpr std::int64_t few = 1 << 20;
  const std::int64_t fewest = (bytes + most_bytes - 1) / most_bytes;
  for (std::int64_t rows = fewest; rows <= few; ++rows) {
    if (bytes % rows == 0) return rows;
  }
  return fewest;
}

}  // namespace

starpu_data_handle_t register_bytes(std::int64_t bytes) {
  const std::int64_t all = std::max<std::int64_t>(1, bytes);
  const std::int64_t rows = rows_of(all);
  starpu_data_handle_t handle = nullptr;
  starpu_matrix_data_register(&handle, -1, 0, 1, 1, static_cast<std::uint32_t>(rows),
                              static_cast<std::size_t>((all + rows - 1) / rows));
  return handle;
}

starpu_data_handle_t register_bytes_at(const std::byte* memory, std::int64_t bytes) {
  const std::int64_t rows = rows_of(std::max<std::int64_t>(1, bytes));
  if (bytes == 0 || bytes % rows != 0) return nullptr;
  starpu_data_handle_t handle = nullptr;
  starpu_matrix_data_register(&handle, STARPU_MAIN_RAM, reinterpret_cast<std::uintptr_t>(memory), 1, 1,
                              static_cast<std::uint32_t>(rows), static_cast<std::size_t>(bytes / rows));
  return handle;
}

}  // namespace einrel
