#include "export/jax_vertex.h"

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
#include "export/python_names.h"

namespace einrel {
namespace {

using LabelList = std::vector<std::size_t>;

/// What a subscript of jnp.einsum may be.
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

/// An array with these labels as dimensions, beside others whose dimensions are those of `all`: transposed, and with
/// new dimensions of 1 between.
std::string aligned(std::string text, const LabelList& labels, const LabelList& all) {
  LabelList to(labels.size());
  std::iota(to.begin(), to.end(), std::size_t{0});
  std::sort(to.begin(), to.end(),
            [&](std::size_t a, std::size_t b) { return place_of(all, labels[a]) < place_of(all, labels[b]); });
  if (!std::is_sorted(to.begin(), to.end())) text += fmt::format(".transpose{}", numbers_tuple(to));
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

std::string in_parentheses(const std::string& text) {
  return text.find(' ') == std::string::npos ? text : fmt::format("({})", text);
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
  EinSumWriter(const JaxVertex& of, JaxHelpers& helpers)
      : of_(of), einsum_(std::get<EinSum>(of.vertex.op)), helpers_(helpers) {
    for (std::size_t l = 0; l < einsum_.labels.size(); ++l)
      extents_.push_back(einsum_.labels[l].extent.value() / of.plan.grid[l]);
    all_ = einsum_.output;
    all_.insert(all_.end(), einsum_.reduced.begin(), einsum_.reduced.end());
  }

  std::vector<std::string> lines(const std::string& name) {
    if (!einsum_.reducer) return {fmt::format("{} = {}", name, stored(whole(einsum_.body, all_), einsum_.body.type()))};
    std::vector<std::string> lines{fmt::format("{} = {}", name, reduced())};
    const bool is_truth = result_of(*einsum_.reducer) == ReducedAs::truth;
    if (partial_sites(of_.vertex, of_.plan) > 1) {
      if (is_truth) lines.push_back(fmt::format("{0} = {0}.astype(jnp.uint8)", name));
      lines.push_back(fmt::format("{} = {}", name, added_up(name)));
      if (is_truth) lines.push_back(fmt::format("{0} = {0} != 0", name));
    }
    const DType type = reduced_type(*einsum_.reducer, einsum_.body.type());
    std::string finished = name;
    if (*einsum_.reducer == Reducer::mean) {
      double count = 1;
      for (const std::size_t label : einsum_.reduced)
        count *= static_cast<double>(einsum_.labels[label].extent.value());
      finished = fmt::format("{} / {}", name, count);
    }
    finished = stored(finished, type);
    if (finished != name) lines.push_back(fmt::format("{} = {}", name, finished));
    return lines;
  }

 private:
  std::string stored(const std::string& text, DType type) const {
    if (type == of_.vertex.dtype) return text;
    const DType to = of_.vertex.dtype;
    const std::string array = fmt::format("jnp.asarray({})", text);
    const auto* const round = std::get_if<Round>(&einsum_.body.steps.back().op);
    const bool is_rounded = !einsum_.reducer && round != nullptr && round->to == to;
    return fmt::format("{}.astype({})", is_narrow(to) && !is_rounded ? jax_rounded(array, to, helpers_) : array,
                       jax_type(to));
  }

  std::vector<std::int64_t> shape_of(const LabelList& labels) const {
    std::vector<std::int64_t> shape;
    for (const std::size_t label : labels) shape.push_back(extents_[label]);
    return shape;
  }

  /// The label's positions in the whole tensor.
  std::string positions(std::size_t label, const LabelList& all) {
    helpers_.positions = true;
    const auto axes = axes_of(of_.mesh, of_.plan.grid[label], of_.plan.strides[label]);
    std::string text = fmt::format("_positions({}{}{})", extents_[label], axes->empty() ? "" : ", ",
                                   axes->empty() ? "" : jax_axes(*axes));
    return aligned(std::move(text), {label}, all);
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
    return is_narrow(type) ? fmt::format("{}.astype(jnp.float32)", text) : text;
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
    return aligned(has_constant ? fmt::format("{}[{}]", array, fmt::join(slices, ", ")) : array, labels, all);
  }

  std::string gathered(std::size_t operand, const LabelList& all) {
    helpers_.read = true;
    const Access& access = einsum_.operands[operand];
    std::vector<std::string> indices;
    for (std::size_t d = 0; d < access.indices.size(); ++d) {
      const Index& index = access.indices[d];
      if (walks(operand, d)) {
        const std::size_t label = *plain_label(index);
        indices.push_back(aligned(fmt::format("jnp.arange({})", extents_[label]), {label}, all));
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
                       access.pad ? fmt::format(", {}", python_number(*access.pad)) : "");
  }

  std::string formula(const ScalarExpr& expr, const LabelList& all) {
    return jax_formula(expr,
                       {[&](std::size_t operand) { return read(operand, all); },
                        [&](std::size_t label) { return positions(label, all); }, of_.scalar},
                       helpers_);
  }

  /// Of all these labels, also where no value depends on one of them.
  std::string whole(const ScalarExpr& expr, const LabelList& all) {
    const std::string text = formula(expr, all);
    return labels_of(expr) == all ? text : fmt::format("jnp.broadcast_to({}, {})", text, numbers_tuple(shape_of(all)));
  }

  std::string reduced() {
    if (std::optional<std::string> product = sum_of_product()) return *product;
    const Reducer reducer = *einsum_.reducer;
    std::string values = whole(einsum_.body, all_);
    const DType type = reduced_type(reducer, einsum_.body.type());
    std::vector<std::size_t> axes;
    for (std::size_t l = einsum_.output.size(); l < all_.size(); ++l) axes.push_back(l);
    const std::string over = axes.size() == 1 ? fmt::format("{}", axes.front()) : numbers_tuple(axes);
    const auto by = [&](std::string_view name) { return fmt::format("{}({}, axis={})", name, values, over); };
    const bool is_counted = type != einsum_.body.type() || is_integer(type);
    const auto counted = [&](std::string_view name) {
      return is_counted ? fmt::format("{}({}, axis={}, dtype={})", name, values, over, jax_type(type)) : by(name);
    };
    switch (reducer) {
      case Reducer::sumsq:
        values = fmt::format("jnp.square({})",
                             is_counted ? fmt::format("jnp.asarray({}, {})", values, jax_type(type)) : values);
        return counted("jnp.sum");
      case Reducer::sum:
      case Reducer::mean: return counted("jnp.sum");
      case Reducer::prod: return counted("jnp.prod");
      case Reducer::max: return by("jnp.max");
      case Reducer::min: return by("jnp.min");
      case Reducer::any: return by("jnp.any");
      case Reducer::all: return by("jnp.all");
      case Reducer::logsumexp:
        if (is_counted) values = fmt::format("jnp.asarray({}, {})", values, jax_type(type));
        return by("jax.nn.logsumexp");
      case Reducer::argmax:
      case Reducer::argmin: break;
    }
    std::vector<std::int64_t> flat = shape_of(einsum_.output);
    flat.push_back(-1);
    return fmt::format("jnp.{}({}.reshape{}, axis=-1).astype(jnp.int64)", name_of(reducer), in_parentheses(values),
                       numbers_tuple(flat));
  }

  /// jnp.einsum of the factors, each computed over its own labels; nothing where that is not what is computed.
  std::optional<std::string> sum_of_product() {
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
        scales.push_back(in_parentheses(formula(factor, {})));
        continue;
      }
      seen.insert(labels.begin(), labels.end());
      const std::optional<std::size_t> plain = plain_operand(factor);
      is_narrow_alone = is_narrow_alone && plain && is_narrow(of_.graph[of_.vertex.inputs[*plain]].dtype);
      arrays.push_back(plain ? of_.operands[*plain] : formula(factor, labels));
      subscripts.push_back(letters(plain ? operand_list(*plain) : labels));
      if (plain && is_narrow(of_.graph[of_.vertex.inputs[*plain]].dtype)) narrow_.push_back(arrays.size() - 1);
    }
    if (arrays.size() < 2 || seen.size() != all_.size()) return std::nullopt;
    if (!is_narrow_alone) {
      for (const std::size_t at : narrow_) arrays[at] += ".astype(jnp.float32)";
    }
    helpers_.precision = true;
    std::string text = fmt::format("jnp.einsum(\"{}->{}\", {}, precision=PRECISION{})", fmt::join(subscripts, ","),
                                   letters(einsum_.output), fmt::join(arrays, ", "),
                                   is_narrow_alone ? fmt::format(", preferred_element_type={}", jax_type(type)) : "");
    for (const std::string& scale : scales) text = fmt::format("{} * {}", scale, text);
    return text;
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
    if (of_.plan.scatter) {
      return fmt::format("lax.psum_scatter({}, {}, scatter_dimension={}, tiled=True)", name, jax_axes(axes),
                         place_of(einsum_.output, *of_.plan.scatter));
    }
    const Reducer reducer = *einsum_.reducer;
    const bool is_most = reducer == Reducer::max || reducer == Reducer::any;
    const bool is_least = reducer == Reducer::min || reducer == Reducer::all;
    return fmt::format("lax.p{}({}, {})", is_most ? "max" : is_least ? "min" : "sum", name, jax_axes(axes));
  }

  const JaxVertex& of_;
  const EinSum& einsum_;
  JaxHelpers& helpers_;
  std::vector<std::int64_t> extents_;  ///< of the part that one site computes, per label
  LabelList all_;                      ///< the output's labels, then those that are reduced
  std::vector<std::size_t> narrow_;
};

bool is_grouped(const LabelGroups& groups) {
  return std::any_of(groups.begin(), groups.end(), [](const auto& group) { return group.size() != 1; });
}

std::vector<std::string> view_lines(const JaxVertex& of, const View& view, const std::string& name) {
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
  if (is_grouped(view.from)) text += fmt::format(".reshape{}", numbers_tuple(split));
  if (from != to) {
    LabelList order;
    for (const std::size_t label : to) order.push_back(place_of(from, label));
    text += fmt::format(".transpose{}", numbers_tuple(order));
  }
  if (is_grouped(view.to)) text += fmt::format(".reshape{}", numbers_tuple(joined));
  return {fmt::format("{} = {}", name, text)};
}

std::vector<std::string> opaque_lines(const JaxVertex& of, const Opaque& opaque, const std::string& name) {
  LabelList order;
  for (std::size_t label = 0; label < opaque.labels.size(); ++label) {
    if (has_label(opaque.operand, label)) order.push_back(place_of(opaque.operand, label));
  }
  std::string matrices = of.operands.front();
  if (!std::is_sorted(order.begin(), order.end())) matrices += fmt::format(".transpose{}", numbers_tuple(order));
  if (opaque.function == OpaqueFunction::inverse) return {fmt::format("{} = jnp.linalg.inv({})", name, matrices)};
  return {fmt::format("{} = jnp.linalg.qr({})[{}]", name, matrices, opaque.output)};
}

}  // namespace

std::string jax_axes(const std::vector<std::size_t>& axes) {
  std::vector<std::string> names;
  for (const std::size_t axis : axes) names.push_back(fmt::format("\"m{}\"", axis));
  return names.size() == 1 ? names.front() : python_tuple(names);
}

std::vector<std::string> jax_lines(const JaxVertex& of, const std::string& name, JaxHelpers& helpers) {
  if (const View* const view = view_of(of.vertex)) return view_lines(of, *view, name);
  if (const Opaque* const opaque = opaque_of(of.vertex)) return opaque_lines(of, *opaque, name);
  return EinSumWriter(of, helpers).lines(name);
}

namespace {

/// Writes steps, and follows the shape of what a site has.
class StepWriter {
 public:
  StepWriter(std::string array, std::vector<std::int64_t> shape, const std::vector<MeshAxis>& mesh)
      : array_(std::move(array)), shape_(std::move(shape)), mesh_(mesh) {}

