#include "einsum/check/check_opaque.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "einsum/graph/vertex_facts.h"

namespace einrel::checking {
namespace {

bool is_in(const std::vector<std::size_t>& labels, std::size_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

class OpaqueChecker {
 public:
  OpaqueChecker(CheckState& state, LabelScope& scope, VertexMaker& maker, const OpaqueArgument& argument)
      : state_(state), scope_(scope), maker_(maker), argument_(argument), name_(name_of(argument.call.result)) {}

  std::optional<OpaqueVertex> run() {
    const std::vector<std::size_t> labels = labels_of_call();
    if (labels.empty() || !is_square(labels) || !has_type()) return std::nullopt;
    const OpaqueResult result = argument_.call.result;
    Opaque opaque{result.function, {}, {}, result.output};
    OpaqueVertex made;
    made.vertex.dtype = argument_.dtype;
    const auto read = labels.end() - static_cast<std::ptrdiff_t>(argument_.call.matrix.size()) + 2;
    made.vertex.inputs.push_back(operand({labels.begin(), read}, opaque));
    for (const std::size_t label : labels)
      opaque.labels.push_back({display_label(scope_.name(label)), extent_or_open(scope_.extent(label))});
    make_names_unique(opaque.labels);
    for (const std::size_t label : dimensions_of(opaque)) {
      made.output.push_back(labels[label]);
      made.vertex.bound.push_back(opaque.labels[label].extent);
    }
    maker_.check_size(made.vertex);
    made.vertex.op = std::move(opaque);
    return made;
  }

 private:
  /// Batches, then those of matrices; empty with an error where a matrix has not all.
  std::vector<std::size_t> labels_of_call() {
    const std::vector<std::size_t> used = maker_.labels_of(argument_.body);
    check_distinct(state_, argument_.call.matrix);
    std::vector<std::size_t> matrix;
    for (std::size_t l = 0; l < argument_.matrix.size(); ++l) {
      const std::optional<std::size_t> label = argument_.matrix[l];
      const bool is_read = label && std::binary_search(used.begin(), used.end(), *label);
      const bool is_between = l == 2;
      if (!label || is_read == is_between) {
        report(l, is_read);
      } else if (!is_in(matrix, *label)) {
        matrix.push_back(*label);
      }
    }
    if (matrix.size() != argument_.matrix.size()) return {};
    std::vector<std::size_t> labels;
    for (const auto* const candidates : {&argument_.left, &used}) {
      for (const std::size_t label : *candidates) {
        if (is_in(used, label) && !is_in(matrix, label) && !is_in(labels, label)) labels.push_back(label);
      }
    }
    labels.insert(labels.end(), matrix.begin(), matrix.end());
    return labels;
  }

  void report(std::size_t label, bool is_read) {
    const build::Name& name = argument_.call.matrix[label];
    const std::string shown = display_label(name.text);
    if (label < 2) {
      state_.error(fmt::format("label '{}' does not occur in what {} is taken of", shown, name_), {name.span},
                   "name the labels of its rows and columns");
    } else if (is_read) {
      state_.error(fmt::format("label '{}' occurs in what {} is taken of", shown, name_), {name.span},
                   "give what is between the factors a label of its own");
    } else {
      state_.error(
          fmt::format("label '{}' is not reduced: it is one of {}, but does not stand on the left", shown, name_),
          {name.span}, fmt::format("add it to the left, or reduce it by name: sum[{}] ...", shown));
    }
  }

  bool is_square(const std::vector<std::size_t>& labels) {
    if (argument_.call.result.function != OpaqueFunction::inverse) return true;
    const std::size_t rows = labels[labels.size() - 2];
    const MaybeExtent height = scope_.extent(rows);
    const MaybeExtent width = scope_.extent(labels.back());
    if (!height || !width || *height == *width) return true;
    state_.error(
        fmt::format("{} takes square matrices, but '{}' has extent {} and '{}' has {}", name_,
                    display_label(scope_.name(rows)), *height, display_label(scope_.name(labels.back())), *width),
        {argument_.span}, "rows and columns need the same extent");
    return false;
  }

  bool has_type() {
    if (argument_.dtype == DType::f32 || argument_.dtype == DType::f64) return true;
    state_.error(fmt::format("{} computes f32 and f64, not {}", name_, name_of(argument_.dtype)), {argument_.span},
                 fmt::format("convert first: {}[...](f32(...))", name_));
    return false;
  }

  /// The tensor that the body is, if it reads nothing but whole dimensions, else a new vertex that computes it.
  VertexId operand(const std::vector<std::size_t>& labels, Opaque& opaque) {
    const ScalarExpr& body = argument_.body;
    const auto* const value = std::get_if<OperandValue>(&body.steps.front().op);
    if (body.steps.size() == 1 && value != nullptr) {
      const PooledAccess& read = maker_[value->operand];
      const Shape& bound = state_.builder.graph()[read.vertex].bound;
      std::set<std::size_t> seen;
      for (const Index& index : read.access.indices) {
        const std::optional<std::size_t> label = plain_label(index);
        const bool is_whole = label && extent_or_open(scope_.extent(*label)) == bound[opaque.operand.size()];
        if (!is_whole || !seen.insert(*label).second) break;
        const auto position = std::find(labels.begin(), labels.end(), *label) - labels.begin();
        opaque.operand.push_back(static_cast<std::size_t>(position));
      }
      if (!read.access.pad && opaque.operand.size() == read.access.indices.size()) return read.vertex;
    }
    opaque.operand.resize(labels.size());
    std::iota(opaque.operand.begin(), opaque.operand.end(), std::size_t{0});
    return maker_.find_or_add(maker_.make(body, labels, {}, std::nullopt, argument_.dtype));
  }

  CheckState& state_;
  LabelScope& scope_;
  VertexMaker& maker_;
  const OpaqueArgument& argument_;
  std::string_view name_;
};

}  // namespace

std::optional<OpaqueVertex> opaque_vertex(CheckState& state, LabelScope& scope, VertexMaker& maker,
                                          const OpaqueArgument& argument) {
  return OpaqueChecker(state, scope, maker, argument).run();
}

}  // namespace einrel::checking
