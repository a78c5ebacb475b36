#include "export/vertex_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "export/convolution.h"
#include "export/formula.h"
#include "export/python_names.h"

namespace einrel {
namespace {

using LabelList = std::vector<std::size_t>;

/// What a subscript of an einsum may be.
constexpr std::string_view all_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

std::size_t place_of(const LabelList& list, std::size_t label) {
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), label) - list.begin());
}
bool has_label(const LabelList& list, std::size_t label) { return place_of(list, label) < list.size(); }

/// An array with these labels as dimensions, beside others whose dimensions are those of `all`: transposed, and with
/// new dimensions of 1 between.
std::string aligned(std::string text, const LabelList& labels, const LabelList& all, const ArrayLibrary& library) {
  LabelList to(labels.size());
  std::iota(to.begin(), to.end(), std::size_t{0});
  std::sort(to.begin(), to.end(),
            [&](std::size_t a, std::size_t b) { return place_of(all, labels[a]) < place_of(all, labels[b]); });
  if (!std::is_sorted(to.begin(), to.end())) text = transposed(text, to, library);
  std::vector<std::string> index;
  bool has_new = false;
  for (const std::size_t label : all) {
    const bool is_there = has_label(labels, label);
    if (!is_there && index.empty()) continue;
    index.emplace_back(is_there ? ":" : "None");
    has_new = has_new || !is_there;
  }
  return has_new ? fmt::format("{}[{}]", text, fmt::join(index, ", ")) : text;
}

/// The two factors of which a formula is the product, if it is one of floats.
std::optional<std::pair<ScalarExpr, ScalarExpr>> two_factors(const ScalarExpr& expr) {
  const auto* const root = std::get_if<ApplyBinary>(&expr.steps.back().op);
  if (root == nullptr || root->function != BinaryFunction::multiply || !is_float(expr.type())) return std::nullopt;
  const auto second = static_cast<std::ptrdiff_t>(subexpression_starts(expr)[expr.steps.size() - 2]);
  return std::pair(ScalarExpr{{expr.steps.begin(), expr.steps.begin() + second}},
                   ScalarExpr{{expr.steps.begin() + second, expr.steps.end() - 1}});
}

/// The factors of a product, each a subexpression; one where it is none.
std::vector<ScalarExpr> factors_of(const ScalarExpr& body) {
  std::vector<ScalarExpr> factors{body};
  for (std::size_t f = 0; f < factors.size();) {
    std::optional<std::pair<ScalarExpr, ScalarExpr>> two = two_factors(factors[f]);
    if (!two) {
      ++f;
      continue;
    }
    factors[f] = std::move(two->first);
    factors.insert(factors.begin() + static_cast<std::ptrdiff_t>(f) + 1, std::move(two->second));
  }
  return factors;
}

class EinSumWriter {
 public:
  EinSumWriter(const DeviceVertex& of, const ArrayLibrary& library, ModuleNeeds& needs)
      : of_(of), einsum_(std::get<EinSum>(of.vertex.op)), library_(library), needs_(needs) {
    for (std::size_t l = 0; l < einsum_.labels.size(); ++l)
      extents_.push_back(einsum_.labels[l].extent.value() / of.plan.grid[l]);
    all_ = einsum_.output;
    all_.insert(all_.end(), einsum_.reduced.begin(), einsum_.reduced.end());
  }

  std::vector<std::string> lines(const std::string& name) {
    if (!einsum_.reducer)
      return {fmt::format("{} = {}", name, stored(whole(einsum_.body, all_), einsum_.body.type()).text)};
    std::vector<std::string> lines{fmt::format("{} = {}", name, reduced().text)};
    const bool is_truth = result_of(*einsum_.reducer) == ReducedAs::truth;
    if (partial_sites(of_.vertex, of_.plan) > 1) {
      if (is_truth) {
        const std::string bytes = fmt::format("{}.uint8", library_.module);
        lines.push_back(fmt::format("{} = {}", name, cast_text({name}, bytes, library_).text));
      }
      lines.push_back(fmt::format("{} = {}", name, added_up(name)));
      if (is_truth) lines.push_back(fmt::format("{0} = {0} != 0", name));
    }
    const DType type = reduced_type(*einsum_.reducer, einsum_.body.type());
    PythonText finished{name};
    if (*einsum_.reducer == Reducer::mean) {
      double count = 1;
      for (const std::size_t label : einsum_.reduced)
        count *= static_cast<double>(einsum_.labels[label].extent.value());
      finished = {fmt::format("{} / {}", name, count), Binding::product};
    }
    finished = stored(finished, type);
    if (finished.text != name) lines.push_back(fmt::format("{} = {}", name, finished.text));
    return lines;
  }

