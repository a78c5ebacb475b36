#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plan/layout.h"
#include "plan/spmd.h"

/// How a tensor goes from one layout over a mesh to another, as collectives that every site calls: each receives what
/// it needs and does not hold, and nothing else, as the plan counts (elements_received).
namespace einrel {

/// For each dimension of a tensor the axes of the mesh that cut it, the major first; on all others it is copied.
using Sharding = std::vector<std::vector<std::size_t>>;

/// Of a layout in which every site has something.
Sharding sharding_of(const Layout& layout, const std::vector<MeshAxis>& mesh);

/// Takes this site's part of a dimension, by its coordinate on these axes, the major first.
struct TakePart {
  std::size_t dimension = 0;
  std::vector<std::size_t> axes;
};
/// Cuts `split` along these axes, the major first, and puts together, in their order, what they cut along `joined`: the
/// axes change their dimension.
struct AllToAll {
  std::vector<std::size_t> axes;
  std::size_t split = 0;
  std::size_t joined = 0;
};
/// Sends blocks whole: from the first to the second of each pair, coordinates on the axes counted row-major.
struct PermuteSites {
  std::vector<std::size_t> axes;
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;  ///< all of them, also those to themselves
};
/// Puts the parts of a dimension from all coordinates on the axes one after the other.
struct AllGather {
  std::size_t dimension = 0;
  std::vector<std::size_t> axes;
};
/// Reorders a dimension here: as if it were `sizes` and what is left, these are put in the order `to`.
struct ReorderHere {
  std::size_t dimension = 0;
  std::vector<std::int64_t> sizes;
  std::vector<std::size_t> to;
};
using Collective = std::variant<TakePart, AllToAll, PermuteSites, AllGather, ReorderHere>;

/// Steps from one to the other, or why there are none.
std::variant<std::vector<Collective>, std::string> collectives_between(const Sharding& have, const Sharding& need,
                                                                       const std::vector<MeshAxis>& mesh);
/// Why there are none; "" where there are, and where nothing moves.
std::string collectives_fault(const Sharding& have, const Sharding& need, const std::vector<MeshAxis>& mesh);

}  // namespace einrel
