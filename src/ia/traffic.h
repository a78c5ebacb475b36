#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "ia/ia_program.h"

namespace einrel {

/// Bytes between sites.
struct Traffic {
  std::vector<std::int64_t> received;  ///< per site
  std::vector<std::int64_t> sent;      ///< per site
  std::int64_t total = 0;              ///< of all sites received, which is what all sent
};

struct Delivery {
  Site from = 0;
  Site to = 0;
};
/// The sites of either, ascending as both are.
std::vector<Site> sites_of_either(const std::vector<Site>& a, const std::vector<Site>& b);

/// How a tuple comes from the sites that have it to those that need it, both ascending: the first of the holders and
/// the sites that lack it, in order, are a binary tree in which each gives it to two others. What one gives has come to
/// it before. O(holders + targets).
std::vector<Delivery> deliveries(const std::vector<Site>& holders, const std::vector<Site>& targets);

/// What each site receives when the plan runs, exactly: an operation delivers a tuple to a site once, and not to a site
/// that has it already; a Repart delivers what chunks have in common, once where several chunks of a site have
/// it, and not to a site that has the old chunk. A tuple goes along the tree of `deliveries`. Of partial aggregates
/// every tuple is a value of its own. Throws UserError when a sum needs more than 63 bits, Bug when the plan is faulty.
/// O(tuples and pieces delivered).
Traffic bytes_of(const IaStore& store, const IaPlan& plan);
/// The same of some of its operations.
Traffic bytes_of(const IaStore& store, const std::set<IaId>& nodes);
/// What neighbouring sites, in groups of so many, send to each other: bytes[from][to], exactly, as bytes_of counts
/// them; from a group to itself what its sites send to each other. Throws as bytes_of does. O(tuples and pieces
/// delivered).
std::vector<std::vector<std::int64_t>> bytes_between(const IaStore& store, const IaPlan& plan, std::int64_t group);
/// What all sites together receive by one operation, which can run.
std::int64_t bytes_of(const IaStore& store, IaId id);

}  // namespace einrel
