#include <fmt/format.h>

#include <algorithm>

#include "einsum/check/check_complex.h"
#include "einsum/check/check_state.h"
#include "einsum/check/check_vertex.h"
#include "einsum/front/build/formula.h"
#include "einsum/passes/complex.h"

namespace einrel::checking {
namespace {

/// The labels of one side, in order.
std::vector<build::Name> flatten(const std::vector<build::Group>& groups) {
  std::vector<build::Name> labels;
  for (const build::Group& group : groups) labels.insert(labels.end(), group.begin(), group.end());
  return labels;
}

class ViewChecker {
 public:
  ViewChecker(CheckState& state, const build::ViewDefinition& view, Span where)
      : state_(state), view_(view), where_(where), from_(flatten(view.from)), to_(flatten(view.to)) {}

  TensorInfo run() {
    const std::size_t errors_before = state_.errors.size();
    for (const auto* side : {&from_, &to_}) {
      for (const build::Name& label : *side) state_.seen_labels.insert(label.text);
    }
    const TensorInfo* source = find_tensor(state_, view_.source);
    check_distinct(state_, from_);
    check_distinct(state_, to_);
    check_same_labels();
    TensorInfo info;
    info.where = view_.name.span;
    const bool usable = source != nullptr && !source->broken && state_.errors.size() == errors_before;
    if (usable) resolve_extents(*source);
    for (const build::Group& group : view_.to) info.extents.push_back(product_of(group));
    if (usable && state_.errors.size() == errors_before) {
      info.dtype = source->dtype;
      info.vertex = state_.builder.add(make_vertex(*source, info));
    }
    info.broken = !usable || state_.errors.size() > errors_before;
    return info;
  }

 private:
  void check_same_labels() {
    const auto missing = [&](const std::vector<build::Name>& here, const std::vector<build::Name>& there,
                             std::string_view side) {
      for (const build::Name& label : here) {
        const bool found =
            std::any_of(there.begin(), there.end(), [&](const build::Name& l) { return l.text == label.text; });
        if (found) continue;
        state_.error(fmt::format("label '{}' of this view is missing on the {}", label.text, side), {label.span},
                     "a view only regroups: every label stands once on each side");
      }
    };
    missing(from_, to_, "left");
    missing(to_, from_, "right");
  }

  MaybeExtent product_of(const build::Group& group) {
    std::int64_t product = 1;
    for (const build::Name& label : group) {
      const auto extent = extents_.find(label.text);
      if (extent == extents_.end() || !extent->second) return std::nullopt;
      if (__builtin_mul_overflow(product, *extent->second, &product)) {
        state_.error("the labels of this group have more than 2^63 elements",
                     {{group.front().span.begin, group.back().span.end}}, "use smaller extents");
        return std::nullopt;
      }
    }
    return product;
  }

  /// By `dims`, an input or --dim.
  MaybeExtent extent_given(const std::string& label) const {
    if (const auto declared = state_.labels.find(label); declared != state_.labels.end())
      return declared->second.extent;
    const auto given = state_.environment.dims.find(label);
    return given == state_.environment.dims.end() ? MaybeExtent() : given->second;
  }

  void resolve_extents(const TensorInfo& source) {
    for (const build::Name& label : from_) extents_[label.text] = extent_given(label.text);
    if (source.extents.size() != view_.from.size()) {
      state_.error(fmt::format("'{}' has {} dimension{} but is viewed with {}", view_.source.text,
                               source.extents.size(), source.extents.size() == 1 ? "" : "s", view_.from.size()),
                   {view_.source.span}, "give one label or group per dimension");
      return;
    }
    for (std::size_t d = 0; d < view_.from.size(); ++d) resolve_group(view_.from[d], source.extents[d], d);
  }

  /// Finds the one extent of a group that is open and checks that the product fits the dimension.
  void resolve_group(const build::Group& group, const MaybeExtent& whole, std::size_t dimension) {
    const Span where = group.empty() ? view_.source.span : Span{group.front().span.begin, group.back().span.end};
    std::vector<build::Name> open;
    std::int64_t known = 1;
    for (const build::Name& label : group) {
      const MaybeExtent& extent = extents_.at(label.text);
      const bool awaits_data = state_.labels.count(label.text) != 0;
      if (!extent && !awaits_data) open.push_back(label);
      if (!extent && awaits_data && !whole) return;
      if (extent && __builtin_mul_overflow(known, *extent, &known)) known = 0;
    }
    if (open.size() > 1) {
      state_.error(fmt::format("only one extent of a group can be found, but '{}' and '{}' are both open", open[0].text,
                               open[1].text),
                   {where}, fmt::format("declare one: dims {0}=..., or give --dim {0}=N", open[0].text));
      return;
    }
    if (!whole) return;
    if (open.size() == 1 && known == 0) {
      state_.error(
          fmt::format("the extent of '{}' cannot be found: another label of its group has extent 0", open[0].text),
          {where}, fmt::format("declare it: dims {}=...", open[0].text));
      return;
    }
    if (open.size() == 1) {
      const bool divides = *whole % known == 0;
      if (!divides) {
        state_.error(fmt::format("dimension {} of '{}' has extent {}, which {} does not divide", dimension + 1,
                                 view_.source.text, *whole, known),
                     {where}, "the extents of a group multiply to the dimension");
        return;
      }
      extents_[open[0].text] = *whole / known;
    } else if (known != *whole) {
      state_.error(fmt::format("the labels of this group have {} elements, but dimension {} of '{}' has extent {}",
                               known, dimension + 1, view_.source.text, *whole),
                   {where}, "the extents of a group multiply to the dimension");
    }
  }

  Vertex make_vertex(const TensorInfo& source, const TensorInfo& info) const {
    View view;
    std::map<std::string, std::size_t> position;
    for (const build::Name& label : to_) {
      position[label.text] = view.labels.size();
      view.labels.push_back({display_label(label.text), extent_or_open(extents_.at(label.text))});
    }
    make_names_unique(view.labels);
    const auto positions = [&](const std::vector<build::Group>& groups) {
      std::vector<std::vector<std::size_t>> result;
      for (const build::Group& group : groups) {
        result.emplace_back();
        for (const build::Name& label : group) result.back().push_back(position.at(label.text));
      }
      return result;
    };
    view.from = positions(view_.from);
    view.to = positions(view_.to);
    Shape bound;
    for (const MaybeExtent& extent : info.extents) bound.push_back(extent_or_open(extent));
    return {view_.name.text, source.dtype, bound, {source.vertex}, std::move(view), where_};
  }

  CheckState& state_;
  const build::ViewDefinition& view_;
  Span where_;
  std::vector<build::Name> from_;
  std::vector<build::Name> to_;
  std::map<std::string, MaybeExtent> extents_;
};

}  // namespace

void check_view(CheckState& state, const build::ViewDefinition& view, Span where) {
  state.current = view.name.text;
  const auto source = state.tensors.find(view.source.text);
  const bool is_complex = source != state.tensors.end() && source->second.is_complex;
  build::ViewDefinition with_parts = view;
  if (is_complex) {
    declare_parts(state, 0);
    for (auto* const side : {&with_parts.from, &with_parts.to}) side->push_back(build::names({parts_label(0)}));
  }
  TensorInfo info = ViewChecker(state, with_parts, where).run();
  info.is_complex = is_complex;
  state.tensors.insert({view.name.text, std::move(info)});
}

}  // namespace einrel::checking
