#pragma once

#include <starpu.h>

#include <cstddef>
#include <cstdint>

namespace einrel {

/// So many bytes without memory yet, as StarPU's matrix of one column whose elements are rows of bytes: several rows
/// where one would be too long for MPI's 31 bits. Any two of the lengths that StarPU knows are multiplied in 32 bits,
/// the element's size is not. Above a gigabyte, numbers that no small one divides become as many more as there are
/// rows, at most. To be unregistered by the caller.
starpu_data_handle_t register_bytes(std::int64_t bytes);

/// The same of bytes that lie there and are only read; null for one of those numbers.
starpu_data_handle_t register_bytes_at(const std::byte* memory, std::int64_t bytes);

}  // namespace einrel