 private:
  PythonText stored(const PythonText& array, DType type) const {
    const DType to = of_.vertex.dtype;
    if (type == to) return array;
    const auto* const round = std::get_if<Round>(&einsum_.body.steps.back().op);
    const bool is_rounded = !einsum_.reducer && round != nullptr && round->to == to;
    const bool needs_rounding = is_narrow(to) && !is_rounded && !(library_.casts_round && type == DType::f32);
    return cast_text(needs_rounding ? PythonText{library_.rounded(array, type, to, needs_)} : array,
                     python_type(library_, to), library_);
  }

  std::vector<std::int64_t> shape_of(const LabelList& labels) const {
    std::vector<std::int64_t> shape;
    for (const std::size_t label : labels) shape.push_back(extents_[label]);
    return shape;
  }

  /// The label's positions in the whole tensor.
  std::string positions(std::size_t label, const LabelList& all) {
    needs_.positions = true;
    const auto axes = axes_of(of_.mesh, of_.plan.grid[label], of_.plan.strides[label]);
    const auto and_if_any = [&](const std::string& text) { return axes->empty() ? "" : ", " + text; };
    std::string text = fmt::format(fmt::runtime(library_.positions), fmt::arg("count", extents_[label]),
                                   fmt::arg("and_axes", and_if_any(axes_tuple(*axes))),
                                   fmt::arg("and_names", and_if_any(axis_names(*axes))));
    return aligned(std::move(text), {label}, all, library_);
  }

  LabelList labels_of(const ScalarExpr& expr) const {
    std::set<std::size_t> found;
    for (const ScalarStep& step : expr.steps) {
      if (const auto label = label_read(step)) found.insert(*label);
      if (const auto operand = operand_read(step)) {
        for (const Index& index : einsum_.operands[*operand].indices) {
          for (const IndexTerm& term : index.terms) found.insert(term.label);
        }
      }
    }
    LabelList labels;
    for (const std::size_t label : all_) {
      if (found.count(label) != 0) labels.push_back(label);
    }
    return labels;
  }

  std::string read(std::size_t operand, const LabelList& all) {
    const DType type = of_.graph[of_.vertex.inputs[operand]].dtype;
    const std::string text = elements(operand, all);
    return is_narrow(type) ? widened(text) : text;
  }

  std::string widened(const std::string& array) const {
    return cast_text({array}, python_type(library_, DType::f32), library_).text;
  }

  /// Whether an index walks through the part of the dimension that the site has, one by one.
  bool walks(std::size_t operand, std::size_t dimension) const {
    const std::optional<std::size_t> label = plain_label(einsum_.operands[operand].indices[dimension]);
    return label && einsum_.labels[*label].extent == of_.graph[of_.vertex.inputs[operand]].bound[dimension];
  }

  std::string elements(std::size_t operand, const LabelList& all) {
    const Access& access = einsum_.operands[operand];
    const Shape& bound = of_.graph[of_.vertex.inputs[operand]].bound;
    LabelList labels;
    std::vector<std::string> slices;
    bool is_plain = true;
    bool has_constant = false;
    for (std::size_t d = 0; d < access.indices.size(); ++d) {
      const Index& index = access.indices[d];
      const bool is_constant = index.terms.empty() && index.offset >= 0 && index.offset < bound[d].value();
      has_constant = has_constant || is_constant;
      slices.push_back(is_constant ? fmt::format("{}", index.offset) : ":");
      if (is_constant) continue;
      is_plain = is_plain && walks(operand, d) && !has_label(labels, *plain_label(index));
      if (is_plain) labels.push_back(*plain_label(index));
    }
    const std::string& array = of_.operands[operand];
    if (!is_plain) return gathered(operand, all);
    return aligned(has_constant ? fmt::format("{}[{}]", array, fmt::join(slices, ", ")) : array, labels, all, library_);
  }

