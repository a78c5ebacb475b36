#include "kernel/movement/select_nest.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "einsum/graph/selection.h"
#include "kernel/elementwise/block_ops.h"
#include "kernel/movement/select_loops.h"

namespace einrel::selecting {
namespace {

/// base + sum of coefficient * position over labels.
struct Affine {
  std::int64_t base = 0;
  std::vector<std::int64_t> coefficients;
};

class Builder {
 public:
  Builder(const KernelSpec& spec, const Selected& found)
      : spec_(spec),
        einsum_(spec.einsum),
        found_(found),
        is_selected_(einsum_.labels.size(), false),
        is_fixed_(einsum_.labels.size(), false) {
    for (const Selection& selection : found.selections) is_selected_[selection.label] = true;
  }

  SelectNest run() {
    take_source();
    add_result();
    add_source();
    add(zero());  // keys, which are counted when all labels are known that they have
    for (const Selection& selection : found_.selections) add_selector(selection);
    add_keys();
    add_loops();
    return std::move(nest_);
  }

 private:
  Affine zero() const { return {0, std::vector<std::int64_t>(einsum_.labels.size(), 0)}; }

  std::size_t add(Affine form) {
    forms_.push_back(std::move(form));
    return forms_.size() - 1;
  }

  void take_source() {
    const ScalarStep& step = found_.value.steps.front();
    nest_.source.dtype = spec_.result.dtype;
    if (const auto* const value = std::get_if<OperandValue>(&step.op)) {
      nest_.source.operand = value->operand;
      nest_.source.dtype = spec_.operands[value->operand].dtype;
    }
    if (const auto* const scalar = std::get_if<ScalarValue>(&step.op))
      nest_.source.number = spec_.scalars.at(scalar->name);
    if (const auto* const constant = std::get_if<Constant>(&step.op))
      nest_.source.number = std::visit([](auto number) { return static_cast<double>(number); }, constant->value);
  }

  void add_result() {
    Affine form = zero();
    for (std::size_t d = 0; d < einsum_.output.size(); ++d)
      form.coefficients[einsum_.output[d]] = spec_.result.strides[d];
    add(std::move(form));
  }

  Affine coordinate(const Index& index) const {
    Affine form = zero();
    form.base = index.offset;
    for (const IndexTerm& term : index.terms)
      form.coefficients[term.label] = checked_add(form.coefficients[term.label], term.coefficient);
    return form;
  }

  bool may_leave(const Affine& form, std::int64_t extent) const {
    std::int64_t lowest = form.base;
    std::int64_t highest = form.base;
    for (std::size_t l = 0; l < form.coefficients.size(); ++l) {
      const std::int64_t reach = checked_multiply(form.coefficients[l], einsum_.labels[l].extent.value() - 1);
      std::int64_t& end = reach < 0 ? lowest : highest;
      end = checked_add(end, reach);
    }
    return lowest < 0 || highest >= extent;
  }

  static void add_scaled(Affine& sum, const Affine& form, std::int64_t factor) {
    sum.base = add_wrapping(sum.base, multiply_wrapping(form.base, factor));
    for (std::size_t l = 0; l < sum.coefficients.size(); ++l)
      sum.coefficients[l] = add_wrapping(sum.coefficients[l], multiply_wrapping(form.coefficients[l], factor));
  }

  void add_source() {
    Affine offset = zero();
    if (const std::optional<std::size_t> operand = nest_.source.operand) {
      const ArrayLayout& layout = spec_.operands[*operand];
      const Access& access = einsum_.operands[*operand];
      for (std::size_t d = 0; d < layout.shape.size(); ++d) {
        const Affine at = coordinate(access.indices[d]);
        add_scaled(offset, at, layout.strides[d]);
        if (!may_leave(at, layout.shape[d].value())) continue;
        invariant(access.pad.has_value(), "an access without pad reads outside its operand");
        guards_.emplace_back(at, layout.shape[d].value());
        fix(at);
      }
    }
    add(std::move(offset));
  }

