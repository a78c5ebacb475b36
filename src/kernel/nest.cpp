#include "kernel/nest.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace einrel {
namespace {

/// base + sum of coefficient * position over labels.
struct Affine {
  std::int64_t base = 0;
  std::vector<std::int64_t> coefficients;
};

/// Whether the form leaves [0, extent) for some binding of the labels. Throws UserError when it leaves 63 bits: what
/// follows relies on coordinates that do not overflow.
bool may_leave(const Affine& form, const std::vector<Label>& labels, std::int64_t extent) {
  std::int64_t lowest = form.base;
  std::int64_t highest = form.base;
  for (std::size_t label = 0; label < labels.size(); ++label) {
    const std::int64_t reach = checked_multiply(form.coefficients[label], labels[label].extent.value() - 1);
    std::int64_t& end = reach < 0 ? lowest : highest;
    end = checked_add(end, reach);
  }
  return lowest < 0 || highest >= extent;
}

/// Collects the quantities of one EinSum as affine forms of its labels.
class NestBuilder {
 public:
  explicit NestBuilder(const KernelSpec& spec) : einsum_(spec.einsum) {
    add_output(spec.result);
    nest_.readings.resize(spec.operands.size());
    nest_.label_values.resize(einsum_.labels.size());
    std::vector<bool> operand_seen(spec.operands.size(), false);
    std::vector<bool> label_seen(einsum_.labels.size(), false);
    for (const ScalarStep& step : einsum_.body.steps) {
      if (const auto* value = std::get_if<OperandValue>(&step.op); value && !operand_seen[value->operand]) {
        operand_seen[value->operand] = true;
        nest_.readings[value->operand] = reading(einsum_.operands[value->operand], spec.operands[value->operand]);
      }
      if (const auto* value = std::get_if<LabelValue>(&step.op); value && !label_seen[value->label]) {
        label_seen[value->label] = true;
        Affine form = zero();
        form.coefficients[value->label] = 1;
        nest_.label_values[value->label] = add(form);
      }
    }
  }

  LoopNest build() && {
    for (const Affine& form : forms_) nest_.bases.push_back(form.base);
    for (const std::size_t label : einsum_.output) add_loop(label, false);
    for (const std::size_t label : einsum_.reduced) add_loop(label, true);
    return std::move(nest_);
  }

 private:
  Affine zero() const { return {0, std::vector<std::int64_t>(einsum_.labels.size(), 0)}; }

  std::size_t add(Affine form) {
    forms_.push_back(std::move(form));
    return forms_.size() - 1;
  }

  void add_output(const ArrayLayout& result) {
    Affine form = zero();
    invariant(result.strides.size() == einsum_.output.size(), "a result has one dimension per output label");
    for (std::size_t d = 0; d < result.strides.size(); ++d) form.coefficients[einsum_.output[d]] = result.strides[d];
    invariant(add(form) == output_quantity, "the output is the first quantity");
  }

  Reading reading(const Access& access, const ArrayLayout& operand) {
    invariant(access.indices.size() == operand.shape.size(), "an access has one index per dimension of its operand");
    Reading result{operand.dtype, operand.aligned, 0, {}, access.pad.value_or(0)};
    Affine offset = zero();
    for (std::size_t d = 0; d < operand.shape.size(); ++d) {
      Affine coordinate = zero();
      coordinate.base = access.indices[d].offset;
      for (const IndexTerm& term : access.indices[d].terms) {
        std::int64_t& coefficient = coordinate.coefficients[term.label];
        coefficient = checked_add(coefficient, term.coefficient);
      }
      offset.base = add_wrapping(offset.base, multiply_wrapping(coordinate.base, operand.strides[d]));
      for (std::size_t label = 0; label < offset.coefficients.size(); ++label) {
        offset.coefficients[label] = add_wrapping(
            offset.coefficients[label], multiply_wrapping(coordinate.coefficients[label], operand.strides[d]));
      }
      const std::int64_t extent = operand.shape[d].value();
      if (may_leave(coordinate, einsum_.labels, extent)) {
        invariant(access.pad.has_value(), "an access without pad reads outside its operand");
        result.guards.push_back({add(coordinate), extent});
      }
    }
    result.quantity = add(offset);
    return result;
  }

