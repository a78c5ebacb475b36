#include "exec/tasks/constant_reads.h"

#include <algorithm>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

/// Calls `visit` with each access to the argument; false where something else than an EinSum reads it.
template <class AnyKernel, class Visit>
bool visit_accesses(AnyKernel& kernel, std::size_t argument, Visit visit) {
  for (auto& step : kernel.steps) {
    auto* const einsum = einsum_of(step);
    for (std::size_t read = 0; read < step.reads.size(); ++read) {
      if (step.reads[read] != argument) continue;
      if (einsum == nullptr) return false;
      visit(einsum->operands[read]);
    }
  }
  return true;
}

/// What all accesses together read; nothing where one has a label.
std::optional<Positions> read_together(const std::vector<const Access*>& accesses, std::size_t dim) {
  std::optional<Positions> found;
  for (const Access* const access : accesses) {
    const Index& index = access->indices[dim];
    if (!index.terms.empty()) return std::nullopt;
    if (!found) found = Positions{index.offset, index.offset};
    found = Positions{std::min(found->first, index.offset), std::max(found->last, index.offset)};
  }
  return found;
}

}  // namespace

std::optional<ConstantReads> constant_reads(const Kernel& kernel, std::size_t argument) {
  std::vector<const Access*> accesses;
  const auto note = [&](const Access& access) { accesses.push_back(&access); };
  if (!visit_accesses(kernel, argument, note) || accesses.empty()) return std::nullopt;
  ConstantPositions positions;
  for (std::size_t d = 0; d < accesses.front()->indices.size(); ++d) positions.push_back(read_together(accesses, d));
  if (std::none_of(positions.begin(), positions.end(), [](const auto& dim) { return dim.has_value(); }))
    return std::nullopt;
  ConstantReads reads{std::move(positions), kernel};
  visit_accesses(reads.kernel, argument, [&](Access& access) {
    for (std::size_t d = 0; d < reads.positions.size(); ++d) {
      if (reads.positions[d]) access.indices[d].offset -= reads.positions[d]->first;
    }
  });
  return reads;
}

}  // namespace einrel