  void fix(const Affine& form) {
    for (std::size_t l = 0; l < form.coefficients.size(); ++l) {
      if (form.coefficients[l] != 0 && !is_selected_[l]) is_fixed_[l] = true;
    }
  }

  void add_selector(const Selection& selection) {
    Selector selector;
    selector.extent = einsum_.labels[selection.label].extent.value();
    const Affine form = coordinate(selection.position.labels);
    fix(form);
    selector.quantity = add(form);
    for (const ElementTerm& term : selection.position.elements) {
      const ArrayLayout& layout = spec_.operands[term.operand];
      Affine offset = zero();
      for (std::size_t d = 0; d < layout.shape.size(); ++d) {
        add_scaled(offset, coordinate(einsum_.operands[term.operand].indices[d]), layout.strides[d]);
      }
      fix(offset);
      selector.elements.push_back({term.operand, layout.dtype, add(std::move(offset)), term.coefficient});
    }
    selected_.push_back(selection.label);
    nest_.selectors.push_back(std::move(selector));
  }

  /// Numbers the labels of the result that positions decide, and gives selectors their steps.
  void add_keys() {
    for (const auto& [form, extent] : guards_) nest_.guards.push_back({add(form), extent});
    const bool has_free = std::any_of(einsum_.reduced.begin(), einsum_.reduced.end(),
                                      [&](std::size_t label) { return !is_selected_[label]; });
    const bool scatters =
        std::any_of(einsum_.output.begin(), einsum_.output.end(), [&](std::size_t l) { return is_selected_[l]; });
    nest_.picks = !has_free && !scatters;
    std::int64_t stride = 1;
    for (std::size_t d = einsum_.output.size(); d-- > 0;) {
      const std::size_t label = einsum_.output[d];
      if (!is_selected_[label] && !is_fixed_[label]) continue;
      const std::int64_t extent = einsum_.labels[label].extent.value();
      forms_[key_quantity].coefficients[label] = stride;
      stride = checked_multiply(stride, extent);
      if (extent > 1) nest_.keys.insert(nest_.keys.begin(), Loop{extent, false, {forms_[0].coefficients[label]}});
    }
    merge_loops(nest_.keys, true);
    for (std::size_t s = 0; s < selected_.size(); ++s) {
      Selector& selector = nest_.selectors[s];
      for (std::size_t q = 0; q < selector.steps.size(); ++q)
        selector.steps[q] = std::exchange(forms_[q].coefficients[selected_[s]], 0);
      for (const Guard& guard : nest_.guards)
        selector.guard_steps.push_back(std::exchange(forms_[guard.quantity].coefficients[selected_[s]], 0));
    }
    for (const Affine& form : forms_) nest_.bases.push_back(form.base);
  }

  void add_loops() {
    for (const std::size_t label : einsum_.output) {
      if (!is_selected_[label]) add_loop(is_fixed_[label] ? nest_.positions : nest_.batches, label);
    }
    for (const std::size_t label : einsum_.reduced) {
      if (!is_selected_[label]) add_loop(nest_.positions, label);
    }
    merge_loops(nest_.batches, true);
    merge_loops(nest_.positions, true);
    lengthen_runs();
    nest_.row = Loop{1, false, std::vector<std::int64_t>(nest_.bases.size(), 0)};
    const auto row = std::find_if(nest_.batches.begin(), nest_.batches.end(),
                                  [](const Loop& loop) { return loop.steps[result_quantity] == 1; });
    if (row == nest_.batches.end()) return;
    nest_.row = *row;
    nest_.batches.erase(row);
  }

  /// Offsets are found along the innermost loop: the longest, where that is short.
  void lengthen_runs() {
    constexpr std::int64_t long_enough = 32;
    std::vector<Loop>& loops = nest_.positions;
    if (loops.empty() || loops.back().extent >= long_enough) return;
    const auto longest =
        std::max_element(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.extent < b.extent; });
    std::rotate(longest, longest + 1, loops.end());
  }

