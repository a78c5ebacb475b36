#include "kernel/fusion/products.h"

#include <algorithm>

#include "einsum/graph/vertex_facts.h"
#include "kernel/evaluate.h"
#include "kernel/fusion/slab.h"
#include "kernel/registry.h"
#include "machine/processor.h"

namespace einrel {
namespace {

double positions_of(const EinSum& einsum) {
  double positions = 1;
  for (const Label& label : einsum.labels) positions *= static_cast<double>(label.extent.value());
  return positions;
}

double elements_of(const Vertex& vertex) { return static_cast<double>(element_count(vertex.bound)); }

std::ptrdiff_t inputs_of(const Fusion& fusion) { return static_cast<std::ptrdiff_t>(fusion.operands.size()); }

/// What a product reads again for every slab that differs in the last label only.
double kept_bytes(const Fusion& fusion, std::size_t member) {
  const Vertex& vertex = fusion.program.vertices[member];
  const auto& einsum = std::get<EinSum>(vertex.op);
  double bytes = 0;
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    if (mentions(einsum.operands[o], einsum.output[fusion.cuts.back()[member]])) continue;
    double of_slab = result_bytes(fusion.program[vertex.inputs[o]]);
    for (const std::vector<std::size_t>& cut : fusion.cuts) {
      const bool is_cut = mentions(einsum.operands[o], einsum.output[cut[member]]);
      if (is_cut) of_slab /= static_cast<double>(cut_extent(fusion, cut));
    }
    bytes += of_slab;
  }
  return bytes;
}

/// Modelled, of all of a member, on one thread, from row-major operands.
double whole_seconds(const Fusion& fusion, std::size_t member) {
  const Vertex& vertex = fusion.program.vertices[member];
  std::vector<ArrayLayout> operands;
  for (const VertexId input : vertex.inputs) {
    operands.push_back(row_major_layout(fusion.program[input].dtype, fusion.program[input].bound));
  }
  return choose_kernel(*spec_of(vertex, operands, some_scalars(fusion.program))).offer.seconds;
}

/// What computes a slab of some positions of the last label.
Offer slab_offer(const Fusion& fusion, std::size_t member, std::int64_t length) {
  const Vertex& vertex = fusion.program.vertices[member];
  KernelSpec spec;
  spec.einsum = std::get<EinSum>(vertex.op);
  for (const VertexId input : vertex.inputs) {
    spec.operands.push_back(row_major_layout(fusion.program[input].dtype, fusion.program[input].bound));
  }
  Shape shape = vertex.bound;
  for (const std::vector<std::size_t>& cut : fusion.cuts) {
    const Extent extent(&cut == &fusion.cuts.back() ? length : 1);
    spec.einsum.labels[spec.einsum.output[cut[member]]].extent = shape[cut[member]] = extent;
  }
  spec.result = row_major_layout(vertex.dtype, shape);
  spec.scalars = some_scalars(fusion.program);
  spec.large_operands = reads_large_operands(spec);
  return choose_kernel(spec).offer;
}

/// Of the labels that are cut into single positions.
double outer_slabs(const Fusion& fusion) {
  double slabs = 1;
  for (std::size_t c = 0; c + 1 < fusion.cuts.size(); ++c) {
    slabs *= static_cast<double>(cut_extent(fusion, fusion.cuts[c]));
  }
  return slabs;
}

/// Whether a product takes no longer slab by slab than at once and with reading its result.
bool gains(const Fusion& fusion, std::size_t member) {
  const std::int64_t extent = cut_extent(fusion, fusion.cuts.back());
  const std::int64_t length = slab_length(fusion);
  const std::int64_t full = extent / length;
  const std::int64_t rest = extent % length;
  const Offer slab = slab_offer(fusion, member, length);
  if (slab_bytes(fusion) + slab.own_bytes + slab.shared_bytes > most_workspace_bytes) return false;
  double seconds = static_cast<double>(full) * slab.seconds;
  if (rest != 0) seconds += slab_offer(fusion, member, rest).seconds;
  const double reading = result_bytes(fusion.program.vertices[member]) / nominal_processor.thread_bandwidth;
  return seconds * outer_slabs(fusion) <= whole_seconds(fusion, member) + reading;
}

}  // namespace

double result_bytes(const Vertex& vertex) { return elements_of(vertex) * static_cast<double>(size_of(vertex.dtype)); }

ScalarBindings some_scalars(const EinGraph& graph) {
  ScalarBindings scalars;
  for (const ScalarDeclaration& scalar : graph.scalars) scalars[scalar.name] = scalar.value.value_or(1);
  return scalars;
}

bool is_light(const EinGraph& graph, const Vertex& vertex) {
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr || einsum->output.empty() || !needs_kernel(*einsum)) return false;
  double largest = elements_of(vertex);
  for (const VertexId input : vertex.inputs) largest = std::max(largest, elements_of(graph[input]));
  return positions_of(*einsum) <= 2 * largest;
}

bool is_short_product(const EinGraph& graph, const Vertex& vertex) {
  constexpr double longest = 256;
  constexpr double most_positions = 4e18;  // beyond, only parts of it can be computed
  const EinSum* const einsum = einsum_of(vertex);
  if (einsum == nullptr || !einsum->reducer || !needs_kernel(*einsum) || is_light(graph, vertex)) return false;
  if (positions_of(*einsum) > most_positions) return false;
  return result_bytes(vertex) >= static_cast<double>(least_large_bytes) &&
         positions_of(*einsum) <= longest * elements_of(vertex);
}

bool holds_products(const Fusion& fusion) {
  const std::vector<Vertex>& vertices = fusion.program.vertices;
  return !std::all_of(vertices.begin() + inputs_of(fusion), vertices.end(),
                      [&](const Vertex& vertex) { return is_light(fusion.program, vertex); });
}

bool pays(const Fusion& fusion) {
  constexpr double least_slabs = 8;  // for several threads to share
  // Beside the slab in the second-level cache.
  constexpr double most_kept_bytes = 3.0 / 16 * static_cast<double>(nominal_processor.second_cache);
  const auto length = static_cast<double>(slab_length(fusion));
  const double slabs = static_cast<double>(cut_extent(fusion, fusion.cuts.back())) / length * outer_slabs(fusion);
  if (!holds_products(fusion) || slabs < least_slabs) return false;
  for (std::size_t v = fusion.operands.size(); v < fusion.program.vertices.size(); ++v) {
    if (is_light(fusion.program, fusion.program.vertices[v])) continue;
    // Short pieces of long rows are slow to read and to write.
    if (is_last_dimension(fusion, v) || kept_bytes(fusion, v) > most_kept_bytes || !gains(fusion, v)) return false;
  }
  return true;
}

}  // namespace einrel
