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
#include "export/formula.h"
#include "export/python_names.h"

namespace einrel {
namespace {

using LabelList = std::vector<std::size_t>;

/// What a subscript of an einsum may be.
constexpr std::string_view all_letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

template <class Number>
std::string numbers_tuple(const std::vector<Number>& numbers) {
  std::vector<std::string> items;
  for (const Number number : numbers) items.push_back(fmt::format("{}", number));
  return python_tuple(items);
}

std::size_t place_of(const LabelList& list, std::size_t label) {
  return static_cast<std::size_t>(std::find(list.begin(), list.end(), label) - list.begin());
}
bool has_label(const LabelList& list, std::size_t label) { return place_of(list, label) < list.size(); }

std::string reshaped(const std::string& array, const std::vector<std::int64_t>& shape) {
  return fmt::format("{}.reshape({})", array, shape.empty() ? "()" : fmt::format("{}", fmt::join(shape, ", ")));
}

std::string transposed(const std::string& array, const LabelList& order, const ArrayLibrary& library) {
  return fmt::format(fmt::runtime(library.transpose), fmt::arg("x", array), fmt::arg("order", numbers_tuple(order)));
}

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

/// A call along axes of the mesh.
template <class... More>
std::string along(std::string_view call, const std::string& array, const std::vector<std::size_t>& axes,
                  const More&... more) {
  return fmt::format(fmt::runtime(call), fmt::arg("x", array), fmt::arg("axes", axes_tuple(axes)),
                     fmt::arg("names", axis_names(axes)), more...);
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
                         [&](std::size_t label) { return PythonText{positions(label, all)}; }, of_.scalar},
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

  /// An einsum of the factors, each computed over its own labels; nothing where that is not what is computed.
  std::optional<PythonText> sum_of_product() {
    const DType type = einsum_.body.type();
    const bool adds = *einsum_.reducer == Reducer::sum || *einsum_.reducer == Reducer::mean;
    if (!adds || !is_float(type) || einsum_.labels.size() > all_letters.size()) return std::nullopt;
    std::vector<std::string> scales;
    std::vector<std::string> arrays;
    std::vector<std::string> subscripts;
    std::set<std::size_t> seen;
    bool is_narrow_alone = true;
    for (const ScalarExpr& factor : factors_of(einsum_.body)) {
      const LabelList labels = labels_of(factor);
      if (labels.empty() && operands_read(factor).empty()) {
        scales.push_back(within(formula(factor, {}), Binding::product));
        continue;
      }
      seen.insert(labels.begin(), labels.end());
      const std::optional<std::size_t> plain = plain_operand(factor);
      is_narrow_alone = is_narrow_alone && plain && is_narrow(of_.graph[of_.vertex.inputs[*plain]].dtype);
      arrays.push_back(plain ? of_.operands[*plain] : formula(factor, labels).text);
      subscripts.push_back(letters(plain ? operand_list(*plain) : labels));
      if (plain && is_narrow(of_.graph[of_.vertex.inputs[*plain]].dtype)) narrow_.push_back(arrays.size() - 1);
    }
    if (arrays.size() < 2 || seen.size() != all_.size()) return std::nullopt;
    const bool widens = is_narrow_alone && library_.einsum_widens;
    if (!widens) {
      for (const std::size_t at : narrow_) arrays[at] = widened(arrays[at]);
    }
    needs_.precision = true;
    std::string text = fmt::format(
        fmt::runtime(library_.einsum),
        fmt::arg("subscripts", fmt::format("{}->{}", fmt::join(subscripts, ","), letters(einsum_.output))),
        fmt::arg("arrays", fmt::format("{}", fmt::join(arrays, ", "))),
        fmt::arg("and_type", widens ? fmt::format(", preferred_element_type={}", python_type(library_, type)) : ""));
    for (const std::string& scale : scales) text = fmt::format("{} * {}", scale, text);
    return PythonText{text, scales.empty() ? Binding::name : Binding::product};
  }

