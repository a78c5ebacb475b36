#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace einrel {

/// Where the elements of tensors are in a file, in the order of their bytes in memory, row by row.
struct FileLayout {
  std::string front;                  ///< all bytes before the first elements
  std::vector<std::uint64_t> begins;  ///< of each tensor
  std::uint64_t bytes = 0;            ///< of the file
};

}  // namespace einrel
