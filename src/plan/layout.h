#pragma once

#include <cstdint>
#include <vector>

#include "ia/placement.h"
#include "plan/plan.h"
#include "tra/relation.h"

namespace einrel {

/// How one dimension of a tensor is cut, and over how many sites: chunk p lies at coordinate floor(p * grid / parts).
/// With a window it only says what is needed; what is stored has none.
struct LayoutAxis {
  DimensionCut cut;
  std::int64_t grid = 1;
  std::int64_t stride = 0;  ///< in the number of the site; 0 where grid is 1
  auto operator<=>(const LayoutAxis&) const = default;
};

/// Where the chunks of a tensor lie, or have to lie. Sites whose number no coordinates give hold nothing.
struct Layout {
  std::vector<LayoutAxis> axes;    ///< per dimension
  std::vector<SiteCopies> copies;  ///< ascending by stride, as few as say the same
  auto operator<=>(const Layout&) const = default;
};

/// Of the result of a vertex.
Layout result_layout(const Vertex& vertex, const VertexPlan& plan);

/// Where partial results are added up: as the result lies, but of one that is all-reduced with one owner.
Layout owned_layout(const Vertex& vertex, const VertexPlan& plan);

/// Of the partial results that its sites compute: as the result would lie unscattered, with copies along the labels
/// that it reduces.
Layout partial_layout(const Vertex& vertex, const VertexPlan& plan);

/// The grid and strides that the result lies by. Along `scatter`, a coordinate of the computing sites c and their
/// number n among those with a part of the same results make c * partial_sites + n.
VertexPlan with_scattered_result(const Vertex& vertex, VertexPlan plan);

/// Whether these coordinates are a digit of a site's number: reduced labels have to be neighbouring digits, and
/// `scatter`, unless its grid is 1, the next one.
bool numbers_scatter(const Vertex& vertex, const VertexPlan& plan);

/// What a vertex needs of an operand of this bound to compute all of its parts where its plan says.
Layout needed_layout(const Vertex& vertex, std::size_t operand, const Shape& bound, const VertexPlan& plan);

/// How each dimension is cut.
std::vector<DimensionCut> cuts_of(const Layout& layout);
/// Whether its chunks may overlap.
bool has_windows(const Layout& layout);

/// Elements that each site receives so that a tensor that lies as `have` lies as `need`: what it needs and does not
/// hold, each once. O(sites * dimensions).
std::vector<std::int64_t> elements_received(const Layout& have, const Layout& need, const Shape& bound,
                                            std::int64_t sites);

/// The same of each group of so many neighbouring sites, as if a group were one site: what comes to it from all others
/// together, each element once.
std::vector<std::int64_t> elements_crossing(const Layout& have, const Layout& need, const Shape& bound,
                                            std::int64_t sites, std::int64_t group);

/// Elements of partial results that the owners of results in each group of so many sites receive from other groups.
std::vector<std::int64_t> parts_crossing(const Vertex& vertex, const VertexPlan& plan, std::int64_t sites,
                                         std::int64_t group);

/// Elements that a site holds in all of its chunks: where these overlap, in each of them, and with what lies beyond the
/// tensor.
std::int64_t elements_at(const Layout& layout, const Shape& bound, std::int64_t site);

}  // namespace einrel
