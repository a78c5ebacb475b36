#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/error.h"
#include "tensor/bytes.h"
#include "tensor/npy.h"

namespace {

using namespace einrel;

std::string as_npy(const Tensor& tensor) {
  std::string written;
  write_npy(tensor, [&](std::span<const std::byte> bytes) { written += as_text(bytes); });
  return written;
}

}  // namespace

/// Any bytes as an .npy file: a UserError, or a tensor that is the same after writing and reading it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string written;
  try {
    written = as_npy(read(parse_npy({"fuzz.npy", std::as_bytes(std::span(data, size)), nullptr})));
  } catch (const UserError&) {
    return 0;
  }
  invariant(as_npy(read(parse_npy({"again.npy", as_byte_span(written), nullptr}))) == written,
            "written as it was read");
  return 0;
}