  std::string write(const TakePart& step) {
    std::int64_t& extent = shape_[step.dimension];
    extent /= sites_along(step.axes);
    return fmt::format("lax.dynamic_slice_in_dim({}, lax.axis_index({}) * {}, {}, axis={})", array_,
                       jax_axes(step.axes), extent, extent, step.dimension);
  }
  std::string write(const AllToAll& step) {
    shape_[step.split] /= sites_along(step.axes);
    shape_[step.joined] *= sites_along(step.axes);
    return fmt::format("lax.all_to_all({}, {}, split_axis={}, concat_axis={}, tiled=True)", array_, jax_axes(step.axes),
                       step.split, step.joined);
  }
  std::string write(const PermuteSites& step) const {
    std::vector<std::string> pairs;
    for (const auto& [from, to] : step.pairs) pairs.push_back(fmt::format("({}, {})", from, to));
    return fmt::format("lax.ppermute({}, {}, [{}])", array_, jax_axes(step.axes), fmt::join(pairs, ", "));
  }
  std::string write(const AllGather& step) {
    shape_[step.dimension] *= sites_along(step.axes);
    return fmt::format("lax.all_gather({}, {}, axis={}, tiled=True)", array_, jax_axes(step.axes), step.dimension);
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
    return fmt::format("{}.reshape{}.transpose{}.reshape{}", array_, numbers_tuple(split), numbers_tuple(order),
                       numbers_tuple(shape_));
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
};

}  // namespace

std::vector<std::string> jax_lines(const std::vector<Collective>& steps, const std::string& from,
                                   const std::string& name, std::vector<std::int64_t> shape,
                                   const std::vector<MeshAxis>& mesh) {
  StepWriter writer(from, std::move(shape), mesh);
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
