#include <algorithm>

#include "base/extent.h"
#include "tra/lowering.h"

namespace einrel::lowering {
namespace {

/// Cuts each dimension along the first label of its group, in units of the others.
std::vector<DimensionCut> cuts_of(const LabelGroups& groups, const std::vector<Label>& labels,
                                  const std::vector<std::int64_t>& parts) {
  std::vector<DimensionCut> cuts;
  for (const std::vector<std::size_t>& group : groups) {
    cuts.emplace_back();
    if (group.empty() || parts[group.front()] == 1) continue;
    cuts.back().parts = parts[group.front()];
    for (std::size_t i = 1; i < group.size(); ++i)
      cuts.back().unit = checked_multiply(cuts.back().unit, labels[group[i]].extent.value());
  }
  return cuts;
}

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
  const std::vector<Label>& labels = labels_of(vertex);
  const TraId cut = builder.recut(input, cuts_of(from, labels, parts));
  const TraId chunks = builder.add(Transform{kernel_of(kernel_name(vertex), vertex, {vertex.dtype}, {0})}, {cut});
  const KeyLabels read = operand_labels(vertex, 0);
  builder.explain(chunks, {read}, read);
  const TraId id = builder.reorder_key(chunks, dimensions_of(to, from), from.size());
  if (id != chunks) builder.explain(id, {read}, result_labels(vertex));
  return {id, vertex.dtype, vertex.bound, cuts_of(to, labels, parts)};
}

}  // namespace einrel::lowering
