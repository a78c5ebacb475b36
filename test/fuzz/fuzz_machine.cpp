#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "machine/machines.h"

/// Any bytes as a machine's file: a machine that reads the same when written and read again, has figures for any number
/// of sites and takes new ones; or a UserError.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace einrel;
  try {
    const MachineSets machine = parse_machine({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    const std::string text = to_json(machine);
    invariant(to_json(parse_machine(text, "written.json")) == text, "a machine that is written is the same when read");
    for (const Machine& set : machine.sets) {
      invariant(set.ranks == 0 || figures_for(machine, set.ranks) == set, "as many ranks have their own figures");
    }
    for (const std::int64_t ranks : {1, 2, 3, 65536}) {
      const MachineSets more = with_figures(machine, {.about = "new", .ranks = ranks});
      invariant(parse_machine(to_json(more), "written.json") == more, "so is one with new figures");
      invariant(figures_for(more, ranks).about == "new", "new figures are those of their number of ranks");
    }
  } catch (const UserError&) {
  }
  return 0;
}
