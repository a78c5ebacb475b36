#pragma once

#include <cstdint>
#include <vector>

#include "ia/ia_program.h"

namespace einrel {

/// Bytes between sites.
struct Traffic {
  std::vector<std::int64_t> received;  ///< per site
  std::vector<std::int64_t> sent;      ///< per site
  std::int64_t total = 0;              ///< of all sites received, which is what all sent
};

/// What each site receives when the plan runs, exactly: an operation delivers a tuple to a site once, and not to a site
/// that has it already; a Repart delivers what chunks have in common, and not to a site that has the old chunk. The
/// site with the smallest number of those that have a tuple sends it. Of partial aggregates every tuple is a value of
/// its own. Throws UserError when a sum needs more than 63 bits, Bug when the plan is faulty.
/// O(tuples and pieces delivered + nodes * sites).
Traffic bytes_of(const IaStore& store, const IaPlan& plan);

}  // namespace einrel
