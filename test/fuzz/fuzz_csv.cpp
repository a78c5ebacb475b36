#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "tensor/csv.h"

/// Any bytes as a table: read to the last element, or a UserError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einrel;
  const FileBytes file{"fuzz.csv", std::as_bytes(std::span(data, size)), nullptr};
  for (const char* const columns : {"", "1", "1..2", "a"}) {
    for (const DType dtype : {DType::f32, DType::i64}) {
      try {
        values_of(parse_csv(file, columns, dtype));
      } catch (const UserError&) {
      }
    }
  }
  return 0;
}
