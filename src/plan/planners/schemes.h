#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "plan/planners/plan_request.h"
#include "plan/search/tilings.h"

namespace einrel {

/// How a scheme cuts every vertex of a graph over some sites: sites along each label, all 1 where each of the sites
/// computes the same (of an input: nothing). Or why it cannot.
using SchemeGrids = std::variant<std::vector<PartitionVector>, std::string>;

/// What people call a parallelism. Several can be applied at a time, each over its own digit of a site's number.
struct Scheme {
  std::string_view name;
  std::string_view summary;  ///< one line
  SchemeGrids (*grids)(const EinGraph& graph, const PlanRequest& request);
  std::size_t tried_up_to = std::numeric_limits<std::size_t>::max();  ///< vertices, as of Planner
};
const std::vector<Scheme>& all_schemes();

/// Some sites, and the scheme that cuts over them.
struct SchemeFactor {
  const Scheme* scheme = nullptr;
  std::int64_t sites = 1;
};

/// "data:8 x tensor:4": the first is the outer digit, so that sites of the last are neighbours. "hybrid:8x4" is short
/// for "data:8 x model:4". Throws UserError saying which word is wrong.
std::vector<SchemeFactor> scheme_factors(std::string_view text);
/// Whether a planner's name is such a product, or is meant to be.
bool is_product_of_schemes(std::string_view name);

/// "data:8 x tensor:4".
std::string name_of(const std::vector<SchemeFactor>& factors);

/// All products of two over so many sites.
std::vector<std::vector<SchemeFactor>> products_of_two(std::int64_t sites);

/// A vertex is cut by all factors that have labels of it; sites of the others compute it alike, unless what it reduces
/// is spread over sites: then it is reduced once. Results that are reduced over sites are shared out among them
/// (reduce-scatter) along the longest label that allows it; who needs all of them gathers them (an all-reduce, where
/// that is every site). Refused where the product is not the number of sites.
Planned plan_by_schemes(const EinGraph& graph, const PlanRequest& request, const std::vector<SchemeFactor>& factors);

/// The plan with so many sites along each label of every vertex, their product at most the request's; results that are
/// reduced are shared out likewise. What stands for inputs is not looked at.
Planned plan_by_grids(const EinGraph& graph, const PlanRequest& request, std::vector<PartitionVector> grids);

/// The plan whose sites are numbered by one cut after the other, the first one outermost. A label that cuts divide
/// which do not follow each other is divided by the first of them only: a vertex has one digit of a site's number for
/// each.
Plan plan_by_cuts(const EinGraph& graph, const PlanRequest& request, const TilingCuts& cuts);

/// The plans of several products, those that cut alike once.
std::vector<Plan> plans_by_products(const EinGraph& graph, const PlanRequest& request,
                                    const std::vector<std::vector<SchemeFactor>>& products);

/// Data parallelism: one label, the batch, over all sites. What does not have it, such as new weights, is computed by
/// every site, from gradients that are all-reduced. Refused where no vertex has the label, or it is nowhere cut.
SchemeGrids data_grids(const EinGraph& graph, const PlanRequest& request);

/// The same, but what is computed from gradients is cut along its longest label (fully sharded, ZeRO 3): weights are
/// gathered where they are used, gradients reduced to where the weights are.
SchemeGrids fsdp_grids(const EinGraph& graph, const PlanRequest& request);

/// The batch label: that of the request, else the first label of the first input, of the first vertex that reads it.
std::optional<std::string> batch_label(const EinGraph& graph, const PlanRequest& request);

}  // namespace einrel
