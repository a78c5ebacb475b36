#include "einsum/passes/join_split.h"

#include <set>
#include <utility>
#include <vector>

#include "einsum/graph/vertex_splitter.h"

namespace einrel {
namespace {

/// A subexpression, and which tensors it reads.
struct Part {
  ScalarExpr expr;
  std::set<VertexId> tensors;
};

/// True when it appended the vertices that replace the original one.
bool split(VertexSplitter& splitter, std::size_t most) {
  std::vector<Part> open;
  bool is_split = false;
  for (const ScalarStep& step : splitter.einsum().body.steps) {
    const std::size_t first = open.size() - arity(step);
    const auto tensors = [&] {
      std::set<VertexId> all;
      if (const auto operand = operand_read(step)) all.insert(splitter.operand(*operand).first);
      for (std::size_t a = first; a < open.size(); ++a) all.insert(open[a].tensors.begin(), open[a].tensors.end());
      return all;
    };
    for (std::size_t a = first; a < open.size() && tensors().size() > most; ++a) {
      if (open[a].tensors.size() < 2) continue;
      const LabelSet labels = splitter.labels_of(open[a].expr);
      open[a].expr = splitter.intermediate(open[a].expr, labels, labels).expr;
      open[a].tensors = {splitter.operand(*operand_read(open[a].expr.steps.front())).first};
      is_split = true;
    }
    Part whole{{}, tensors()};
    for (std::size_t a = first; a < open.size(); ++a)
      whole.expr.steps.insert(whole.expr.steps.end(), open[a].expr.steps.begin(), open[a].expr.steps.end());
    whole.expr.steps.push_back(step);
    open.resize(first);
    open.push_back(std::move(whole));
  }
  if (!is_split) return false;
  splitter.finish(open.back().expr, splitter.all_labels(), splitter.einsum().reducer);
  return splitter.keep_what_fits();
}

}  // namespace

EinGraph split_joins(const EinGraph& graph, std::size_t most) {
  return replace_vertices(graph, [&](const Vertex&, VertexSplitter splitter, const EinGraph&) {
    return !splitter.has_no_bindings() && split(splitter, most);
  });
}

}  // namespace einrel
