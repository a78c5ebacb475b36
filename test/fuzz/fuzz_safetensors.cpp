#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "tensor/safetensors.h"

/// Any bytes as a .safetensors file: every tensor read to the last element, or a UserError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einrel;
  try {
    const SafetensorsFile file = parse_safetensors({"fuzz.safetensors", std::as_bytes(std::span(data, size)), nullptr});
    for (std::size_t i = 0; i < file.names.size(); ++i) {
      try {
        values_of(read(open_tensor(file, i)));
      } catch (const UserError&) {
      }
    }
  } catch (const UserError&) {
  }
  return 0;
}
