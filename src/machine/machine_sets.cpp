#include "machine/machine_sets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace einrel {

Machine figures_for(const MachineSets& machine, std::optional<std::int64_t> sites) {
  const std::int64_t wanted = sites.value_or(machine.sets.front().sites);
  const auto distance = [&](const Machine& set) {
    const bool is_without_network = set.ranks == 1 && wanted > 1;
    return std::tuple(is_without_network, std::abs(set.ranks - wanted));
  };
  return *std::min_element(machine.sets.begin(), machine.sets.end(),
                           [&](const Machine& a, const Machine& b) { return distance(a) < distance(b); });
}

MachineSets with_figures(MachineSets machine, Machine measured) {
  std::vector<Machine>& sets = machine.sets;
  if (sets.front().ranks == 0) return {{std::move(measured)}};
  measured.name = sets.front().name;
  measured.sites = sets.front().sites;
  const auto place = std::lower_bound(sets.begin(), sets.end(), measured.ranks,
                                      [](const Machine& set, std::int64_t ranks) { return set.ranks < ranks; });
  if (place != sets.end() && place->ranks == measured.ranks) {
    *place = std::move(measured);
    return machine;
  }
  if (sets.size() == most_machine_sets)
    throw UserError(
        fmt::format("machine '{}' has figures of {} numbers of ranks, the most that are kept; remove some of "
                    "'measured' from its file",
                    printable(measured.name), sets.size()));
  sets.insert(place, std::move(measured));
  return machine;
}

}  // namespace einrel
