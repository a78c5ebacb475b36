#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "einsum/graph/ein_graph.h"
#include "tra/from_einsum.h"
#include "tra/tra_expr.h"

/// How from_einsum builds its program; nobody else needs it.
namespace einrel::lowering {

/// The tensor of a vertex as a relation with one key position per dimension.
struct Stored {
  TraId id;
  DType dtype = DType::f32;
  Shape bound;
  std::vector<DimensionCut> cuts;
};

/// Adds the nodes of one vertex after the other to a program.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(EinGraphProgram& made) : made_(made), program_(made.program) {}

  /// The nodes that follow belong to this vertex, whose statement stands there.
  void begin_vertex(std::size_t vertex, Span where) {
    vertex_ = vertex;
    where_ = where;
  }
  TraId add(TraOp op, std::vector<TraId> inputs) { return program_.add(std::move(op), std::move(inputs), "", where_); }
  /// A node that says the same as one that was added by this function before is that one.
  TraId find_or_add(const TraOp& op, const std::vector<TraId>& inputs);
  void name(TraId id, const std::string& name) { program_.nodes[id.index].name = name; }
  /// Says what the key positions of a node of the vertex at hand count, and those of its inputs.
  void explain(TraId id, std::vector<KeyLabels> inputs, KeyLabels labels);

  /// The tensor cut in another way: itself where both cuts have the same chunks.
  TraId recut(const Stored& tensor, const std::vector<DimensionCut>& cuts);
  /// The relation with the key positions in this order, 0 where a position is missing.
  TraId reorder_key(TraId id, const std::vector<std::optional<std::size_t>>& positions, std::size_t arity);

 private:
  EinGraphProgram& made_;
  TraExpr& program_;
  std::size_t vertex_ = 0;
  Span where_;
  std::map<std::pair<std::size_t, std::vector<TraId>>, std::vector<TraId>> shared_;  // by operation and inputs
};

/// One relation that a body reads.
struct Source {
  TraId id;
  DType dtype = DType::f32;
  std::vector<std::optional<std::size_t>> keys;  ///< per key position the label whose chunks it counts; else it is 0
};
/// An operand of a body.
struct Operand {
  std::size_t source = 0;
  Access access;
  std::vector<std::size_t> windows = {};  ///< dimensions whose chunks hold what windows of a label that is cut read
};
/// An EinSum over relations: `operands` is what its body reads. Every label that is cut and that an operand reads is a
/// key position of its source, and a plain index there, or one of a window in its chunk.
struct ChunkedEinSum {
  std::vector<Source> sources;
  std::vector<Operand> operands;
  std::vector<std::size_t> output;
  std::vector<std::size_t> reduced;
  std::optional<Reducer> reducer;
  ScalarExpr body;
  DType dtype = DType::f32;  ///< of the result
};

/// The labels of one vertex, and into how many parts each is cut.
struct LabelCuts {
  std::vector<Label> labels;
  std::vector<std::int64_t> parts;
  bool is_cut(std::size_t label) const { return parts[label] > 1; }
};

/// Throws UserError naming label and reason for a cut that the label does not allow.
void check_cuts(const EinGraph& graph, const GraphCuts& cuts);

/// The value of an operand; the step's type is given, for operands arrive in their compute type.
ScalarStep operand_step(std::size_t operand, DType type);

/// X[l0,l1,...]
Access plain_access(const std::vector<std::size_t>& labels);

/// The vertex over the relations of its inputs, cut as its labels are.
ChunkedEinSum read_operands(ProgramBuilder& builder, const Vertex& vertex, const std::vector<Stored>& inputs,
                            const LabelCuts& cuts);

// The relation of a vertex; `inputs` are those of vertex.inputs, `parts` says how each label is cut.
Stored lower_einsum(ProgramBuilder& builder, const Vertex& vertex, const std::vector<Stored>& inputs,
                    const std::vector<std::int64_t>& parts);
/// Of what works on its one operand chunk by chunk: a View, an Opaque.
Stored lower_chunks(ProgramBuilder& builder, const Vertex& vertex, const Stored& input,
                    const std::vector<std::int64_t>& parts);

/// What the kernels of a vertex are called: its name, unless a built-in kernel is called so.
std::string kernel_name(const Vertex& vertex);

}  // namespace einrel::lowering