  LabelList operand_list(std::size_t operand) const {
    LabelList labels;
    for (const Index& index : einsum_.operands[operand].indices) labels.push_back(*plain_label(index));
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
  std::vector<std::size_t> narrow_;
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

namespace {

/// Writes steps, and follows the shape of what a site has.
class StepWriter {
 public:
  StepWriter(std::string array, std::vector<std::int64_t> shape, const std::vector<MeshAxis>& mesh,
             const ArrayLibrary& library, ModuleNeeds& needs)
      : array_(std::move(array)), shape_(std::move(shape)), mesh_(mesh), library_(library), needs_(needs) {}

  std::string write(const TakePart& step) {
    std::int64_t& extent = shape_[step.dimension];
    extent /= sites_along(step.axes);
    return along(library_.take_part, array_, step.axes, fmt::arg("extent", extent),
                 fmt::arg("dimension", step.dimension));
  }
  std::string write(const AllToAll& step) {
    needs_.lines.insert(step.axes);
    shape_[step.split] /= sites_along(step.axes);
    shape_[step.joined] *= sites_along(step.axes);
    return along(library_.all_to_all, array_, step.axes, fmt::arg("split", step.split),
                 fmt::arg("joined", step.joined));
  }
  std::string write(const PermuteSites& step) const {
    needs_.lines.insert(step.axes);
    std::vector<std::string> pairs;
    for (const auto& [from, to] : step.pairs) pairs.push_back(fmt::format("({}, {})", from, to));
    return along(library_.permute, array_, step.axes, fmt::arg("pairs", fmt::format("{}", fmt::join(pairs, ", "))));
  }
  std::string write(const AllGather& step) {
    needs_.lines.insert(step.axes);
    shape_[step.dimension] *= sites_along(step.axes);
    return along(library_.all_gather, array_, step.axes, fmt::arg("dimension", step.dimension));
  }
  std::string write(const ReorderHere& step) const {
    const auto at = static_cast<std::ptrdiff_t>(step.dimension);
    std::int64_t left = shape_[step.dimension];
    for (const std::int64_t size : step.sizes) left /= size;
    std::vector<std::int64_t> split(shape_.begin(), shape_.begin() + at);
    split.insert(split.end(), step.sizes.begin(), step.sizes.end());
    split.push_back(left);
    split.insert(split.end(), shape_.begin() + at + 1, shape_.end());
    std::vector<std::size_t> order(split.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = 0; i < step.to.size(); ++i) order[step.dimension + i] = step.dimension + step.to[i];
    return reshaped(transposed(reshaped(array_, split), order, library_), shape_);
  }

  void goes_on_with(const std::string& array) { array_ = array; }

 private:
  std::int64_t sites_along(const std::vector<std::size_t>& axes) const {
    std::int64_t sites = 1;
    for (const std::size_t axis : axes) sites *= mesh_[axis].size;
    return sites;
  }

  std::string array_;
  std::vector<std::int64_t> shape_;
  const std::vector<MeshAxis>& mesh_;
  const ArrayLibrary& library_;
  ModuleNeeds& needs_;
};

}  // namespace

std::vector<std::string> step_lines(const std::vector<Collective>& steps, const std::string& from,
                                    const std::string& name, std::vector<std::int64_t> shape,
                                    const std::vector<MeshAxis>& mesh, const ArrayLibrary& library,
                                    ModuleNeeds& needs) {
  StepWriter writer(from, std::move(shape), mesh, library, needs);
  std::vector<std::string> lines;
  for (const Collective& step : steps) {
    const std::string text = std::visit([&](const auto& each) { return writer.write(each); }, step);
    lines.push_back(fmt::format("{} = {}", name, text));
    writer.goes_on_with(name);
  }
  if (lines.empty()) lines.push_back(fmt::format("{} = {}", name, from));
  return lines;
}

}  // namespace einrel
