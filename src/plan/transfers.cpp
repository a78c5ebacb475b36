#include "plan/transfers.h"

namespace einrel {

const std::vector<std::int64_t>& Transfers::received(const Layout& have, const Layout& need, const Shape& bound) {
  const auto [at, is_new] = known_.try_emplace({have, need, bound});
  if (is_new) at->second = elements_received(have, need, bound, sites_);
  return at->second;
}

const std::vector<std::int64_t>& Transfers::crossing(const Link& link, const Layout& have, const Layout& need,
                                                     const Shape& bound) {
  const auto [at, is_new] = known_crossing_.try_emplace({link.sites, have, need, bound});
  if (is_new) at->second = elements_crossing(have, need, bound, sites_, link.sites);
  return at->second;
}

}  // namespace einrel
