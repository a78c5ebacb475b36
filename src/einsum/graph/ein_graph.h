#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/extent.h"
#include "base/ids.h"
#include "base/source.h"
#include "einsum/expr/scalar_expr.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace einrel {

/// An index name of one vertex with its extent.
struct Label {
  std::string name;
  Extent extent;
  bool operator==(const Label&) const = default;
};

/// coefficient * label, where `label` is a position in EinSum::labels.
struct IndexTerm {
  std::int64_t coefficient = 1;
  std::size_t label = 0;
  bool operator==(const IndexTerm&) const = default;
};

/// One index of an access: an affine form `offset + sum of terms`. A plain label is one term with
/// coefficient 1 and offset 0; a constant has no terms.
struct Index {
  std::int64_t offset = 0;
  std::vector<IndexTerm> terms;
  bool operator==(const Index&) const = default;
};

/// How an EinSum reads one operand: `X[indices...]`, one index per dimension of X. With `pad`, reads
/// outside X give that value; without, verify has shown that there are none.
struct Access {
  std::vector<Index> indices;
  std::optional<double> pad;
  bool operator==(const Access&) const = default;
};

/// Reads along other labels.
void map_labels(Access& access, const Renumbering& to);

/// Z[output] = reducer over `reduced` of body(operand values, label values), for every binding of the output
/// labels: the extended Einstein notation of EinDecomp, section 3, for any number of operands.
///   Z[i,k] = sum[j] X[i,j] * Y[j,k]: labels i,j,k; output {0,2}; reduced {1}; operands X(0,1), Y(1,2).
/// Every label is either in `output` (each at most once) or in `reduced`. Without a reducer `reduced` is empty.
/// A label in `output` that no operand reads broadcasts.
/// argmax and argmin give the position in row-major order over `reduced`, the first one among equals.
struct EinSum {
  std::vector<Label> labels;
  std::vector<std::size_t> output;
  std::vector<std::size_t> reduced;
  std::optional<Reducer> reducer;
  std::vector<Access> operands;
  ScalarExpr body;
  bool operator==(const EinSum&) const = default;
};

/// A re-grouping of dimensions in einops style: element order is that of the labels.
///   H[b,s,h,d] = view X[b,s,(h d)]: labels b,s,h,d; from {{0},{1},{2,3}}; to {{0},{1},{2},{3}}.
/// Each dimension of either side is a group of labels, first label slowest; every label stands once on each side.
struct View {
  std::vector<Label> labels;
  std::vector<std::vector<std::size_t>> from;
  std::vector<std::vector<std::size_t>> to;
  bool operator==(const View&) const = default;
};

/// A digit of the numbers of the sites on which a tensor lies: so many parts of a dimension, or so many copies.
struct SiteDigit {
  std::optional<std::size_t> dimension;  ///< nothing of copies
  std::int64_t sites = 1;
  bool operator==(const SiteDigit&) const = default;
};

/// A tensor that comes from outside.
struct Input {
  /// So many steps read the same: it stays where the first of them brings it (plan/staying_inputs.h).
  std::int64_t steps = 1;
  /// Where it lies, if that is given, whatever a plan does with it: the highest digit first (plan/placed_inputs.h).
  std::optional<std::vector<SiteDigit>> placement = std::nullopt;
  bool operator==(const Input&) const = default;
};

/// Linear algebra that no EinSum expresses.
/// One output of a function of the matrices of X[operand]: the last labels are those of the matrices (matrix_labels),
/// rows and columns first, all others are batches. The result's dimensions are batches, then those that
/// matrix_dimensions says.
///   Z[b,i,j] = inverse[i,j](X[j,b,i]): labels b,i,j; operand {2,0,1}.
///   Q[b,i,k] = qr_q[i,j,k](X[b,i,j]): labels b,i,j,k; operand {0,1,2}; output 0.
/// Outputs of one function of one operand are computed by one call. A plan may cut batches; a matrix is whole on one
/// site. f32 and f64 only.
struct Opaque {
  OpaqueFunction function = OpaqueFunction::inverse;
  std::vector<Label> labels;
  std::vector<std::size_t> operand;  ///< the label of each of its dimensions
  std::uint8_t output = 0;
  bool operator==(const Opaque&) const = default;
};

using VertexId = StrongId<struct VertexTag>;

/// One tensor of the program and how it is computed. `inputs[i]` is what the operand i of an EinSum (or the
/// one operand of the others) reads.
struct Vertex {
  std::string name;
  DType dtype = DType::f32;
  Shape bound;
  std::vector<VertexId> inputs;
  std::variant<Input, EinSum, View, Opaque> op;
  Span where;  ///< the statement in the program text
  bool operator==(const Vertex&) const = default;
};

/// A named number bound at run time; without a default the user must give it.
struct ScalarDeclaration {
  std::string name;
  std::optional<double> value;
  std::optional<DType> integer_type;  ///< it is used as this integer type, so its value must be one
  bool is_iteration = false;          ///< it counts the steps that were done before, whatever anyone gives
  bool operator==(const ScalarDeclaration&) const = default;
};

/// An input that a step hands to the next one.
struct State {
  VertexId now;                     ///< the input
  std::optional<std::size_t> next;  ///< the output that is its value in the next step; without, it never changes
  bool operator==(const State&) const = default;
};

/// What makes a graph one step of many.
struct Steps {
  std::vector<State> states;
  std::optional<std::size_t> until;  ///< the output that says whether this step is the last
  std::size_t feedback = 0;          ///< so many of the last outputs are none of the program's: only steps need them
  bool operator==(const Steps&) const = default;
};

/// The tensors by which a program says what a state is before the first step, and what it will be in the next one.
std::string initial_name(const std::string& state);
std::string next_name(const std::string& state);
/// The tensor that is the condition of `until`, and the scalar that counts steps.
inline constexpr const char* until_name = "until";
inline constexpr const char* iteration_name = "iteration";

/// The program as a DAG (EinDecomp, section 3): vertices in an order in which inputs come first.
struct EinGraph {
  std::vector<Vertex> vertices;
  std::vector<VertexId> outputs;
  Steps steps;
  std::vector<ScalarDeclaration> scalars;
  /// Inputs and outputs that are complex where a program begins and ends: their last dimension, of extent 2, holds real
  /// and imaginary parts (complex.h). Between, they are tensors as all others.
  std::set<std::string> complex;
  const Vertex& operator[](VertexId id) const { return vertices[id.index]; }
  bool operator==(const EinGraph&) const = default;
};

bool is_state(const EinGraph& graph, std::size_t vertex);

/// Gives a graph made of the vertices of another the same outputs, steps, scalars and complex tensors: `moved` are its
/// vertices, by those of the other.
void copy_interface(const EinGraph& from, const std::vector<VertexId>& moved, EinGraph& to);

/// The outputs that the program says, without those that only steps need.
std::vector<VertexId> program_outputs(const EinGraph& graph);

/// Values of the program's scalars by name.
using ScalarBindings = std::map<std::string, double>;

/// What the inputs of a graph are bound to, by name.
using TensorBindings = std::map<std::string, Tensor>;

/// Whether `value` is a whole number that an integer type holds.
bool is_exact(double value, DType integer);

/// Throws Bug unless `graph` keeps every promise of the types above: positions in range, labels each used as
/// said, extents equal where operands meet (open ones may be anything), accesses inside their bounds, body and dtypes
/// consistent.
void verify(const EinGraph& graph);

}  // namespace einrel
