#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "sql/functions/array_bytes.h"
#include "sql/functions/functions.h"

namespace {

using namespace einrel;

/// As a chunk of a table: an array whose bytes are these, and whose head says the same, or a UserError.
void read_array(std::span<const std::byte> bytes) {
  Tensor array;
  try {
    array = sql::array_in(bytes);
  } catch (const UserError&) {
    return;
  }
  const std::vector<std::byte> again = sql::array_bytes(array);
  invariant(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()), "written as it was read");
  const std::size_t head = std::min(bytes.size(), sql::array_head_bytes(sql::most_dimensions));
  if (array.rank() > sql::most_dimensions) return;
  const sql::ArrayHead found = sql::head_in(bytes.first(head), bytes.size());
  invariant(found.dtype == array.dtype() && found.shape == array.shape(), "the head is that of the array");
}

/// As what one process of a database has of an aggregate, in the same way.
void read_state(std::span<const std::byte> bytes) {
  try {
    const auto [text, arrays] = sql::read_stored(bytes);
    const std::vector<std::byte> again = sql::stored(text, arrays);
    invariant(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()), "stored as it was read");
  } catch (const UserError&) {
  }
}

}  // namespace

/// Any bytes in place of those that a database hands over.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  read_array(bytes);
  read_state(bytes);
  return 0;
}
