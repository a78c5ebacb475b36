#include "export/convolution.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

using LabelList = std::vector<std::size_t>;

bool has(const LabelList& list, std::size_t label) { return std::find(list.begin(), list.end(), label) != list.end(); }

/// A label for each dimension, each once; nothing where an index is anything else.
std::optional<LabelList> plain_labels(const Access& access) {
  LabelList labels;
  for (const Index& index : access.indices) {
    const std::optional<std::size_t> label = plain_label(index);
    if (!label || has(labels, *label)) return std::nullopt;
    labels.push_back(*label);
  }
  return labels;
}

/// An index that is the sum of a label of the result and one of the filter.
std::optional<SlidingWindow> window_of(const EinSum& einsum, const Index& index, const LabelList& filter) {
  if (index.terms.size() != 2) return std::nullopt;
  const bool is_first = has(einsum.output, index.terms[0].label);
  const IndexTerm& moves = index.terms[is_first ? 0 : 1];
  const IndexTerm& slides = index.terms[is_first ? 1 : 0];
  const bool is_window = has(einsum.output, moves.label) && !has(filter, moves.label) &&
                         has(einsum.reduced, slides.label) && has(filter, slides.label);
  if (!is_window || moves.coefficient < 1 || slides.coefficient == 0) return std::nullopt;
  SlidingWindow window{.result = moves.label, .filter = slides.label, .stride = moves.coefficient};
  window.dilation = std::abs(slides.coefficient);
  window.is_reversed = slides.coefficient < 0;
  const std::int64_t last = einsum.labels[slides.label].extent.value() - 1;
  window.first = index.offset - (window.is_reversed ? window.dilation * last : 0);
  return window;
}

}  // namespace

std::optional<Convolution> convolution_of(const EinSum& einsum, std::size_t tensor, std::size_t filter) {
  constexpr std::size_t most_windows = 3;
  const std::optional<LabelList> of_filter = plain_labels(einsum.operands[filter]);
  if (!of_filter || einsum.operands[tensor].pad.value_or(0) != 0) return std::nullopt;
  Convolution found;
  found.tensor = tensor;
  found.filter = filter;
  LabelList of_tensor;
  for (std::size_t d = 0; d < einsum.operands[tensor].indices.size(); ++d) {
    const Index& index = einsum.operands[tensor].indices[d];
    const std::optional<std::size_t> label = plain_label(index);
    std::optional<SlidingWindow> window = label ? std::nullopt : window_of(einsum, index, *of_filter);
    if (!label && !window) return std::nullopt;
    if (window) {
      window->dimension = d;
      of_tensor.insert(of_tensor.end(), {window->result, window->filter});
      found.windows.push_back(*window);
      continue;
    }
    const bool is_channel = has(*of_filter, *label);
    if (is_channel != has(einsum.reduced, *label)) return std::nullopt;
    of_tensor.push_back(*label);
    (is_channel ? found.channels : found.batches).push_back(*label);
  }
  for (const std::size_t label : *of_filter) {
    if (has(of_tensor, label)) continue;
    if (has(einsum.reduced, label)) return std::nullopt;
    found.features.push_back(label);
  }
  const bool is_once = std::set<std::size_t>(of_tensor.begin(), of_tensor.end()).size() == of_tensor.size();
  const bool is_all = of_tensor.size() + found.features.size() == einsum.labels.size();
  if (!is_once || !is_all || found.windows.empty() || found.windows.size() > most_windows) return std::nullopt;
  return found;
}

}  // namespace einrel
