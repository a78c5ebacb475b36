#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "plan/layout.h"

namespace einrel {

/// Elements that sites receive when a tensor is brought from one layout to another.
struct ReceivedSums {
  std::int64_t all = 0;
  std::int64_t most = 0;       ///< by one site
  std::int64_t receivers = 0;  ///< sites that receive something, on the node that has most of them
};

/// elements_received, each question answered once: in models of many layers most of them are asked again.
class Transfers {
 public:
  /// Between sites of a machine: what counts of that are its links.
  explicit Transfers(std::int64_t sites, Machine machine = {}) : sites_(sites), machine_(std::move(machine)) {}
  std::int64_t sites() const { return sites_; }
  const Machine& machine() const { return machine_; }

  /// Per site.
  const std::vector<std::int64_t>& received(const Layout& have, const Layout& need, const Shape& bound);
  /// Of all sites, which is all that most want to know; the last some thousand answers are kept.
  ReceivedSums sums(const Layout& have, const Layout& need, const Shape& bound);
  /// Per group of sites behind a link of the machine, received from other groups, each element once.
  const std::vector<std::int64_t>& crossing(const Link& link, const Layout& have, const Layout& need,
                                            const Shape& bound);

 private:
  struct Asked {
    Layout have;
    Layout need;
    Shape bound;
    std::int64_t group = 0;  ///< of sites behind a link
    bool operator==(const Asked&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Asked& asked) const;
  };

  std::int64_t sites_;
  Machine machine_;
  std::unordered_map<Asked, std::vector<std::int64_t>, Hash> known_crossing_;
  std::unordered_map<Asked, std::vector<std::int64_t>, Hash> known_;
  std::unordered_map<Asked, ReceivedSums, Hash> known_sums_;
};

}  // namespace einrel
