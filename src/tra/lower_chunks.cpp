#include <algorithm>

#include "base/extent.h"
#include "tra/lowering.h"

namespace einrel::lowering {
namespace {

/// For each group of one side the dimension of the other side whose group begins with the same label.
std::vector<std::optional<std::size_t>> dimensions_of(const LabelGroups& groups, const LabelGroups& other) {
  std::vector<std::optional<std::size_t>> dimensions;
  for (const std::vector<std::size_t>& group : groups) {
    const auto same = [&](const auto& candidate) {
      return !group.empty() && !candidate.empty() && candidate.front() == group.front();
    };
    const auto found = std::find_if(other.begin(), other.end(), same);
    dimensions.emplace_back();
    if (found != other.end()) dimensions.back() = static_cast<std::size_t>(found - other.begin());
  }
  return dimensions;
}

}  // namespace

Stored lower_chunks(ProgramBuilder& builder, const Vertex& vertex, const Stored& input,
                    const std::vector<std::int64_t>& parts) {
  const LabelGroups from = operand_groups(vertex, 0);
  const LabelGroups to = result_groups(vertex);
  const TraId cut = builder.recut(input, operand_cuts(vertex, 0, input.bound, parts));
  const TraId chunks = builder.add(Transform{kernel_of(kernel_name(vertex), vertex, {vertex.dtype}, {0})}, {cut});
  const KeyLabels read = operand_labels(vertex, 0);
  builder.explain(chunks, {read}, read);
  const TraId id = builder.reorder_key(chunks, dimensions_of(to, from), from.size());
  if (id != chunks) builder.explain(id, {read}, result_labels(vertex));
  return {id, vertex.dtype, vertex.bound, result_cuts(vertex, parts)};
}

}  // namespace einrel::lowering