  std::string gathered(std::size_t operand, const LabelList& all) {
    needs_.read = true;
    const Access& access = einsum_.operands[operand];
    std::vector<std::string> indices;
    for (std::size_t d = 0; d < access.indices.size(); ++d) {
      const Index& index = access.indices[d];
      if (walks(operand, d)) {
        const std::size_t label = *plain_label(index);
        std::string here = fmt::format(fmt::runtime(library_.arange), fmt::arg("count", extents_[label]));
        indices.push_back(aligned(std::move(here), {label}, all, library_));
        continue;
      }
      std::vector<std::string> terms;
      for (const IndexTerm& term : index.terms) {
        const std::string at = positions(term.label, all);
        terms.push_back(term.coefficient == 1 ? at : fmt::format("{} * {}", term.coefficient, at));
      }
      if (index.offset != 0 || terms.empty()) terms.push_back(fmt::format("{}", index.offset));
      indices.push_back(fmt::format("{}", fmt::join(terms, " + ")));
    }
    return fmt::format("_read({}, {}{})", of_.operands[operand], python_tuple(indices),
                       access.pad ? fmt::format(", {}", python_number(*access.pad, library_.module)) : "");
  }

  PythonText formula(const ScalarExpr& expr, const LabelList& all) {
    return formula_text(expr,
                        {[&](std::size_t operand) { return PythonText{read(operand, all)}; },
                         [&](std::size_t label) { return PythonText{positions(label, all)}; }, of_.scalar, of_.stream},
                        library_, needs_);
  }

  /// Of all these labels, also where no value depends on one of them.
  PythonText whole(const ScalarExpr& expr, const LabelList& all) {
    PythonText text = formula(expr, all);
    if (labels_of(expr) == all) return text;
    return {fmt::format("{}.broadcast_to({}, {})", library_.module, text.text, numbers_tuple(shape_of(all)))};
  }

  PythonText reduced() {
    if (std::optional<PythonText> product = sum_of_product()) return *product;
    const Reducer reducer = *einsum_.reducer;
    const PythonText values = whole(einsum_.body, all_);
    const DType type = reduced_type(reducer, einsum_.body.type());
    const bool is_cast = type != einsum_.body.type();
    std::vector<std::size_t> axes;
    for (std::size_t l = einsum_.output.size(); l < all_.size(); ++l) axes.push_back(l);
    const std::string over = axes.size() == 1 ? fmt::format("{}", axes.front()) : numbers_tuple(axes);
    const auto reducing = [&](const std::string& array, std::string_view dimensions) {
      return fmt::format("{}, {}={}", array, library_.axis, dimensions);
    };
    std::vector<std::int64_t> flat = shape_of(einsum_.output);
    flat.push_back(-1);
    const std::string as_type = python_type(library_, type);
    const std::string wide = is_cast ? cast_text(values, as_type, library_).text : values.text;
    return {fmt::format(fmt::runtime(library_.reducer(reducer)), fmt::arg("x", reducing(values.text, over)),
                        fmt::arg("wide", reducing(wide, over)),
                        fmt::arg("squares", reducing(fmt::format("{}.square({})", library_.module, wide), over)),
                        fmt::arg("last", reducing(reshaped(within(values, Binding::name), flat), "-1")),
                        fmt::arg("as_type", is_cast || is_integer(type) ? fmt::format(", dtype={}", as_type) : ""))};
  }