  void add_loop(std::vector<Loop>& loops, std::size_t label) const {
    const std::int64_t extent = einsum_.labels[label].extent.value();
    if (extent == 1) return;
    Loop loop{extent, false, {}};
    for (const Affine& form : forms_) loop.steps.push_back(form.coefficients[label]);
    loops.push_back(std::move(loop));
  }

  const KernelSpec& spec_;
  const EinSum& einsum_;
  const Selected& found_;
  std::vector<bool> is_selected_;
  std::vector<bool> is_fixed_;  ///< labels that decide what is selected
  std::vector<std::size_t> selected_;
  std::vector<Affine> forms_;
  std::vector<std::pair<Affine, std::int64_t>> guards_;
  SelectNest nest_;
};

template <class T>
void add_elements(const std::byte* data, std::int64_t offset, std::int64_t step, std::int64_t coefficient,
                  std::int64_t count, std::int64_t* sums) {
  const std::byte* at = data + offset * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t i = 0; i < count; ++i, at += step * static_cast<std::int64_t>(sizeof(T))) {
    T element;
    std::memcpy(&element, at, sizeof(T));
    sums[i] = add_wrapping(sums[i], multiply_wrapping(coefficient, static_cast<std::int64_t>(element)));
  }
}

using Values = std::array<std::int64_t, Run::longest>;

}  // namespace

std::variant<SelectNest, std::string> select_nest(const KernelSpec& spec) {
  const std::optional<Selected> found = selected(spec.einsum);
  if (!found) return "it selects no label";
  std::vector<DType> dtypes;
  for (const ArrayLayout& operand : spec.operands) dtypes.push_back(operand.dtype);
  std::string reason = not_selected_as_it_is(spec.einsum, *found, dtypes, spec.result.dtype);
  if (!reason.empty()) return reason;
  return Builder(spec, *found).run();
}

void find_offsets(const SelectNest& nest, const std::byte* const* operands, const std::int64_t* quantities,
                  const Loop& inner, Run& run) {
  Values is_outside{};
  Values position;
  std::vector<Values> guards(nest.guards.size());
  const auto fill = [&](std::size_t quantity, Values& values) {
    ramp_block(quantities[quantity], inner.steps[quantity], values.data(), static_cast<std::size_t>(run.count));
  };
  fill(result_quantity, run.result);
  fill(source_quantity, run.source);
  fill(key_quantity, run.key);
  for (std::size_t g = 0; g < guards.size(); ++g) fill(nest.guards[g].quantity, guards[g]);
  for (const Selector& selector : nest.selectors) {
    fill(selector.quantity, position);
    for (const Element& element : selector.elements) {
      const auto add = element.dtype == DType::i32 ? add_elements<std::int32_t> : add_elements<std::int64_t>;
      add(operands[element.operand], quantities[element.quantity], inner.steps[element.quantity], element.coefficient,
          run.count, position.data());
    }
    select_loops().note_outside(position.data(), selector.extent, run.count, is_outside.data(), position.data());
    for (const auto& [values, step] :
         {std::pair(&run.result, selector.steps[result_quantity]),
          std::pair(&run.source, selector.steps[source_quantity]), std::pair(&run.key, selector.steps[key_quantity])}) {
      if (step != 0) select_loops().add_scaled(position.data(), step, run.count, values->data());
    }
    for (std::size_t g = 0; g < guards.size(); ++g)
      select_loops().add_scaled(position.data(), selector.guard_steps[g], run.count, guards[g].data());
  }
  for (std::size_t g = 0; g < guards.size(); ++g)
    select_loops().note_outside(guards[g].data(), nest.guards[g].extent, run.count, is_outside.data(),
                                guards[g].data());
  for (std::size_t i = 0; i < static_cast<std::size_t>(run.count); ++i) run.key[i] |= is_outside[i];
}

}  // namespace einrel::selecting
