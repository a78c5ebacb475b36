#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "tensor/npz.h"

/// Any bytes as an .npz file: every tensor read to the last element, or a UserError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einrel;
  try {
    const NpzFile npz = parse_npz({"fuzz.npz", std::as_bytes(std::span(data, size)), nullptr});
    for (std::size_t i = 0; i < npz.names.size(); ++i) {
      try {
        values_of(read(open_tensor(npz, i)));
      } catch (const UserError&) {
      }
    }
  } catch (const UserError&) {
  }
  return 0;
}
