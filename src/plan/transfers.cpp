#include "plan/transfers.h"

#include <algorithm>

#include "base/extent.h"

namespace einrel {
namespace {

void mix(std::size_t& hash, std::int64_t value) {
  constexpr std::size_t odd = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio
  constexpr int half = 32;
  hash = (hash ^ static_cast<std::size_t>(value)) * odd;
  hash ^= hash >> half;
}

void mix(std::size_t& hash, const Layout& layout) {
  for (const LayoutAxis& axis : layout.axes) {
    mix(hash, axis.cut.parts);
    mix(hash, axis.cut.unit);
    if (const std::optional<Window>& window = axis.cut.window) {
      for (const std::int64_t number : {window->extent.value(), window->coefficient, window->low, window->high})
        mix(hash, number);
    }
    mix(hash, axis.grid);
    mix(hash, axis.stride);
  }
  for (const SiteCopies& copies : layout.copies) {
    mix(hash, copies.count);
    mix(hash, copies.stride);
  }
}

}  // namespace

std::size_t Transfers::Hash::operator()(const Asked& asked) const {
  std::size_t hash = 0;
  mix(hash, asked.have);
  mix(hash, asked.need);
  for (const Extent extent : asked.bound) mix(hash, extent.value());
  mix(hash, asked.group);
  return hash;
}

// What is asked for is computed before it is known: elements may be more than can be counted.
const std::vector<std::int64_t>& Transfers::received(const Layout& have, const Layout& need, const Shape& bound) {
  Asked asked{have, need, bound, 0};
  if (const auto known = known_.find(asked); known != known_.end()) return known->second;
  std::vector<std::int64_t> elements = elements_received(have, need, bound, sites_);
  return known_.emplace(std::move(asked), std::move(elements)).first->second;
}

ReceivedSums Transfers::sums(const Layout& have, const Layout& need, const Shape& bound) {
  Asked asked{have, need, bound, 0};
  if (const auto known = known_sums_.find(asked); known != known_sums_.end()) return known->second;
  ReceivedSums sums;
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
  constexpr std::size_t most_known = 8192;  // about 5 MB
  if (known_sums_.size() >= most_known) known_sums_.clear();
  known_sums_.emplace(std::move(asked), sums);
  return sums;
}

const std::vector<std::int64_t>& Transfers::crossing(const Link& link, const Layout& have, const Layout& need,
                                                     const Shape& bound) {
  Asked asked{have, need, bound, link.sites};
  if (const auto known = known_crossing_.find(asked); known != known_crossing_.end()) return known->second;
  std::vector<std::int64_t> elements = elements_crossing(have, need, bound, sites_, link.sites);
  return known_crossing_.emplace(std::move(asked), std::move(elements)).first->second;
}

}  // namespace einrel