  void add_loop(std::size_t label, bool reduced) {
    const std::int64_t extent = einsum_.labels[label].extent.value();
    if (extent == 1) return;
    Loop loop{extent, reduced, {}};
    for (const Affine& form : forms_) loop.steps.push_back(form.coefficients[label]);
    nest_.loops.push_back(std::move(loop));
  }

  const EinSum& einsum_;
  LoopNest nest_;
  std::vector<Affine> forms_;
};

/// Whether the end of `inner` leads on to the next position of `outer`.
bool can_merge(const Loop& outer, const Loop& inner) {
  if (outer.reduced != inner.reduced) return false;
  for (std::size_t q = 0; q < outer.steps.size(); ++q) {
    if (outer.steps[q] != multiply_wrapping(inner.steps[q], inner.extent)) return false;
  }
  return true;
}

/// Merges one pair; false when there is none. Where positions count (`keep_order`), only neighbours.
bool merge_one(std::vector<Loop>& loops, bool keep_order) {
  for (std::size_t outer = 0; outer < loops.size(); ++outer) {
    for (std::size_t inner = 0; inner < loops.size(); ++inner) {
      if (inner == outer || (keep_order && inner != outer + 1)) continue;
      if (!can_merge(loops[outer], loops[inner])) continue;
      loops[inner].extent = checked_multiply(loops[inner].extent, loops[outer].extent);
      loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(outer));
      return true;
    }
  }
  return false;
}

}  // namespace

void merge_loops(std::vector<Loop>& loops, bool keep_order) {
  while (merge_one(loops, keep_order)) {
  }
}

LoopNest make_nest(const KernelSpec& spec) {
  LoopNest nest = NestBuilder(spec).build();
  merge_loops(nest.loops, finds_position(spec.einsum.reducer));
  return nest;
}

bool is_read_once(const Reading& reading, const std::vector<Loop>& loops) {
  const auto moves = [&](const Loop& loop) { return loop.steps[reading.quantity] != 0; };
  return is_read(reading) && reading.guards.empty() && std::all_of(loops.begin(), loops.end(), moves);
}

std::int64_t position_count(const std::vector<Loop>& loops) {
  std::int64_t count = 1;
  for (const Loop& loop : loops) count = checked_multiply(count, loop.extent);
  return count;
}

Odometer::Odometer(std::vector<Loop> loops, std::vector<std::int64_t> bases)
    : path_(std::make_shared<const Path>(Path{std::move(loops), std::move(bases)})),
      count_(position_count(path_->loops)),
      positions_(path_->loops.size(), 0),
      quantities_(path_->bases) {}

void Odometer::advance() {
  for (std::size_t l = positions_.size(); l-- > 0;) {
    const Loop& loop = path_->loops[l];
    if (++positions_[l] < loop.extent) {
      for (std::size_t q = 0; q < quantities_.size(); ++q) {
        quantities_[q] = add_wrapping(quantities_[q], loop.steps[q]);
      }
      return;
    }
    positions_[l] = 0;
    for (std::size_t q = 0; q < quantities_.size(); ++q) {
      quantities_[q] = add_wrapping(quantities_[q], multiply_wrapping(loop.steps[q], 1 - loop.extent));
    }
  }
}

void Odometer::seek(std::int64_t position) {
  quantities_ = path_->bases;
  for (std::size_t l = positions_.size(); l-- > 0;) {
    const Loop& loop = path_->loops[l];
    positions_[l] = position % loop.extent;
    position /= loop.extent;
    for (std::size_t q = 0; q < quantities_.size(); ++q) {
      quantities_[q] = add_wrapping(quantities_[q], multiply_wrapping(loop.steps[q], positions_[l]));
    }
  }
}

}  // namespace einrel
