#include "exec/merge_kernels.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "einsum/vertex_facts.h"

namespace einrel {
namespace {

/// Where a step reads a value.
struct Read {
  std::size_t step = 0;
  std::size_t operand = 0;
};

std::vector<Read> reads_of(const Kernel& kernel, std::size_t value) {
  std::vector<Read> reads;
  for (std::size_t s = 0; s < kernel.steps.size(); ++s) {
    for (std::size_t o = 0; o < kernel.steps[s].reads.size(); ++o) {
      if (kernel.steps[s].reads[o] == value) reads.push_back({s, o});
    }
  }
  return reads;
}

/// The labels that read an operand of this rank element by element, each once; nothing for other accesses.
std::optional<std::vector<std::size_t>> labels_of(const Access& access) {
  std::vector<std::size_t> labels;
  for (const Index& index : access.indices) {
    const std::optional<std::size_t> label = plain_label(index);
    if (access.pad || !label || std::find(labels.begin(), labels.end(), *label) != labels.end()) return std::nullopt;
    labels.push_back(*label);
  }
  return labels;
}

/// Where the body takes the operand, if it does so once and as it is.
std::optional<std::size_t> place_of(const ScalarExpr& body, std::size_t operand, DType type) {
  std::optional<std::size_t> place;
  for (std::size_t i = 0; i < body.steps.size(); ++i) {
    const auto* const value = std::get_if<OperandValue>(&body.steps[i].op);
    if (value == nullptr || value->operand != operand) continue;
    if (place || body.steps[i].type != type) return std::nullopt;
    place = i;
  }
  return place;
}

/// `inner` in place of that operand, whose labels its output has become.
EinSum with_operand_computed(EinSum outer, std::size_t operand, std::size_t place, const EinSum& inner,
                             const std::vector<std::size_t>& labels) {
  std::vector<std::size_t> label_of(inner.labels.size());
  for (std::size_t d = 0; d < inner.output.size(); ++d) {
    label_of[inner.output[d]] = labels[d];
    Extent& extent = outer.labels[labels[d]].extent;
    if (extent.is_open()) extent = inner.labels[inner.output[d]].extent;
  }
  const std::size_t first = outer.operands.size() - 1;
  outer.operands.erase(outer.operands.begin() + static_cast<std::ptrdiff_t>(operand));
  for (Access access : inner.operands) {
    for (Index& index : access.indices) {
      for (IndexTerm& term : index.terms) term.label = label_of[term.label];
    }
    outer.operands.push_back(std::move(access));
  }
  for (ScalarStep& step : outer.body.steps) {
    auto* const value = std::get_if<OperandValue>(&step.op);
    if (value != nullptr && value->operand > operand) --value->operand;
  }
  std::vector<ScalarStep> computed = inner.body.steps;
  for (ScalarStep& step : computed) {
    if (auto* const value = std::get_if<OperandValue>(&step.op)) value->operand += first;
    if (auto* const value = std::get_if<LabelValue>(&step.op)) value->label = label_of[value->label];
  }
  std::vector<ScalarStep>& steps = outer.body.steps;
  const auto at = steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(place));
  steps.insert(at, computed.begin(), computed.end());
  return outer;
}

bool has_all_extents(const EinSum& einsum, const std::vector<std::size_t>& reads) {
  std::vector<bool> known;
  for (const Label& label : einsum.labels) known.push_back(!label.extent.is_open());
  for (std::size_t o = 0; o < einsum.operands.size(); ++o) {
    for (std::size_t d = 0; d < einsum.operands[o].indices.size(); ++d) {
      if (const auto label = measured_label(einsum, reads, o, d)) known[*label] = true;
    }
  }
  return std::all_of(known.begin(), known.end(), [](bool is_known) { return is_known; });
}

/// Computes an element-wise step in the only one that reads it, where that takes each element once; false where that
/// cannot be.
bool inline_step(TaskKernel& kernel, std::size_t s) {
  Kernel& all = kernel.steps;
  const std::size_t arguments = all.arguments.size();
  if (std::find(kernel.results.begin(), kernel.results.end(), s) != kernel.results.end()) return false;
  const std::vector<Read> reads = reads_of(all, arguments + s);
  if (reads.size() != 1) return false;
  const auto [reader, operand] = reads.front();
  const EinSum* const inner = einsum_of(all.steps[s]);
  const EinSum* const outer = einsum_of(all.steps[reader]);
  if (inner == nullptr || outer == nullptr || inner->reducer) return false;
  if (inner->labels.size() != inner->output.size() || inner->output.size() != outer->labels.size()) return false;
  if (inner->body.steps.size() == 1) return false;  // what only moves elements has kernels that do so in tiles
  constexpr std::size_t most_steps = 48;  // of a body: long chains of statements are made ready as several kernels
  if (inner->body.steps.size() + outer->body.steps.size() > most_steps) return false;
  const auto labels = labels_of(outer->operands[operand]);
  const DType type = all.steps[s].dtype;
  const auto place = place_of(outer->body, operand, type);
  if (!labels || !place || inner->body.steps.back().type != type) return false;
  EinSum together = with_operand_computed(*outer, operand, *place, *inner, *labels);
  std::vector<std::size_t> values = all.steps[reader].reads;
  values.erase(values.begin() + static_cast<std::ptrdiff_t>(operand));
  values.insert(values.end(), all.steps[s].reads.begin(), all.steps[s].reads.end());
  if (!has_all_extents(together, values)) return false;
  all.steps[reader].op = std::move(together);
  all.steps[reader].reads = std::move(values);
  all.steps.erase(all.steps.begin() + static_cast<std::ptrdiff_t>(s));
  if (!kernel.nodes.empty()) kernel.nodes.erase(kernel.nodes.begin() + static_cast<std::ptrdiff_t>(s));
  for (KernelStep& step : all.steps) {
    for (std::size_t& read : step.reads) read -= read > arguments + s ? 1U : 0U;
  }
  for (std::size_t& result : kernel.results) result -= result > s ? 1U : 0U;
  return true;
}

}  // namespace

TaskKernel merged(const std::vector<MergedKernel>& kernels, std::vector<DType> arguments) {
  const std::size_t count = arguments.size();
  TaskKernel all{{kernels.back().kernel.name, std::move(arguments), {}}, {}, {}};
  std::vector<std::size_t> results;  // of the kernels, as values
  for (const auto& [kernel, reads, wanted, node] : kernels) {
    std::vector<std::size_t> values;
    for (const std::size_t read : reads) values.push_back(read < count ? read : results[read - count]);
    for (KernelStep step : kernel.steps) {
      for (std::size_t& read : step.reads) read = values[read];
      values.push_back(count + all.steps.steps.size());
      if (node) all.nodes.push_back(*node);
      all.steps.steps.push_back(std::move(step));
    }
    results.push_back(values.back());
    if (wanted) all.results.push_back(values.back() - count);
  }
  for (std::size_t s = 0; s < all.steps.steps.size();) s += inline_step(all, s) ? 0U : 1U;
  return all;
}

}  // namespace einrel
