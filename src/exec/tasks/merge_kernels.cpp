#include "exec/tasks/merge_kernels.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "einsum/graph/vertex_facts.h"

namespace einrel {
namespace {

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

/// Computes element-wise steps in the only one that reads each, where that takes each element once.
class Inlining {
 public:
  explicit Inlining(TaskKernel& kernel)
      : kernel_(kernel), arguments_(kernel.steps.arguments.size()), uses_(kernel.steps.steps.size()) {
    for (std::size_t s = 0; s < uses_.size(); ++s) {
      for (const std::size_t read : steps()[s].reads) {
        if (read < arguments_) continue;
        Use& use = uses_[read - arguments_];
        ++use.reads;
        use.reader = s;
      }
    }
    for (const std::size_t result : kernel.results) uses_[result].is_result = true;
  }

  /// Per step of before, the step that it is now, or that it is computed in.
  std::vector<std::size_t> run() {
    for (std::size_t s = 0; s < uses_.size(); ++s) uses_[s].is_inlined = inline_step(s);
    return drop_inlined();
  }

 private:
  /// What becomes of the value of a step.
  struct Use {
    std::size_t reads = 0;
    std::size_t reader = 0;  ///< the last step that reads it
    bool is_result = false;
    bool is_inlined = false;
  };

  std::vector<KernelStep>& steps() { return kernel_.steps.steps; }

  /// False where that cannot be.
  bool inline_step(std::size_t s) {
    const Use& use = uses_[s];
    if (use.is_result || use.reads != 1) return false;
    KernelStep& reader = steps()[use.reader];
    const auto read = std::find(reader.reads.begin(), reader.reads.end(), arguments_ + s);
    const auto operand = static_cast<std::size_t>(read - reader.reads.begin());
    const EinSum* const inner = einsum_of(steps()[s]);
    const EinSum* const outer = einsum_of(reader);
    if (inner == nullptr || outer == nullptr || inner->reducer) return false;
    if (inner->labels.size() != inner->output.size() || inner->output.size() != outer->labels.size()) return false;
    if (inner->body.steps.size() == 1) return false;  // what only moves elements has kernels that do so in tiles
    constexpr std::size_t most_steps = 48;  // of a body: long chains of statements are made ready as several kernels
    if (inner->body.steps.size() + outer->body.steps.size() > most_steps) return false;
    const auto labels = labels_of(outer->operands[operand]);
    const DType type = steps()[s].dtype;
    const auto place = place_of(outer->body, operand, type);
    if (!labels || !place || inner->body.steps.back().type != type) return false;
    EinSum together = with_operand_computed(*outer, operand, *place, *inner, *labels);
    std::vector<std::size_t> values = reader.reads;
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(operand));
    values.insert(values.end(), steps()[s].reads.begin(), steps()[s].reads.end());
    if (!has_all_extents(together, values)) return false;
    reader.op = std::move(together);
    reader.reads = std::move(values);
    for (const std::size_t value : steps()[s].reads) {
      if (value >= arguments_ && uses_[value - arguments_].reader == s) uses_[value - arguments_].reader = use.reader;
    }
    return true;
  }

  std::vector<std::size_t> drop_inlined() {
    std::vector<std::size_t> now(uses_.size());
    std::size_t kept = 0;
    for (std::size_t s = 0; s < uses_.size(); ++s) {
      if (uses_[s].is_inlined) continue;
      now[s] = kept;
      for (std::size_t& read : steps()[s].reads) read = read < arguments_ ? read : arguments_ + now[read - arguments_];
      if (kept != s) steps()[kept] = std::move(steps()[s]);
      if (!kernel_.nodes.empty()) kernel_.nodes[kept] = kernel_.nodes[s];
      ++kept;
    }
    steps().resize(kept);
    if (!kernel_.nodes.empty()) kernel_.nodes.resize(kept);
    for (std::size_t& result : kernel_.results) result = now[result];
    for (std::size_t s = uses_.size(); s-- > 0;) now[s] = uses_[s].is_inlined ? now[uses_[s].reader] : now[s];
    return now;
  }

  TaskKernel& kernel_;
  std::size_t arguments_;
  std::vector<Use> uses_;  // of the values of steps
};

}  // namespace

MergedKernels merged(const std::vector<MergedKernel>& kernels, std::vector<DType> arguments) {
  const std::size_t count = arguments.size();
  MergedKernels made{{{kernels.back().kernel.name, std::move(arguments), {}}, {}, {}}, {}};
  TaskKernel& all = made.kernel;
  for (const auto& [kernel, reads, wanted, node] : kernels) {
    std::vector<std::size_t> values;
    for (const std::size_t read : reads) values.push_back(read < count ? read : count + made.steps[read - count]);
    for (KernelStep step : kernel.steps) {
      for (std::size_t& read : step.reads) read = values[read];
      values.push_back(count + all.steps.steps.size());
      if (node) all.nodes.push_back(*node);
      all.steps.steps.push_back(std::move(step));
    }
    made.steps.push_back(values.back() - count);
    if (wanted) all.results.push_back(made.steps.back());
  }
  const std::vector<std::size_t> now = Inlining(all).run();
  for (std::size_t& step : made.steps) step = now[step];
  return made;
}

}  // namespace einrel
