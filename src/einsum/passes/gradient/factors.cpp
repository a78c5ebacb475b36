#include "einsum/passes/gradient/factors.h"

#include <algorithm>

#include "einsum/graph/vertex_facts.h"
#include "einsum/passes/gradient/arithmetic.h"

namespace einrel::gradient {
namespace {

using build::Formula;
using Labels = std::vector<std::string>;

class Factors {
 public:
  Factors(const FactorAdjoint& adjoint, const GrowingGraph& growing)
      : adjoint_(adjoint),
        growing_(growing),
        opaque_(std::get<Opaque>(adjoint.vertex.op)),
        batches_(adjoint.labels.begin(), adjoint.labels.end() - 2),
        row_(adjoint.labels[batches_.size()]),
        column_(adjoint.labels[batches_.size() + 1]),
        p_(adjoint.between[0]),
        q_(adjoint.between[1]),
        is_wide_(adjoint.extents.at(row_).value() < adjoint.extents.at(column_).value()) {}

  Formula run() const {
    const bool is_q = opaque_.output == 0;
    const std::string q = factor(0, row_, p_, "q");
    const std::string r = factor(1, p_, column_, "r");
    const std::string to_q = is_q ? adjoint_.seed : is_wide_ ? second_columns_to_q() : "";
    Formula middle = build::number(0);
    if (!is_q)
      middle =
          build::reduce(Reducer::sum, {column_}, first(product(at(r, p_, column_), at(adjoint_.seed, q_, column_))));
    if (!to_q.empty())
      middle = difference(middle, build::reduce(Reducer::sum, {row_}, product(at(to_q, row_, p_), at(q, row_, q_))));
    const std::string m = define("m", p_, q_, middle);
    const Formula is_below = apply(BinaryFunction::greater_equal, build::name(p_), build::name(q_));
    const std::string s = define("s", p_, q_, build::where(is_below, at(m, p_, q_), at(m, q_, p_)));
    Formula onto = build::reduce(Reducer::sum, {q_}, product(at(q, row_, q_), at(s, q_, p_)));
    if (!to_q.empty()) onto = sum(at(to_q, row_, p_), onto);
    const std::string t = define("t", row_, p_, onto);
    Formula adjoint = build::reduce(Reducer::sum, {p_}, product(at(t, row_, p_), inverse_at(r)));
    if (is_q || !is_wide_) return adjoint;
    return sum(adjoint,
               build::reduce(Reducer::sum, {p_}, second(product(at(q, row_, p_), at(adjoint_.seed, p_, column_)))));
  }

 private:
  Labels with_batches(const std::string& a, const std::string& b) const {
    Labels labels = batches_;
    labels.insert(labels.end(), {a, b});
    return labels;
  }
  Formula at(const std::string& tensor, const std::string& a, const std::string& b) const {
    return build::element(tensor, with_batches(a, b));
  }
  std::string define(const std::string& suffix, const std::string& a, const std::string& b,
                     const Formula& value) const {
    const VertexId id = growing_.define({adjoint_.vertex.where, "grad_" + adjoint_.vertex.name + "_" + suffix,
                                         with_batches(a, b), value, adjoint_.extents});
    return growing_.graph[id].name;
  }

  Formula matrix() const {
    Labels labels;
    for (const std::size_t label : opaque_.operand) labels.push_back(adjoint_.labels[label]);
    return build::element(growing_.graph[adjoint_.vertex.inputs[0]].name, labels);
  }
  /// The tensor that is an output of the same call.
  std::string factor(std::uint8_t output, const std::string& a, const std::string& b, const std::string& suffix) const {
    if (output == opaque_.output) return adjoint_.vertex.name;
    return define(suffix, a, b, build::call({opaque_.function, output}, {row_, column_, p_}, matrix()));
  }

  /// Only where the column is one of X, of Y.
  Formula first(const Formula& value) const {
    return is_wide_ ? only_where(apply(BinaryFunction::less, build::name(column_), rows()), value) : value;
  }
  Formula second(const Formula& value) const {
    return only_where(apply(BinaryFunction::greater_equal, build::name(column_), rows()), value);
  }
  Formula rows() const { return build::whole_number(adjoint_.extents.at(row_).value()); }

  std::string second_columns_to_q() const {
    return define("to_q", row_, p_,
                  build::reduce(Reducer::sum, {column_}, second(product(matrix(), at(adjoint_.seed, p_, column_)))));
  }

  /// R^-T at p and the column; 0 in columns of Y.
  Formula inverse_at(const std::string& r) const {
    std::string square = r;
    if (is_wide_) {
      const Formula is_same = apply(BinaryFunction::equal, build::name(column_), build::name(q_));
      square = define("u", p_, q_, build::reduce(Reducer::sum, {column_}, only_where(is_same, at(r, p_, column_))));
    }
    const std::string inverse =
        define("inverse", p_, q_, build::call({OpaqueFunction::inverse, 0}, {p_, q_}, at(square, p_, q_)));
    std::vector<build::Index> indices;
    for (const std::string& label : with_batches(column_, p_)) indices.push_back(build::index(label));
    return build::element(inverse, std::move(indices), is_wide_ ? std::optional(0.0) : std::nullopt);
  }

  const FactorAdjoint& adjoint_;
  const GrowingGraph& growing_;
  const Opaque opaque_;  // the graph grows
  Labels batches_;
  std::string row_;
  std::string column_;
  std::string p_;
  std::string q_;
  bool is_wide_;
};

}  // namespace

Formula adjoint_through(const FactorAdjoint& adjoint, const GrowingGraph& growing) {
  return Factors(adjoint, growing).run();
}

}  // namespace einrel::gradient
