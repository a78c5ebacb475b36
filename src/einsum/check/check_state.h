#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/source.h"
#include "base/suggest.h"
#include "einsum/check/check.h"
#include "einsum/front/build/program.h"
#include "einsum/front/text/macros.h"
#include "einsum/graph/ein_graph.h"
#include "einsum/passes/complex.h"

/// What the parts of check() share; nobody else includes this.
namespace einrel::checking {

/// An extent that may not be known before data is bound.
using MaybeExtent = std::optional<std::int64_t>;

/// A label with one extent all over the program: from `dims`, --dim or an input.
struct DeclaredLabel {
  MaybeExtent extent;
  std::string source;  ///< who says so, for messages: "dims", "--dim", "input X[b,f]"
  Span where;
  std::string remedy = {};  ///< as of BoundInput
};

/// A tensor that statements may read.
struct TensorInfo {
  VertexId vertex;
  std::vector<MaybeExtent> extents;
  std::vector<std::string> labels;  ///< that an input declares
  DType dtype = DType::f32;
  Span where;
  bool broken = false;  ///< its definition has an error: readers check what they can and stay silent
  bool read = false;
  bool is_complex = false;  ///< its last dimension is that of the parts
};

/// Vertices under construction; equal ones are made once.
class GraphBuilder {
 public:
  VertexId add(Vertex vertex);
  /// An existing vertex that computes the same tensor, whatever it and its labels are called; else `vertex`, under
  /// the name base, base_1, base_2, ...: the first that no tensor has.
  VertexId find_or_add(Vertex vertex, const std::string& base, const std::set<std::string>& taken);
  EinGraph& graph() { return graph_; }
  /// Leaves out what only gradients look at. Of vertices that become equal by that, all readers read the first; those
  /// of `named` stay what they are.
  void leave_out_stops(const std::set<std::string>& named);
  /// The vertex of this name, also one inside of a statement.
  std::optional<VertexId> find(const std::string& name) const;

 private:
  EinGraph graph_;
  std::unordered_map<std::string, VertexId> by_key_;
  std::unordered_map<std::string, VertexId> by_name_;
  std::unordered_map<std::string, std::size_t> last_number_;
};

/// A state while its program is checked.
struct CheckedState {
  std::string name;
  Span where;
  VertexId now;
  VertexId initial;
  std::optional<VertexId> next;
};

/// A definition that a gradient needs: it reads vertices inside of statements, too.
struct MadeDefinition {
  const std::map<std::string, Extent>& extents;  ///< of its labels, whatever others of the same names have
  bool is_named = false;                         ///< else an equal vertex may stand for it
};

struct CheckState {
  CheckState(const Environment& given, const build::Program& program, std::vector<Diagnostic>& found)
      : environment(given), suspects(program.suspects), errors(found), unnamed(program.unnamed) {}

  const Environment& environment;
  const std::set<std::string>& suspects;  ///< see build::Program
  std::vector<Diagnostic>& errors;
  std::map<std::string, DeclaredLabel> labels;
  std::map<std::string, TensorInfo> tensors;
  std::map<std::string, Span> defined;                    ///< the tensors that statements so far define
  std::set<std::string> tensor_names;                     ///< every tensor that some statement will define
  std::set<std::string> unnamed;                          ///< see build::Program; those of `minimize`, too
  std::map<std::string, std::vector<std::string>> reads;  ///< what each definition reads, as written
  std::string current;                                    ///< the tensor whose definition is being checked
  std::map<std::string, ScalarDeclaration> scalars;
  MacroTable macros;
  GraphBuilder builder;
  std::vector<CheckedState> states;
  std::optional<VertexId> until;
  std::set<std::string> unknown_extents;
  std::set<std::string> seen_labels;     ///< every label that some statement uses
  bool arrays_give_extents = false;      ///< see check_kernel
  bool has_complex = false;              ///< see has_complex_numbers
  ComplexConstants constants = {};       ///< once products of complex tensors read them
  std::size_t gradients_of_nothing = 0;  ///< errors after which all vertices are what the program says
  double written_operations = 0;         ///< of all statements so far, their macros expanded
  double made_operations = 0;            ///< of what gradients added
  const MadeDefinition* made = nullptr;  ///< that is being checked, if it is one
  std::vector<PassRecord> passes{{"gradient"}, {"minimize"}};  ///< until the end, vertices_after is what they added
  std::map<std::string, TensorInfo> made_reads;                ///< what such definitions read

