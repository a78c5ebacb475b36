#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <set>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "train/batches.h"

namespace einrel {

/// What a tensor has to do with the samples of a batch.
struct SampleUse {
  std::vector<bool> dimensions;  ///< those that stand for samples
  std::set<std::size_t> feeds;   ///< that it is computed from

  bool has_samples() const { return std::find(dimensions.begin(), dimensions.end(), true) != dimensions.end(); }
};

/// Of each vertex.
std::vector<SampleUse> sample_uses(const EinGraph& graph, const Feeds& feeds);

/// What a step on a batch threw. An index out of range says which sample of which feed it comes from, if it comes from
/// one; all else stays.
std::exception_ptr naming_sample(const std::exception_ptr& error, const EinGraph& graph, const Feeds& feeds,
                                 const Batch& batch);

}  // namespace einrel
