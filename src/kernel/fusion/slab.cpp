#include "kernel/fusion/slab.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "einsum/graph/vertex_facts.h"
#include "kernel/fusion/products.h"
#include "machine/processor.h"

namespace einrel {
namespace {

/// Of a slab of length 1: all members, and what they read from outside that shares the label.
double bytes_per_position(const Fusion& fusion) {
  const std::vector<Vertex>& vertices = fusion.program.vertices;
  double sum = 0;
  std::set<std::size_t> counted;
  const auto count = [&](std::size_t v) {
    if (!counted.insert(v).second) return;
    sum += static_cast<double>(element_count(vertices[v].bound)) * static_cast<double>(size_of(vertices[v].dtype));
  };
  for (std::size_t v = 0; v < vertices.size(); ++v) {
    const EinSum* const einsum = einsum_of(vertices[v]);
    if (einsum == nullptr) continue;
    count(v);
    for (std::size_t o = 0; o < einsum->operands.size(); ++o) {
      if (mentions(einsum->operands[o], einsum->output[fusion.cuts.back()[v]])) count(vertices[v].inputs[o].index);
    }
  }
  for (const std::vector<std::size_t>& cut : fusion.cuts) sum /= static_cast<double>(cut_extent(fusion, cut));
  return sum;
}

}  // namespace

bool mentions(const Index& index, std::size_t label) {
  return std::any_of(index.terms.begin(), index.terms.end(),
                     [label](const IndexTerm& term) { return term.label == label; });
}

bool mentions(const Access& access, std::size_t label) {
  return std::any_of(access.indices.begin(), access.indices.end(),
                     [label](const Index& index) { return mentions(index, label); });
}

bool is_last_dimension(const Fusion& fusion, std::size_t v) {
  const Shape& bound = fusion.program.vertices[v].bound;
  return bound.size() > 1 && fusion.cuts.back()[v] + 1 == bound.size();
}

bool reads_large_operands(const KernelSpec& spec) {
  return std::any_of(spec.operands.begin(), spec.operands.end(), [](const ArrayLayout& operand) {
    return element_count(operand.shape) * static_cast<std::int64_t>(size_of(operand.dtype)) >= least_large_bytes;
  });
}

std::int64_t cut_extent(const Fusion& fusion, const std::vector<std::size_t>& cut) {
  return fusion.program.vertices.back().bound[cut.back()].value();
}

std::int64_t cached_bytes(const Fusion& fusion) {
  constexpr std::int64_t bytes = nominal_processor.second_cache;
  return holds_products(fusion) ? bytes : bytes / 2;
}

std::int64_t slab_length(const Fusion& fusion) {
  constexpr double least_lanes = 64;
  double least = 1;
  for (std::size_t v = fusion.operands.size(); v < fusion.program.vertices.size(); ++v) {
    if (is_last_dimension(fusion, v)) least = least_lanes;
  }
  const auto extent = static_cast<double>(cut_extent(fusion, fusion.cuts.back()));
  const auto bytes = static_cast<double>(cached_bytes(fusion));
  const double fitting = std::floor(bytes / std::max(bytes_per_position(fusion), 1.0));
  return static_cast<std::int64_t>(std::min(std::max(fitting, least), extent));
}

std::int64_t slab_bytes(const Fusion& fusion) {
  std::int64_t slabs = 1;  // of length 1
  for (const std::vector<std::size_t>& cut : fusion.cuts) slabs *= cut_extent(fusion, cut);
  const std::int64_t length = slab_length(fusion);
  std::int64_t bytes = 0;
  const std::vector<VertexId>& kept = fusion.program.outputs;
  for (std::size_t v = fusion.operands.size(); v < fusion.program.vertices.size(); ++v) {
    if (std::find(kept.begin(), kept.end(), VertexId{v}) != kept.end()) continue;
    const Vertex& vertex = fusion.program.vertices[v];
    bytes += element_count(vertex.bound) / slabs * length * static_cast<std::int64_t>(size_of(vertex.dtype)) +
             nominal_processor.line_bytes;
  }
  return bytes;
}

}  // namespace einrel
