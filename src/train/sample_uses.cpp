#include "train/sample_uses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>

#include "base/text.h"
#include "einsum/expr/scalar_value.h"
#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

/// Of the dimensions of what a vertex reads, those that stand for samples; gives its own.
struct SampleDimensions {
  const Vertex& vertex;
  const std::vector<SampleUse>& known;

  std::vector<bool> operator()(const Input& /*input*/) const { return std::vector<bool>(vertex.bound.size(), false); }
  std::vector<bool> operator()(const EinSum& einsum) const {
    std::vector<bool> labels(einsum.labels.size(), false);
    for (std::size_t i = 0; i < einsum.operands.size(); ++i) {
      for (std::size_t d = 0; d < einsum.operands[i].indices.size(); ++d) {
        if (!known[vertex.inputs[i].index].dimensions[d]) continue;
        for (const IndexTerm& term : einsum.operands[i].indices[d].terms) labels[term.label] = true;
      }
    }
    std::vector<bool> dimensions;
    for (const std::size_t label : einsum.output) dimensions.push_back(labels[label]);
    return dimensions;
  }
  std::vector<bool> operator()(const View& view) const {
    std::vector<bool> labels(view.labels.size(), false);
    for (std::size_t d = 0; d < view.from.size(); ++d) {
      for (const std::size_t label : view.from[d]) labels[label] = known[vertex.inputs[0].index].dimensions[d];
    }
    std::vector<bool> dimensions;
    for (const std::vector<std::size_t>& group : view.to)
      dimensions.push_back(std::any_of(group.begin(), group.end(), [&](std::size_t label) { return labels[label]; }));
    return dimensions;
  }
  std::vector<bool> operator()(const Opaque& opaque) const {
    std::vector<bool> labels(opaque.labels.size(), false);
    for (std::size_t d = 0; d < opaque.operand.size(); ++d)
      labels[opaque.operand[d]] = known[vertex.inputs[0].index].dimensions[d];
    std::vector<bool> dimensions;
    for (const std::size_t label : dimensions_of(opaque)) dimensions.push_back(labels[label]);
    return dimensions;
  }
};

/// The sample that an element of a tensor is of; nullopt unless the tensor has one dimension of samples.
std::optional<std::int64_t> sample_at(const std::vector<std::int64_t>& indices, const SampleUse& use,
                                      const Batch& batch) {
  const auto found = std::find(use.dimensions.begin(), use.dimensions.end(), true);
  const bool is_one = std::count(use.dimensions.begin(), use.dimensions.end(), true) == 1;
  if (!is_one || indices.size() != use.dimensions.size()) return std::nullopt;
  const auto at = static_cast<std::size_t>(indices[static_cast<std::size_t>(found - use.dimensions.begin())]);
  return at < batch.size() ? std::optional(batch[at]) : std::nullopt;
}

std::optional<IndexOutOfRange> named(const IndexOutOfRange& error, const EinGraph& graph, const Feeds& feeds,
                                     const Batch& batch) {
  const auto found = std::find_if(graph.vertices.begin(), graph.vertices.end(),
                                  [&](const Vertex& vertex) { return vertex.name == error.tensor; });
  if (found == graph.vertices.end()) return std::nullopt;
  const SampleUse use = sample_uses(graph, feeds)[static_cast<std::size_t>(found - graph.vertices.begin())];
  const std::optional<std::int64_t> sample = sample_at(error.indices, use, batch);
  if (!sample) return std::nullopt;
  std::vector<std::string> files;
  for (const std::size_t f : use.feeds)
    files.push_back(fmt::format("{}, which '{}' is fed with", feeds.feeds[f].file.name, feeds.feeds[f].name));
  return IndexOutOfRange(fmt::format("sample {} (from 0 on) of {}, does not fit: in its batch, {}", *sample,
                                     fmt::join(files, ", and of "), error.what()),
                         error.tensor, error.indices);
}

}  // namespace

std::vector<SampleUse> sample_uses(const EinGraph& graph, const Feeds& feeds) {
  std::vector<SampleUse> uses;
  for (const Vertex& vertex : graph.vertices) {
    SampleUse use{std::visit(SampleDimensions{vertex, uses}, vertex.op), {}};
    for (std::size_t f = 0; f < feeds.feeds.size(); ++f) {
      if (!is_input(vertex) || vertex.name != feeds.feeds[f].name) continue;
      use.dimensions[feeds.feeds[f].batch] = true;
      use.feeds.insert(f);
    }
    for (const VertexId input : vertex.inputs)
      use.feeds.insert(uses[input.index].feeds.begin(), uses[input.index].feeds.end());
    uses.push_back(std::move(use));
  }
  return uses;
}

std::exception_ptr naming_sample(const std::exception_ptr& error, const EinGraph& graph, const Feeds& feeds,
                                 const Batch& batch) {
  try {
    std::rethrow_exception(error);
  } catch (const IndexOutOfRange& index) {
    if (const std::optional<IndexOutOfRange> better = named(index, graph, feeds, batch))
      return std::make_exception_ptr(*better);
    return error;
  } catch (...) {
    return error;
  }
}

}  // namespace einrel