  bool is_suspect(const std::string& name) const { return suspects.count(name) != 0; }
  /// "did you mean ...?" for a name among those that `known()` returns. Only for the first hundred errors: comparing
  /// with every name for every error would make a large broken program slow.
  template <class Known>
  std::string suggest(const std::string& wrong, const Known& known) const {
    return errors.size() < 100 ? did_you_mean(wrong, known()) : "";
  }
  void error(std::string message, std::vector<Span> marks, std::string help = "") {
    errors.push_back({std::move(message), std::move(marks), std::move(help)});
  }
};

/// The tensor that `name` reads, marked as read; nullptr with an error added when there is none.
TensorInfo* find_tensor(CheckState& state, const build::Name& name);

/// Reports a bare name that is nothing: no scalar, and no label whose value is known there. `left`: the labels on the
/// left side.
void report_unknown_name(CheckState& state, const std::string& name, Span span, const std::vector<std::string>& left);

/// Whether a tensor of that type can hold what it is padded with: integers and bools are padded with their like.
bool check_pad(CheckState& state, const build::Access& access, DType dtype, Span span);

/// Z[...] = expression, and Z[...] = view X[...]. Both define Z in `state`, broken if need be.
void check_definition(CheckState& state, const build::Definition& definition, Span where);
void check_view(CheckState& state, const build::ViewDefinition& view, Span where);

/// What is said of states: state W[...] = expression, next W[...] = expression, minimize loss over W, until expression.
void check_state_statement(CheckState& state, const build::State& declared, Span where);
/// The state of that name; nullptr where none was declared.
CheckedState* find_state(CheckState& state, const std::string& name);
/// Adds a state whose `initial` value was computed.
void declare_state(CheckState& state, const build::Name& name, TensorInfo initial, Span where);
void check_next(CheckState& state, const build::Next& next, Span where);
void check_minimize(CheckState& state, const build::Minimize& minimize, Span where);
void check_until(CheckState& state, const build::Until& until, Span where);
/// What of `graph`, whose outputs are known, goes on from step to step; and the graph of a step that makes the values
/// before the first one, if there are states.
std::optional<EinGraph> take_steps(const CheckState& state, EinGraph& graph);

/// The tensor that a definition defines, which nobody can read yet.
TensorInfo checked_definition(CheckState& state, const build::Definition& definition, Span where);
/// The same of one that says nothing of complex numbers.
TensorInfo checked_in_real_numbers(CheckState& state, const build::Definition& definition, Span where);

/// A definition that nobody wrote. `where`: whose it is.
VertexId check_made(CheckState& state, const build::Definition& definition, Span where, const MadeDefinition& made);

/// Runs what makes vertices of a statement, and records it as done by that pass, but for what other passes do inside of
/// it.
void run_pass(CheckState& state, std::string_view pass, const std::string& change, const std::function<void()>& run);
/// The records of all, one after the other, of a program that has so many vertices in the end.
std::vector<PassRecord> records_of(const CheckState& state, std::size_t vertices);

/// gradient G = loss wrt W. Defines its results, broken if need be.
void check_gradient(CheckState& state, const build::Gradient& gradient, Span where);

/// Reports labels that stand twice on a left side.
void check_distinct(CheckState& state, const std::vector<build::Name>& labels);

inline Extent extent_or_open(const MaybeExtent& extent) { return extent ? Extent(*extent) : Extent::open(); }
/// Throws UserError when an array of this bound and type has more than 2^63 bytes, whatever its open extents are. Those
/// count as 1.
void check_bytes(Shape bound, DType dtype);

}  // namespace einrel::checking
