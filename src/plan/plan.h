#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "ia/placement.h"
#include "plan/tiling_cuts.h"
#include "tra/from_einsum.h"

namespace einrel {

/// Parts per label of a vertex (per dimension of an Input): the partition vector d of EinDecomp, section 4.
using PartitionVector = std::vector<std::int64_t>;

/// How one vertex is cut and where each part is computed, per label (per dimension of an Input). Part p of a label lies
/// at coordinate floor(p * grid / parts); a site's number is the sum of coordinate * stride over the labels.
struct VertexPlan {
  PartitionVector parts;              ///< d
  std::vector<std::int64_t> grid;     ///< g: sites along each label, at most its parts
  std::vector<std::int64_t> strides;  ///< 0 where grid is 1
  /// Reduce-scatter: the label of the result along which sites that differ in the coordinates of reduced labels alone
  /// share it out. Without, it lies where these coordinates are 0.
  std::optional<std::size_t> scatter = std::nullopt;
  /// All-reduce: each of the sites that have partial results gets the whole result, instead of one or a share each.
  bool all_reduced = false;
  /// Digits of a site's number that say nothing: sites that differ in them alone compute, or store, the same. They
  /// cannot have parts of what others reduce, too (copies_fault).
  std::vector<SiteCopies> copies = {};
  bool operator==(const VertexPlan&) const = default;
};

/// How every vertex of a graph is cut, and where it is computed.
struct Plan {
  std::string planner;
  std::int64_t sites = 1;
  std::vector<VertexPlan> vertices;
  std::optional<TilingCuts> cuts = std::nullopt;  ///< of planner kcut: what the plan was made of
  /// Of planner best: seconds that no plan takes less of all that it chooses from.
  std::optional<double> at_least = std::nullopt;
  bool is_spmd = false;  ///< it keeps to what a single program over one mesh of its sites says (spmd.h)
  bool operator==(const Plan&) const = default;
};

/// As many parts as sites along each label, numbered row-major.
VertexPlan one_part_per_site(const PartitionVector& grid);

/// Bytes of all elements of a tensor. As a double, since it may exceed 63 bits.
double bytes_of(const Vertex& tensor);

/// One part of everything, on one site: what runs in one process without a plan.
Plan whole_plan(const EinGraph& graph);

/// Strides that number the coordinates of `grid` with the last label of `order` fastest; `order` has every label.
std::vector<std::int64_t> strides_in_order(const std::vector<std::int64_t>& grid,
                                           const std::vector<std::size_t>& order);

/// Sites that compute something different: the product of the grid.
std::int64_t sites_used(const VertexPlan& plan);

/// How many sites compute each of these things.
std::int64_t copies_of(const VertexPlan& plan);

/// Sites that each compute a part of every result: the product of the grid over the labels that a vertex reduces.
std::int64_t partial_sites(const Vertex& vertex, const VertexPlan& plan);

/// Why the result cannot be shared out along `scatter`, however sites are numbered; "" where it can, or is not.
std::string scatter_fault(const Vertex& vertex, const VertexPlan& plan);

/// Why partial results cannot be added up on all sites that have them; "" where they can, or are not.
std::string all_reduce_fault(const Vertex& vertex, const VertexPlan& plan);

/// Why no several sites can compute this alike; "" where they can, or do not: what is reduced over sites has one owner.
std::string copies_fault(const Vertex& vertex, const VertexPlan& plan);

/// Whether two plans of a vertex differ at most in the numbers of their sites.
bool is_cut_alike(const VertexPlan& a, const VertexPlan& b);

/// What tra/from_einsum takes.
GraphCuts cuts_of(const Plan& plan);

/// Parts per dimension that a vertex with partition vector `parts` makes of its result. Each dimension of an EinSum is
/// a label; of a View a group of labels.
PartitionVector result_parts(const Vertex& vertex, const PartitionVector& parts);

/// Parts per dimension in which it needs an operand: d[lX]. Dimensions that no plain label walks through stay whole.
PartitionVector operand_parts(const Vertex& vertex, std::size_t operand, const PartitionVector& parts);

/// Whether a site that computes several parts of a label that the vertex reduces needs one result for all of them:
/// joins of two relations, reduced by what can go on from a result of the vertex's type (reduces_onto in tra/kernel).
bool reduces_onto_result(const Vertex& vertex);

/// For each label of a vertex, why no plan cuts it; "" where some do. As cannot_be_cut, and of the label of a diagonal
/// X[i,i], whose chunks a grid of sites does not describe.
std::vector<std::string> stays_whole(const Vertex& vertex, const EinGraph& graph);

/// How many parts each label of a vertex may be cut into: its extent, and no more than what is read along it has; 1
/// where it stays whole.
PartitionVector most_parts(const Vertex& vertex, const EinGraph& graph);
/// The same where no chunks may overlap (cannot_be_cut_apart).
PartitionVector most_parts_apart(const Vertex& vertex, const EinGraph& graph);

/// Every partition vector of powers of two whose product is `product`, in lexicographic order, none of its entries
/// above that of `most`. Where `most` does not allow the product, of the largest power of two that it does allow. There
/// are C(n + D - 1, D - 1) for a product of 2^n and D labels that are long enough (EinDecomp, section 8.1).
std::vector<PartitionVector> power_of_two_partitions(const PartitionVector& most, std::int64_t product);

/// How many these are, without making them. O(labels * log(product)^2).
double count_of_power_of_two_partitions(const PartitionVector& most, std::int64_t product);

/// Ascending.
std::vector<std::int64_t> divisors_of(std::int64_t number);
/// Ascending, each as often as it divides.
std::vector<std::int64_t> prime_factors(std::int64_t number);
/// Every vector of whole numbers with this product, none above that of `most`, at most `cut` of them above 1, in
/// lexicographic order.
std::vector<PartitionVector> factorizations(const PartitionVector& most, std::int64_t product, std::size_t cut = 64);
/// How many there are where neither `most` nor `cut` forbids any.
double count_of_factorizations(std::int64_t product, std::size_t labels);
/// How many vectors factorizations() gives of this product where `cut` forbids none. O(labels * divisors^2).
double exact_count_of_factorizations(const PartitionVector& most, std::int64_t product);
/// The largest number up to `sites` that such a vector exists for.
std::int64_t most_sites_of(const PartitionVector& most, std::int64_t sites);
/// Every vector of whole numbers whose product is `sites`, none above that of `most`, in lexicographic order. Where
/// there is none, of the largest product below `sites` that there is.
std::vector<PartitionVector> site_grids(const PartitionVector& most, std::int64_t sites);

}  // namespace einrel
