#include "plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "tra/lowering.h"

namespace einrel {
namespace {

std::int64_t product_of(const std::vector<std::size_t>& labels, const PartitionVector& parts) {
  return std::transform_reduce(labels.begin(), labels.end(), std::int64_t{1}, std::multiplies<>(),
                               [&](std::size_t label) { return parts[label]; });
}

PartitionVector along(const std::vector<std::optional<std::size_t>>& labels, const PartitionVector& parts) {
  PartitionVector result;
  result.reserve(labels.size());
  for (const std::optional<std::size_t> label : labels) result.push_back(label ? parts[*label] : 1);
  return result;
}

std::int64_t floor_power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(value)));
}

}  // namespace

double bytes_of(const Vertex& tensor) {
  return static_cast<double>(element_count(tensor.bound)) * static_cast<double>(size_of(tensor.dtype));
}

Plan whole_plan(const EinGraph& graph) {
  Plan plan{"single", 1, {}};
  for (const Vertex& vertex : graph.vertices)
    plan.vertices.push_back(one_part_per_site(PartitionVector(label_extents(vertex).size(), 1)));
  return plan;
}

VertexPlan one_part_per_site(const PartitionVector& grid) {
  std::vector<std::size_t> order(grid.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return {grid, grid, strides_in_order(grid, order)};
}

std::vector<std::int64_t> strides_in_order(const std::vector<std::int64_t>& grid,
                                           const std::vector<std::size_t>& order) {
  std::vector<std::int64_t> strides(grid.size(), 0);
  std::int64_t stride = 1;
  for (auto label = order.rbegin(); label != order.rend(); ++label) {
    if (grid[*label] == 1) continue;
    strides[*label] = stride;
    stride *= grid[*label];
  }
  return strides;
}

std::int64_t sites_used(const VertexPlan& plan) {
  return std::accumulate(plan.grid.begin(), plan.grid.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t copies_of(const VertexPlan& plan) {
  return std::transform_reduce(plan.copies.begin(), plan.copies.end(), std::int64_t{1}, std::multiplies<>(),
                               [](const SiteCopies& copies) { return copies.count; });
}

std::int64_t partial_sites(const Vertex& vertex, const VertexPlan& plan) {
  return product_of(reduced_labels(vertex), plan.grid);
}

std::string scatter_fault(const Vertex& vertex, const VertexPlan& plan) {
  if (!plan.scatter) return "";
  const std::int64_t sites = partial_sites(vertex, plan);
  if (sites == 1) return "no label that it reduces is spread over sites";
  const std::size_t label = *plan.scatter;
  const std::vector<std::optional<std::size_t>> output = result_labels(vertex);
  const std::string name = label_names(vertex)[label];
  if (std::find(output.begin(), output.end(), label) == output.end())
    return fmt::format("{} is no label of its result", name);
  if (plan.parts[label] / sites < plan.grid[label])
    return fmt::format("{} parts of {} are not enough for {} sites that compute it, times {} that share it out",
                       plan.parts[label], name, plan.grid[label], sites);
  return "";
}

std::string all_reduce_fault(const Vertex& vertex, const VertexPlan& plan) {
  if (!plan.all_reduced) return "";
  if (plan.scatter) return "it is shared out already";
  if (partial_sites(vertex, plan) == 1) return "no label that it reduces is spread over sites";
  return finds_position(std::get<EinSum>(vertex.op).reducer) ? "positions are found by the owners of results" : "";
}

std::string copies_fault(const Vertex& vertex, const VertexPlan& plan) {
  if (plan.copies.empty() || partial_sites(vertex, plan) == 1) return "";
  return "labels that it reduces are spread over sites, and each has only a part of what others have, too";
}

bool is_cut_alike(const VertexPlan& a, const VertexPlan& b) {
  return a.parts == b.parts && a.grid == b.grid && a.scatter == b.scatter && a.all_reduced == b.all_reduced &&
         copies_of(a) == copies_of(b);
}

GraphCuts cuts_of(const Plan& plan) {
  GraphCuts cuts;
  for (const VertexPlan& vertex : plan.vertices) cuts.parts.push_back(vertex.parts);
  return cuts;
}

PartitionVector result_parts(const Vertex& vertex, const PartitionVector& parts) {
  return along(result_labels(vertex), parts);
}

PartitionVector operand_parts(const Vertex& vertex, std::size_t operand, const PartitionVector& parts) {
  return along(operand_labels(vertex, operand), parts);
}

bool reduces_onto_result(const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr || !continuation(einsum->reducer) || operands_read(vertex).size() != 2) return false;
  const bool has_label_value =
      std::any_of(einsum->body.steps.begin(), einsum->body.steps.end(),
                  [](const ScalarStep& step) { return std::holds_alternative<LabelValue>(step.op); });
  return !has_label_value && reduced_type(*einsum->reducer, einsum->body.type()) == vertex.dtype;
}

std::vector<std::string> stays_whole(const Vertex& vertex, const EinGraph& graph) {
  std::vector<std::string> reasons = cannot_be_cut(vertex, graph);
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {
    std::set<std::size_t> seen;
    for (const std::optional<std::size_t> label : operand_labels(vertex, o)) {
      if (label && !seen.insert(*label).second) reasons[*label] = "it stands twice in one operand";
    }
  }
  return reasons;
}

PartitionVector most_parts(const Vertex& vertex, const EinGraph& graph) {
  const std::vector<std::string> reasons = stays_whole(vertex, graph);
  PartitionVector most;
  for (const Extent extent : label_extents(vertex)) {
    most.push_back(reasons[most.size()].empty() ? std::max<std::int64_t>(extent.value(), 1) : 1);
  }
  for (std::size_t o = 0; o < vertex.inputs.size(); ++o) {  // an input that is cut alike has to have so many elements
    const std::vector<std::optional<std::size_t>> labels = operand_labels(vertex, o);
    const Shape& bound = graph[vertex.inputs[o]].bound;
    for (std::size_t d = 0; d < labels.size() && view_of(vertex) == nullptr; ++d) {
      if (labels[d]) most[*labels[d]] = std::clamp<std::int64_t>(bound[d].value(), 1, most[*labels[d]]);
    }
  }
  return most;
}

PartitionVector most_parts_apart(const Vertex& vertex, const EinGraph& graph) {
  PartitionVector most = most_parts(vertex, graph);
  const std::vector<std::string> reasons = cannot_be_cut_apart(vertex, graph);
  for (std::size_t l = 0; l < most.size(); ++l) {
    if (!reasons[l].empty()) most[l] = 1;
  }
  return most;
}

std::vector<PartitionVector> power_of_two_partitions(const PartitionVector& most, std::int64_t product) {
  // The largest product of the labels from each one on.
  constexpr std::int64_t enough = std::int64_t{1} << 30U;
  PartitionVector reach(most.size() + 1, 1);
  for (std::size_t l = most.size(); l-- > 0;) {
    reach[l] = std::min(enough, reach[l + 1] * std::min(enough, floor_power_of_two(most[l])));
  }
  struct Begun {
    PartitionVector parts;
    std::int64_t left = 1;  ///< the product of the other labels
  };
  std::vector<Begun> all{{{}, std::min(floor_power_of_two(product), reach[0])}};
  for (std::size_t l = 0; l < most.size(); ++l) {
    std::vector<Begun> longer;
    for (const Begun& begun : all) {
      for (std::int64_t power = 1; power <= std::min(begun.left, most[l]); power *= 2) {
        if (begun.left / power > reach[l + 1]) continue;
        longer.push_back({begun.parts, begun.left / power});
        longer.back().parts.push_back(power);
      }
    }
    all = std::move(longer);
  }
  std::vector<PartitionVector> found;
  for (Begun& begun : all) found.push_back(std::move(begun.parts));
  return found;
}

double count_of_power_of_two_partitions(const PartitionVector& most, std::int64_t product) {
  PartitionVector powers;
  double all = 1;
  for (const std::int64_t parts : most) {
    powers.push_back(floor_power_of_two(parts));
    all *= static_cast<double>(powers.back());
  }
  const std::int64_t wanted = floor_power_of_two(product);
  return exact_count_of_factorizations(powers,
                                       all < static_cast<double>(wanted) ? static_cast<std::int64_t>(all) : wanted);
}

std::vector<std::int64_t> divisors_of(std::int64_t number) {
  std::vector<std::int64_t> divisors;
  std::vector<std::int64_t> larger;
  for (std::int64_t divisor = 1; divisor * divisor <= number; ++divisor) {
    if (number % divisor != 0) continue;
    divisors.push_back(divisor);
    if (divisor * divisor != number) larger.push_back(number / divisor);
  }
  divisors.insert(divisors.end(), larger.rbegin(), larger.rend());
  return divisors;
}

std::vector<std::int64_t> prime_factors(std::int64_t number) {
  std::vector<std::int64_t> factors;
  for (std::int64_t prime = 2; prime * prime <= number; ++prime) {
    for (; number % prime == 0; number /= prime) factors.push_back(prime);
  }
  if (number > 1) factors.push_back(number);
  return factors;
}

std::vector<PartitionVector> factorizations(const PartitionVector& most, std::int64_t product, std::size_t cut) {
  const std::vector<std::int64_t> divisors = divisors_of(product);
  struct Begun {
    PartitionVector grid;
    std::int64_t left = 1;  ///< the product of the other labels
    std::size_t may_cut = 0;
  };
  std::vector<Begun> all{{PartitionVector(most.size(), 1), product, cut}};
  for (std::size_t l = 0; l < most.size(); ++l) {
    const bool is_last = l + 1 == most.size();
    std::vector<Begun> longer;
    for (const Begun& begun : all) {
      for (const std::int64_t divisor : divisors) {
        if (divisor > std::min(begun.left, most[l])) break;
        if (begun.left % divisor != 0 || (is_last && divisor != begun.left)) continue;
        if (divisor > 1 && begun.may_cut == 0) break;
        longer.push_back({begun.grid, begun.left / divisor, begun.may_cut - (divisor > 1 ? 1 : 0)});
        longer.back().grid[l] = divisor;
      }
    }
    all = std::move(longer);
  }
  std::vector<PartitionVector> found;
  for (Begun& begun : all) {
    if (begun.left == 1) found.push_back(std::move(begun.grid));
  }
  return found;
}

double exact_count_of_factorizations(const PartitionVector& most, std::int64_t product) {
  const std::vector<std::int64_t> divisors = divisors_of(product);
  std::map<std::int64_t, double> ways{{product, 1}};  // by what is left of the product
  for (const std::int64_t largest : most) {
    std::map<std::int64_t, double> next;
    for (const auto& [left, count] : ways) {
      for (const std::int64_t divisor : divisors) {
        if (divisor <= std::min(left, largest) && left % divisor == 0) next[left / divisor] += count;
      }
    }
    ways = std::move(next);
  }
  return ways.contains(1) ? ways.at(1) : 0;
}

double count_of_factorizations(std::int64_t product, std::size_t labels) {
  double count = 1;
  for (std::int64_t prime = 2; product > 1; ++prime) {
    // How often each label has the prime: as many ways as there are multisets of so many labels.
    for (std::size_t power = 1; product % prime == 0; ++power) {
      product /= prime;
      count *= static_cast<double>(labels + power - 1) / static_cast<double>(power);
    }
  }
  return count;
}

namespace {

bool has_factorization(const PartitionVector& most, std::int64_t product) {
  std::set<std::int64_t> left{product};
  for (const std::int64_t largest : most) {
    if (product <= largest) return true;
    std::set<std::int64_t> next;
    for (const std::int64_t rest : left) {
      for (const std::int64_t divisor : divisors_of(rest)) {
        if (divisor <= largest) next.insert(rest / divisor);
      }
    }
    left = std::move(next);
  }
  return left.count(1) != 0;
}

}  // namespace

std::int64_t most_sites_of(const PartitionVector& most, std::int64_t sites) {
  std::int64_t reach = 1;  // of all labels together, or more than the sites
  for (const std::int64_t parts : most) reach *= std::min(parts, sites / reach + 1);
  std::int64_t product = std::min(sites, reach);
  while (product > 1 && !has_factorization(most, product)) --product;
  return product;
}

std::vector<PartitionVector> site_grids(const PartitionVector& most, std::int64_t sites) {
  return factorizations(most, most_sites_of(most, sites));
}

}  // namespace einrel
