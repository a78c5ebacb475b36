#include "kernel/fusion/share.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
#include "kernel/fusion/softmax.h"

namespace einrel {
namespace {

/// Functions that take longer than storing and loading their value once more.
bool is_costly(const ScalarStep& step) {
  if (std::holds_alternative<ApplyRandom>(step.op)) return true;
  if (const auto* const binary = std::get_if<ApplyBinary>(&step.op)) return binary->function == BinaryFunction::power;
  const auto* const unary = std::get_if<ApplyUnary>(&step.op);
  return unary != nullptr && !keeps_integers(unary->function);
}

/// Whether steps [begin, end) are the x of an exp(x - y), or a whole body whose largest value is taken. As a vertex of
/// their own they can be those of a softmax (softmax.h).
bool is_scores(const EinSum& einsum, std::size_t begin, std::size_t end, const std::vector<std::size_t>& starts) {
  const std::vector<ScalarStep>& steps = einsum.body.steps;
  if (end - begin < 2) return false;
  if (end == steps.size()) return einsum.reducer == Reducer::max;
  for (std::size_t s = end + 1; s + 1 < steps.size(); ++s) {
    const auto* const difference = std::get_if<ApplyBinary>(&steps[s].op);
    if (difference == nullptr || difference->function != BinaryFunction::subtract) continue;
    if (starts[s] != begin || starts[s - 1] != end) continue;
    const auto* const exponential = std::get_if<ApplyUnary>(&steps[s + 1].op);
    return exponential != nullptr && exponential->function == UnaryFunction::exp;
  }
  return false;
}

/// A subexpression by itself: its labels in the order in which operands name them first, so that equal ones compare
/// equal wherever they stand.
struct Part {
  EinSum einsum;  ///< element-wise; all labels are output
  std::vector<VertexId> inputs;
  std::vector<std::size_t> labels;  ///< of the vertex it was taken from
};

bool same_value(const Part& a, const Part& b) {
  const auto same_extents = [](const Label& x, const Label& y) { return x.extent == y.extent; };
  return a.inputs == b.inputs && a.einsum.operands == b.einsum.operands && a.einsum.body == b.einsum.body &&
         std::equal(a.einsum.labels.begin(), a.einsum.labels.end(), b.einsum.labels.begin(), b.einsum.labels.end(),
                    same_extents);
}

/// The steps [begin, end) of a vertex; nullopt when they use padding.
std::optional<Part> part_of(const Vertex& vertex, std::size_t begin, std::size_t end) {
  const auto& einsum = std::get<EinSum>(vertex.op);
  Part part;
  const auto own_label = [&](std::size_t label) {
    const auto known = std::find(part.labels.begin(), part.labels.end(), label);
    if (known == part.labels.end()) {
      part.labels.push_back(label);
      part.einsum.labels.push_back(einsum.labels[label]);
      part.einsum.output.push_back(part.einsum.output.size());
      return part.labels.size() - 1;
    }
    return static_cast<std::size_t>(known - part.labels.begin());
  };
  for (std::size_t s = begin; s < end; ++s) {
    ScalarStep step = einsum.body.steps[s];
    if (auto* const value = std::get_if<OperandValue>(&step.op)) {
      Access access = einsum.operands[value->operand];
      if (access.pad) return std::nullopt;
      map_labels(access, own_label);
      part.inputs.push_back(vertex.inputs[value->operand]);
      part.einsum.operands.push_back(std::move(access));
      value->operand = part.inputs.size() - 1;
    }
    part.einsum.body.steps.push_back(std::move(step));
  }
  map_labels(part.einsum.body, own_label);
  return part;
}

/// A subexpression that is worth a vertex of its own, and where it stands.
struct Occurrence {
  std::size_t vertex = 0;
  std::size_t begin = 0;
  std::size_t end = 0;
  Part part;
};

std::vector<Occurrence> occurrences(const EinGraph& program, bool with_scores) {
  std::vector<Occurrence> found;
  for (std::size_t v = 0; v < program.vertices.size(); ++v) {
    const EinSum* const einsum = einsum_of(program.vertices[v]);
    if (einsum == nullptr) continue;
    const std::vector<std::size_t> starts = subexpression_starts(einsum->body);
    for (std::size_t s = 0; s < starts.size(); ++s) {
      const bool is_wanted =
          is_costly(einsum->body.steps[s]) || (with_scores && is_scores(*einsum, starts[s], s + 1, starts));
      if (!is_wanted) continue;
      if (auto part = part_of(program.vertices[v], starts[s], s + 1)) {
        found.push_back({v, starts[s], s + 1, *std::move(part)});
      }
    }
  }
  return found;
}

/// Puts the value of vertex `shared` in the place of a subexpression.
void replace(Vertex& vertex, const Occurrence& occurrence, VertexId shared) {
  auto& einsum = std::get<EinSum>(vertex.op);
  Access access;
  for (const std::size_t label : occurrence.part.labels) access.indices.push_back({0, {{1, label}}});
  auto& steps = einsum.body.steps;
  steps[occurrence.begin].type = steps[occurrence.end - 1].type;
  steps[occurrence.begin].op.emplace<OperandValue>(OperandValue{vertex.inputs.size()});
  const auto rest = steps.begin() + static_cast<std::ptrdiff_t>(occurrence.begin) + 1;
  steps.erase(rest, steps.begin() + static_cast<std::ptrdiff_t>(occurrence.end));
  vertex.inputs.push_back(shared);
  einsum.operands.push_back(std::move(access));
}

/// Without the operands that the body no longer reads.
void drop_unread_operands(Vertex& vertex) {
  auto& einsum = std::get<EinSum>(vertex.op);
  std::vector<std::optional<std::size_t>> place(vertex.inputs.size());
  std::vector<VertexId> inputs;
  std::vector<Access> operands;
  map_operands(einsum.body, [&](std::size_t read) {
    auto& at = place[read];
    if (!at) {
      at = inputs.size();
      inputs.push_back(vertex.inputs[read]);
      operands.push_back(einsum.operands[read]);
    }
    return *at;
  });
  vertex.inputs = std::move(inputs);
  einsum.operands = std::move(operands);
}

/// The same graph with one more vertex at `position`, and nobody reading it yet.
void insert_vertex(Fusion& fusion, std::size_t position, Vertex vertex, const std::vector<std::size_t>& dimensions) {
  const auto shift = [position](VertexId& id) {
    if (id.index >= position) ++id.index;
  };
  EinGraph& program = fusion.program;
  for (Vertex& other : program.vertices) std::for_each(other.inputs.begin(), other.inputs.end(), shift);
  std::for_each(program.outputs.begin(), program.outputs.end(), shift);
  const auto at = static_cast<std::ptrdiff_t>(position);
  program.vertices.insert(program.vertices.begin() + at, std::move(vertex));
  for (std::size_t c = 0; c < fusion.cuts.size(); ++c) {
    fusion.cuts[c].insert(fusion.cuts[c].begin() + at, dimensions[c]);
  }
}

/// Which dimensions of the part are the labels that the fusion cuts; nullopt where it lacks one.
std::optional<std::vector<std::size_t>> cut_dimensions(const Fusion& fusion, const Occurrence& occurrence) {
  const auto& einsum = std::get<EinSum>(fusion.program.vertices[occurrence.vertex].op);
  const std::vector<std::size_t>& labels = occurrence.part.labels;
  std::vector<std::size_t> dimensions;
  for (const std::vector<std::size_t>& cut : fusion.cuts) {
    const auto found = std::find(labels.begin(), labels.end(), einsum.output[cut[occurrence.vertex]]);
    if (found == labels.end()) return std::nullopt;
    dimensions.push_back(static_cast<std::size_t>(found - labels.begin()));
  }
  return dimensions;
}

/// Shares the first subexpression that stands in two vertices; false when there is none.
bool share_one(Fusion& fusion, bool with_scores) {
  const std::vector<Occurrence> all = occurrences(fusion.program, with_scores);
  for (const Occurrence& first : all) {
    const auto dimensions = cut_dimensions(fusion, first);
    if (!dimensions) continue;
    std::vector<Occurrence> same;
    for (const Occurrence& other : all) {
      const bool new_vertex = same.empty() || same.back().vertex != other.vertex;
      if (new_vertex && same_value(first.part, other.part) && cut_dimensions(fusion, other) == dimensions) {
        same.push_back(other);
      }
    }
    if (same.size() < 2) continue;
    const Vertex& origin = fusion.program.vertices[first.vertex];
    Vertex shared;
    shared.name = origin.name + "_shared";
    shared.dtype = first.part.einsum.body.type();
    for (const Label& label : first.part.einsum.labels) shared.bound.push_back(label.extent);
    shared.inputs = first.part.inputs;
    shared.op = first.part.einsum;
    shared.where = origin.where;
    if (element_count(shared.bound) == 0) continue;
    insert_vertex(fusion, first.vertex, std::move(shared), *dimensions);
    for (const Occurrence& occurrence : same) {
      Vertex& vertex = fusion.program.vertices[occurrence.vertex + 1];
      replace(vertex, occurrence, VertexId{first.vertex});
      drop_unread_operands(vertex);
    }
    return true;
  }
  return false;
}

Fusion shared(Fusion fusion, bool with_scores) {
  constexpr int most_shared = 8;
  for (int i = 0; i < most_shared && share_one(fusion, with_scores); ++i) {
  }
  return fusion;
}

}  // namespace

void share_subexpressions(Fusion& fusion) {
  Fusion with_scores = shared(fusion, true);
  const bool has_softmax = !find_softmaxes(with_scores.program).empty();
  fusion = has_softmax ? std::move(with_scores) : shared(std::move(fusion), false);
  verify(fusion.program);
}

}  // namespace einrel