  /// A convolution, or an einsum of the factors, each computed over its own labels; nothing where it is neither.
  std::optional<PythonText> sum_of_product() {
    const DType type = einsum_.body.type();
    const bool adds = *einsum_.reducer == Reducer::sum || *einsum_.reducer == Reducer::mean;
    if (!adds || !is_float(type)) return std::nullopt;
    std::vector<std::string> scales;
    std::vector<ScalarExpr> factors;
    for (const ScalarExpr& factor : factors_of(einsum_.body)) {
      if (labels_of(factor).empty() && operands_read(factor).empty()) {
        scales.push_back(within(formula(factor, {}), Binding::product));
      } else {
        factors.push_back(factor);
      }
    }
    const std::optional<Convolution> convolution = convolution_of_factors(factors);
    std::optional<std::string> text = convolution ? convolved(*convolution) : product(factors);
    if (!text) return std::nullopt;
    needs_.precision = true;
    for (const std::string& scale : scales) text = fmt::format("{} * {}", scale, *text);
    return PythonText{*text, scales.empty() ? Binding::name : Binding::product};
  }

  std::optional<std::string> product(const std::vector<ScalarExpr>& factors) {
    if (factors.size() < 2 || einsum_.labels.size() > all_letters.size()) return std::nullopt;
    std::set<std::size_t> seen;
    for (const ScalarExpr& factor : factors) {
      const LabelList labels = labels_of(factor);
      seen.insert(labels.begin(), labels.end());
    }
    if (seen.size() != all_.size()) return std::nullopt;
    std::vector<std::string> arrays;
    std::vector<std::string> subscripts;
    std::vector<std::size_t> narrow;
    for (const ScalarExpr& factor : factors) {
      const LabelList labels = labels_of(factor);
      const std::optional<std::size_t> plain = plain_operand(factor);
      if (plain && is_narrow_operand(*plain)) narrow.push_back(arrays.size());
      arrays.push_back(plain ? of_.operands[*plain] : formula(factor, labels).text);
      subscripts.push_back(letters(plain ? operand_list(*plain) : labels));
    }
    const bool widens = narrow.size() == arrays.size() && library_.einsum_widens;
    if (!widens) {
      for (const std::size_t at : narrow) arrays[at] = widened(arrays[at]);
    }
    return fmt::format(
        fmt::runtime(library_.einsum),
        fmt::arg("subscripts", fmt::format("{}->{}", fmt::join(subscripts, ","), letters(einsum_.output))),
        fmt::arg("arrays", fmt::format("{}", fmt::join(arrays, ", "))),
        fmt::arg("and_type",
                 widens ? fmt::format(", preferred_element_type={}", python_type(library_, einsum_.body.type())) : ""));
  }

  bool is_narrow_operand(std::size_t operand) const { return is_narrow(of_.graph[of_.vertex.inputs[operand]].dtype); }

  /// Of two operands, where a site has the windows whole, and of all else what it computes with.
  std::optional<Convolution> convolution_of_factors(const std::vector<ScalarExpr>& factors) const {
    if (factors.size() != 2 || factors[0].steps.size() != 1 || factors[1].steps.size() != 1) return std::nullopt;
    const std::optional<std::size_t> first = operand_read(factors[0].steps.front());
    const std::optional<std::size_t> second = operand_read(factors[1].steps.front());
    if (!first || !second) return std::nullopt;
    std::optional<Convolution> found = convolution_of(einsum_, *first, *second);
    if (!found) found = convolution_of(einsum_, *second, *first);
    if (!found) return std::nullopt;
    for (const std::size_t operand : {found->tensor, found->filter}) {
      for (std::size_t d = 0; d < einsum_.operands[operand].indices.size(); ++d) {
        if (plain_label(einsum_.operands[operand].indices[d]) && !walks(operand, d)) return std::nullopt;
      }
    }
    const bool is_whole = std::all_of(found->windows.begin(), found->windows.end(), [&](const SlidingWindow& window) {
      return of_.plan.grid[window.result] == 1 && of_.plan.grid[window.filter] == 1;
    });
    return is_whole ? found : std::nullopt;
  }

  /// An operand with its dimensions in this order: the first and the second ones each as one, then all others.
  std::string as_images(std::size_t operand, const LabelList& first, const LabelList& second,
                        const LabelList& last_dimensions) const {
    const LabelList labels = operand_list(operand);
    LabelList order;
    for (const std::size_t label : first) order.push_back(place_of(labels, label));
    for (const std::size_t label : second) order.push_back(place_of(labels, label));
    order.insert(order.end(), last_dimensions.begin(), last_dimensions.end());
    std::string text = is_narrow_operand(operand) ? widened(of_.operands[operand]) : of_.operands[operand];
    if (!std::is_sorted(order.begin(), order.end())) text = transposed(text, order, library_);
    if (first.size() == 1 && second.size() == 1) return text;
    std::vector<std::int64_t> shape{count_of(first), count_of(second)};
    for (const std::size_t dimension : last_dimensions)
      shape.push_back(of_.graph[of_.vertex.inputs[operand]].bound[dimension].value());
    return reshaped(text, shape);
  }

