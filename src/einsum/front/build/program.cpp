#include "einsum/front/build/program.h"

#include <algorithm>
#include <array>

namespace einrel::build {

std::size_t arity(const Node& node) {
  struct Visitor {
    std::size_t operator()(const Number&) const { return 0; }
    std::size_t operator()(const NameUse&) const { return 0; }
    std::size_t operator()(const Access& access) const {
      return static_cast<std::size_t>(std::count_if(access.indices.begin(), access.indices.end(),
                                                    [](const Index& index) { return index.is_computed; }));
    }
    std::size_t operator()(const Unary&) const { return 1; }
    std::size_t operator()(const Binary&) const { return 2; }
    std::size_t operator()(const Where&) const { return 3; }
    std::size_t operator()(const Cast&) const { return 1; }
    std::size_t operator()(const Reduce&) const { return 1; }
    std::size_t operator()(const Random& random) const { return random.stream ? 3 : 1; }
    std::size_t operator()(const InRange&) const { return 2; }
    std::size_t operator()(const OpaqueCall&) const { return 1; }
    std::size_t operator()(const ComplexCall& call) const { return call.function == ComplexFunction::complex ? 2 : 1; }
    std::size_t operator()(const MacroCall& call) const { return call.arguments; }
  };
  return std::visit(Visitor{}, node.op);
}

namespace {

/// The name and the numbers of T[8,3].
std::optional<std::pair<std::string, std::vector<std::int64_t>>> name_and_shape(const Node& node) {
  const auto* const access = std::get_if<Access>(&node.op);
  if (access == nullptr || access->pad) return std::nullopt;
  std::vector<std::int64_t> shape;
  for (const Index& index : access->indices) {
    if (!index.terms.empty() || index.is_computed || index.offset < 0) return std::nullopt;
    shape.push_back(index.offset);
  }
  return std::pair(access->tensor.text, std::move(shape));
}

}  // namespace

std::optional<InRange> range_of(const Node& tensor, const Node& indexed) {
  const auto from = name_and_shape(tensor);
  const auto into = name_and_shape(indexed);
  if (!from || !into || into->second.size() != 1) return std::nullopt;
  return InRange{from->first, from->second, into->first, into->second.front()};
}

std::vector<std::size_t> subexpression_starts(const Expr& expr) {
  std::vector<std::size_t> starts(expr.nodes.size());
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < expr.nodes.size(); ++i) {
    std::size_t start = i;
    for (std::size_t taken = arity(expr.nodes[i]); taken > 0; --taken) {
      start = open.back();
      open.pop_back();
    }
    starts[i] = start;
    open.push_back(start);
  }
  return starts;
}

std::vector<Name> bound_labels(const Node& node) {
  if (const auto* const reduce = std::get_if<Reduce>(&node.op)) return reduce->labels;
  const auto* const opaque = std::get_if<OpaqueCall>(&node.op);
  if (opaque == nullptr) return {};
  const std::array<std::size_t, 2> kept = matrix_dimensions(opaque->result);
  std::vector<Name> bound;
  for (std::size_t l = 0; l < 2; ++l) {
    if (std::find(kept.begin(), kept.end(), l) == kept.end()) bound.push_back(opaque->matrix[l]);
  }
  return bound;
}

std::vector<std::size_t> enclosing_reductions(const Expr& expr) {
  const std::vector<std::size_t> starts = subexpression_starts(expr);
  std::vector<std::size_t> enclosing(expr.nodes.size(), no_reduction);
  std::vector<std::size_t> open;  // nodes that bind labels, whose arguments hold the current node, outermost first
  for (std::size_t i = expr.nodes.size(); i-- > 0;) {
    while (!open.empty() && i < starts[open.back()]) open.pop_back();
    if (!open.empty()) enclosing[i] = open.back();
    if (!bound_labels(expr.nodes[i]).empty()) open.push_back(i);
  }
  return enclosing;
}

}  // namespace einrel::build
