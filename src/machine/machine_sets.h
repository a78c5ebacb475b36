#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "machine/machine.h"

namespace einrel {

/// A machine with all that is known of it: one set of figures for any number of ranks, or one for each number that they
/// were measured on, since ranks share what a node has: by rising numbers, none twice. All have its name and its sites.
struct MachineSets {
  std::vector<Machine> sets;
  bool operator==(const MachineSets&) const = default;
};

inline constexpr std::size_t most_machine_sets = 256;

/// The figures for plans on so many sites, as many as the machine has where nobody says: those of as many ranks, else
/// of the nearest number, of two as near the smaller. One rank has no network, so that the figures of one are taken
/// for several sites only where there are no others.
Machine figures_for(const MachineSets& machine, std::optional<std::int64_t> sites);

/// With these figures, whose `ranks` is not 0, in place of those of as many ranks; what is for any number, which nobody
/// would ask any more, they replace with its name and its sites. Throws UserError when there are too many.
MachineSets with_figures(MachineSets machine, Machine measured);

}  // namespace einrel
