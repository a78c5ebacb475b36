#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "engine/compile.h"
#include "kernel/spec.h"

namespace einrel {

/// The strides of inputs that are not row-major, by name: they decide whether a view needs a copy.
using LayoutBindings = std::map<std::string, Strides>;

/// How each input lies, in the order of the graph: as `given` says, else row-major.
std::vector<ArrayLayout> input_layouts(const EinGraph& graph, const LayoutBindings& given = {});

/// How all tensors of a program lie, whose memory they are in, and from when to when that is needed if vertices are
/// computed in order. What follows stands by vertex.
struct MemoryPlan {
  std::vector<ArrayLayout> layouts;
  /// The vertex whose memory its tensor lies in: its own, or that which it is a view of.
  std::vector<std::size_t> owners;
  /// The vertex where it is computed: its own, or the last one of its fusion.
  std::vector<std::size_t> computed_at;
  std::vector<bool> inside;                     ///< of a fusion: it never has a tensor
  std::vector<std::vector<std::size_t>> made;   ///< what gets memory when this vertex is computed
  std::vector<std::vector<std::size_t>> freed;  ///< whose memory, an input's too, nothing needs from then on
};

/// `inputs` in the order of the graph. O(vertices + edges).
MemoryPlan plan_memory(const Compiled& compiled, const std::vector<ArrayLayout>& inputs);

}  // namespace einrel