  std::int64_t count_of(const LabelList& labels) const {
    std::int64_t count = 1;
    for (const std::size_t label : labels) count *= extents_[label];
    return count;
  }

  std::string convolved(const Convolution& of) const {
    LabelList slid;  // dimensions
    LabelList windows;
    LabelList reversed;
    LabelList labels = of.batches;
    labels.insert(labels.end(), of.features.begin(), of.features.end());
    std::vector<std::int64_t> strides;
    std::vector<std::int64_t> dilation;
    std::vector<std::string> pairs;
    std::vector<std::int64_t> flat;
    const LabelList of_filter = operand_list(of.filter);
    for (const SlidingWindow& window : of.windows) {
      if (window.is_reversed) reversed.push_back(2 + slid.size());
      slid.push_back(window.dimension);
      windows.push_back(place_of(of_filter, window.filter));
      labels.push_back(window.result);
      strides.push_back(window.stride);
      dilation.push_back(window.dilation);
      const std::int64_t end = window.first + window.stride * (extents_[window.result] - 1) +
                               window.dilation * (extents_[window.filter] - 1) + 1;
      const std::int64_t behind = end - of_.graph[of_.vertex.inputs[of.tensor]].bound[window.dimension].value();
      pairs.push_back(fmt::format("({}, {})", -window.first, behind));
      flat.insert(flat.begin(), {-window.first, behind});
    }
    std::string filter = as_images(of.filter, of.features, of.channels, windows);
    if (!reversed.empty()) filter = fmt::format("{}.flip({}, {})", library_.module, filter, numbers_tuple(reversed));
    std::string text = fmt::format(
        fmt::runtime(library_.convolution), fmt::arg("x", as_images(of.tensor, of.batches, of.channels, slid)),
        fmt::arg("filter", filter), fmt::arg("strides", numbers_tuple(strides)),
        fmt::arg("dilation", numbers_tuple(dilation)), fmt::arg("pairs", fmt::format("[{}]", fmt::join(pairs, ", "))),
        fmt::arg("flat", numbers_tuple(flat)), fmt::arg("dimensions", of.windows.size()));
    if (of.batches.size() != 1 || of.features.size() != 1) text = reshaped(text, shape_of(labels));
    LabelList order;
    for (const std::size_t label : einsum_.output) order.push_back(place_of(labels, label));
    return std::is_sorted(order.begin(), order.end()) ? text : transposed(text, order, library_);
  }

  /// The label of each dimension, a number that no label has where there is none.
  LabelList operand_list(std::size_t operand) const {
    LabelList labels;
    for (const Index& index : einsum_.operands[operand].indices)
      labels.push_back(plain_label(index).value_or(einsum_.labels.size()));
    return labels;
  }

  /// The operand that a factor is, read element by element.
  std::optional<std::size_t> plain_operand(const ScalarExpr& factor) const {
    if (factor.steps.size() != 1) return std::nullopt;
    const std::optional<std::size_t> operand = operand_read(factor.steps.front());
    if (!operand) return std::nullopt;
    for (std::size_t d = 0; d < einsum_.operands[*operand].indices.size(); ++d) {
      if (!walks(*operand, d)) return std::nullopt;
    }
    return operand;
  }

  /// Their names where these are letters, else letters in order.
  std::string letters(const LabelList& labels) const {
    const bool are_letters = std::all_of(einsum_.labels.begin(), einsum_.labels.end(), [](const Label& label) {
      return label.name.size() == 1 &&
             ((label.name[0] >= 'a' && label.name[0] <= 'z') || (label.name[0] >= 'A' && label.name[0] <= 'Z'));
    });
    std::string text;
    for (const std::size_t label : labels) text += are_letters ? einsum_.labels[label].name[0] : all_letters[label];
    return text;
  }

