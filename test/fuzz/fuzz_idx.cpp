#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "tensor/idx.h"

/// Any bytes as an .idx and as an .idx.gz file: read to the last element, or a UserError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einrel;
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const bool is_compressed : {false, true}) {
    try {
      const FileBytes file{"fuzz.idx", bytes, nullptr};
      values_of(read(is_compressed ? parse_idx_gz(file) : parse_idx(file)));
    } catch (const UserError&) {
    }
  }
  return 0;
}
