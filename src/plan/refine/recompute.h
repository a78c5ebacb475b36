#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "einsum/graph/ein_graph.h"

namespace einrel {

/// A program whose vertices are computed in another order, and some of them again where they are needed late, instead
/// of being kept until then.
struct Recomputed {
  EinGraph graph;
  std::vector<std::size_t> origin;  ///< per vertex, the vertex of the program before that computes the same
};

/// The most bytes of computed tensors that are needed at a time, each whole, when vertices are computed in order.
std::int64_t most_kept_bytes(const EinGraph& graph);

/// Computes next, of what can be, what frees most beside what it makes: the parts of a sum of gradients as soon as they
/// are known, say. As it is where that keeps no less. O(vertices^2) at worst.
Recomputed in_lean_order(const EinGraph& graph);

/// Computes tensors again until no more than so many bytes are kept, beginning with a program in lean order, or with
/// what this has made of it. Of those that are kept where most are, and needed only later, the one that costs the
/// fewest scalar operations per byte is dropped, and computed again in front of its next reader, with what it is
/// computed of as far as that is gone by then, too: segments of a chain between tensors that stay (Chen et al.,
/// Training deep nets with sublinear memory cost, 2016, section 4). Nothing where that takes more than `most_flops`
/// more operations, there is nothing left to drop, or it takes seconds to find out. O(tensors dropped * vertices).
std::optional<Recomputed> recompute_within(Recomputed start, std::int64_t most_bytes, double most_flops);

}  // namespace einrel
