#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "einsum/ein_graph.h"

namespace einrel {

/// Parts per label of a vertex (per dimension of an Input): the partition vector d of EinDecomp, section 4.
using PartitionVector = std::vector<std::int64_t>;

/// How every vertex of a graph is cut.
struct Plan {
  std::string planner;
  std::vector<PartitionVector> parts;
  double cost = 0;  ///< by the model that the planner minimised
};

/// Parts per dimension that a vertex with partition vector `parts` makes of its result. Each dimension of an EinSum is
/// a label; of a View a group of labels.
PartitionVector result_parts(const Vertex& vertex, const PartitionVector& parts);

/// Parts per dimension in which it needs an operand: d[lX]. Dimensions that no plain label walks through stay whole.
PartitionVector operand_parts(const Vertex& vertex, std::size_t operand, const PartitionVector& parts);

/// How many labels a vertex may be cut along at most, and into how many parts each: its extent, or 1 where
/// cannot_be_cut says why.
PartitionVector most_parts(const Vertex& vertex, const EinGraph& graph);

/// Every partition vector of powers of two whose product is `product`, in lexicographic order, none of its entries
/// above that of `most`. Where `most` does not allow the product, of the largest power of two that it does allow. There
/// are C(n + D - 1, D - 1) for a product of 2^n and D labels that are long enough (EinDecomp, section 8.1).
std::vector<PartitionVector> power_of_two_partitions(const PartitionVector& most, std::int64_t product);

}  // namespace einrel
