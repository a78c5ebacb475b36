#include "plan/plan.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "tra/from_einsum.h"
#include "tra/lowering.h"

namespace einrel {
namespace {

std::int64_t product_of(const std::vector<std::size_t>& labels, const PartitionVector& parts) {
  return std::transform_reduce(labels.begin(), labels.end(), std::int64_t{1}, std::multiplies<>(),
                               [&](std::size_t label) { return parts[label]; });
}

PartitionVector of_groups(const std::vector<std::vector<std::size_t>>& groups, const PartitionVector& parts) {
  PartitionVector result;
  for (const std::vector<std::size_t>& group : groups) result.push_back(product_of(group, parts));
  return result;
}

std::int64_t floor_power_of_two(std::int64_t value) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(value)));
}

}  // namespace

PartitionVector result_parts(const Vertex& vertex, const PartitionVector& parts) {
  if (const auto* const einsum = std::get_if<EinSum>(&vertex.op)) {
    PartitionVector result;
    for (const std::size_t label : einsum->output) result.push_back(parts[label]);
    return result;
  }
  if (const auto* const view = std::get_if<View>(&vertex.op)) return of_groups(view->to, parts);
  return parts;
}

PartitionVector operand_parts(const Vertex& vertex, std::size_t operand, const PartitionVector& parts) {
  if (const auto* const view = std::get_if<View>(&vertex.op)) return of_groups(view->from, parts);
  PartitionVector result;
  for (const Index& index : std::get<EinSum>(vertex.op).operands[operand].indices) {
    const std::optional<std::size_t> label = lowering::plain_label(index);
    result.push_back(label ? parts[*label] : 1);
  }
  return result;
}

PartitionVector most_parts(const Vertex& vertex, const EinGraph& graph) {
  const std::vector<std::string> reasons = cannot_be_cut(vertex, graph);
  PartitionVector most;
  for (const Extent extent : label_extents(vertex)) {
    most.push_back(reasons[most.size()].empty() ? std::max<std::int64_t>(extent.value(), 1) : 1);
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

}  // namespace einrel
