#include "plan/transfers.h"

#include <algorithm>

#include "base/extent.h"

namespace einrel {

const std::vector<std::int64_t>& Transfers::received(const Layout& have, const Layout& need, const Shape& bound) {
  const auto [at, is_new] = known_.try_emplace({have, need, bound});
  if (is_new) at->second = elements_received(have, need, bound, sites_);
  return at->second;
}

const ReceivedSums& Transfers::sums(const Layout& have, const Layout& need, const Shape& bound) {
  const auto [at, is_new] = known_sums_.try_emplace({have, need, bound});
  if (!is_new) return at->second;
  ReceivedSums& sums = at->second;
  std::int64_t node = 0;
  std::int64_t receivers = 0;
  std::int64_t site = 0;
  for (const std::int64_t elements : elements_received(have, need, bound, sites_)) {
    if (const std::int64_t at_node = site++ / machine_.sites_per_node; at_node != node) {
      node = at_node;
      receivers = 0;
    }
    if (elements == 0) continue;
    sums.all = checked_add(sums.all, elements);
    sums.most = std::max(sums.most, elements);
    sums.receivers = std::max(sums.receivers, ++receivers);
  }
  return sums;
}

const std::vector<std::int64_t>& Transfers::crossing(const Link& link, const Layout& have, const Layout& need,
                                                     const Shape& bound) {
  const auto [at, is_new] = known_crossing_.try_emplace({link.sites, have, need, bound});
  if (is_new) at->second = elements_crossing(have, need, bound, sites_, link.sites);
  return at->second;
}

}  // namespace einrel
