#include "tra/from_einsum.h"

#include "tra/lowering.h"
#include "tra/named_kernels.h"

namespace einrel {
namespace {

/// Lowers one vertex; `stored` are the relations of the vertices before it.
class VertexLowering {
 public:
  VertexLowering(lowering::ProgramBuilder& builder, const Vertex& vertex, const std::vector<lowering::Stored>& stored,
                 const std::vector<std::int64_t>& parts)
      : builder_(builder), vertex_(vertex), stored_(stored), parts_(parts) {}

  lowering::Stored operator()(const Input&) const {
    std::vector<DimensionCut> cuts;
    for (const std::int64_t parts : parts_) cuts.push_back({parts, 1});
    const TraId id = builder_.add(StoredRelation{vertex_.name, vertex_.dtype, vertex_.bound, cut_of_all(cuts)}, {});
    KeyLabels dimensions;
    for (std::size_t d = 0; d < cuts.size(); ++d) dimensions.emplace_back(d);
    builder_.explain(id, {}, std::move(dimensions));
    return {id, vertex_.dtype, vertex_.bound, std::move(cuts)};
  }
  lowering::Stored operator()(const EinSum&) const {
    std::vector<lowering::Stored> inputs;
    for (const VertexId input : vertex_.inputs) inputs.push_back(stored_[input.index]);
    return lower_einsum(builder_, vertex_, inputs, parts_);
  }
  lowering::Stored operator()(const View&) const { return lower_one_operand(); }
  lowering::Stored operator()(const Opaque&) const { return lower_one_operand(); }

 private:
  lowering::Stored lower_one_operand() const {
    return lower_chunks(builder_, vertex_, stored_[vertex_.inputs.front().index], parts_);
  }

  lowering::ProgramBuilder& builder_;
  const Vertex& vertex_;
  const std::vector<lowering::Stored>& stored_;
  const std::vector<std::int64_t>& parts_;
};

}  // namespace

namespace lowering {

std::string kernel_name(const Vertex& vertex) {
  return is_named_kernel(vertex.name) ? vertex.name + "_of_statement" : vertex.name;
}

}  // namespace lowering

TraExpr from_einsum(const EinGraph& graph, const GraphCuts& cuts) {
  return from_einsum_with_roles(graph, cuts).program;
}

EinGraphProgram from_einsum_with_roles(const EinGraph& graph, const GraphCuts& cuts) {
  lowering::check_cuts(graph, cuts);
  EinGraphProgram made;
  made.program.scalars = graph.scalars;
  lowering::ProgramBuilder builder(made);
  std::vector<lowering::Stored> stored;
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    const Vertex& vertex = graph.vertices[v];
    builder.begin_vertex(v, vertex.where);
    stored.push_back(std::visit(VertexLowering(builder, vertex, stored, cuts.parts[v]), vertex.op));
    builder.name(stored.back().id, vertex.name);
  }
  for (const VertexId output : graph.outputs) made.program.output(graph[output].name, stored[output.index].id);
  made.roles.resize(made.program.nodes.size());
  return made;
}

}  // namespace einrel