  /// Over all sites that have a part of the same results.
  std::string added_up(const std::string& name) const {
    std::vector<std::size_t> axes;
    for (const std::size_t label : einsum_.reduced) {
      const auto own = axes_of(of_.mesh, of_.plan.grid[label], of_.plan.strides[label]);
      axes.insert(axes.end(), own->begin(), own->end());
    }
    std::sort(axes.begin(), axes.end());
    needs_.lines.insert(axes);
    if (of_.plan.scatter) {
      return along(library_.reduce_scatter, name, axes,
                   fmt::arg("dimension", place_of(einsum_.output, *of_.plan.scatter)));
    }
    const Reducer reducer = *einsum_.reducer;
    const bool is_most = reducer == Reducer::max || reducer == Reducer::any;
    const bool is_least = reducer == Reducer::min || reducer == Reducer::all;
    const auto how = fmt::arg("how", is_most ? "max" : is_least ? "min" : "sum");
    const bool is_extreme = (reducer == Reducer::max || reducer == Reducer::min) && is_float(of_.vertex.dtype);
    if (is_extreme) needs_.extremes = true;
    return along(is_extreme ? library_.all_extreme : library_.all_reduce, name, axes, how);
  }

  const DeviceVertex& of_;
  const EinSum& einsum_;
  const ArrayLibrary& library_;
  ModuleNeeds& needs_;
  std::vector<std::int64_t> extents_;  ///< of the part that one site computes, per label
  LabelList all_;                      ///< the output's labels, then those that are reduced
};

bool is_grouped(const LabelGroups& groups) {
  return std::any_of(groups.begin(), groups.end(), [](const auto& group) { return group.size() != 1; });
}

std::vector<std::string> view_lines(const DeviceVertex& of, const View& view, const std::string& name,
                                    const ArrayLibrary& library) {
  LabelList from;
  LabelList to;
  for (const auto& group : view.from) from.insert(from.end(), group.begin(), group.end());
  for (const auto& group : view.to) to.insert(to.end(), group.begin(), group.end());
  const auto extent = [&](std::size_t label) { return view.labels[label].extent.value() / of.plan.grid[label]; };
  std::vector<std::int64_t> split;
  for (const std::size_t label : from) split.push_back(extent(label));
  std::vector<std::int64_t> joined;
  for (const auto& group : view.to) {
    joined.push_back(1);
    for (const std::size_t label : group) joined.back() *= extent(label);
  }
  std::string text = of.operands.front();
  if (is_grouped(view.from)) text = reshaped(text, split);
  if (from != to) {
    LabelList order;
    for (const std::size_t label : to) order.push_back(place_of(from, label));
    text = transposed(text, order, library);
  }
  if (is_grouped(view.to)) text = reshaped(text, joined);
  return {fmt::format("{} = {}", name, text)};
}

std::vector<std::string> opaque_lines(const DeviceVertex& of, const Opaque& opaque, const std::string& name,
                                      const ArrayLibrary& library) {
  LabelList order;
  for (std::size_t label = 0; label < opaque.labels.size(); ++label) {
    if (has_label(opaque.operand, label)) order.push_back(place_of(opaque.operand, label));
  }
  std::string matrices = of.operands.front();
  if (!std::is_sorted(order.begin(), order.end())) matrices = transposed(matrices, order, library);
  if (opaque.function == OpaqueFunction::inverse)
    return {fmt::format("{} = {}.linalg.inv({})", name, library.module, matrices)};
  return {fmt::format("{} = {}.linalg.qr({})[{}]", name, library.module, matrices, opaque.output)};
}

}  // namespace

std::vector<std::string> vertex_lines(const DeviceVertex& of, const std::string& name, const ArrayLibrary& library,
                                      ModuleNeeds& needs) {
  if (const View* const view = view_of(of.vertex)) return view_lines(of, *view, name, library);
  if (const Opaque* const opaque = opaque_of(of.vertex)) return opaque_lines(of, *opaque, name, library);
  return EinSumWriter(of, library, needs).lines(name);
}

}  // namespace einrel
