#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "machine/machines.h"

/// Any bytes as a machine's file: a machine that reads the same when written and read again, or a UserError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einrel;
  try {
    const Machine machine = parse_machine({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    const std::string text = to_json(machine);
    invariant(to_json(parse_machine(text, "written.json")) == text, "a machine that is written is the same when read");
  } catch (const UserError&) {
  }
  return 0;
}
