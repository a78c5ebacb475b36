#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/extent.h"
#include "base/source.h"
#include "einsum/front/build/program.h"
#include "einsum/graph/ein_graph.h"
#include "einsum/graph/pass_record.h"

namespace einrel {

/// What an input of the program is bound to, as far as the checks need to know.
struct BoundInput {
  Shape shape;
  std::string stored_type;         ///< as people write it, for messages: "f64", "u8"
  std::vector<DType> readable_as;  ///< the dtypes it can be read as without loss
  std::string origin;              ///< where it comes from: a file name
  bool is_least = false;           ///< `shape` is the least that its extents are: the data may leave zeros out
  std::vector<std::string> largest_keys = {};  ///< by dimension, where keys say extents: "j=3"; "" for none
  std::string remedy = {};                     ///< what to do where the data are too small
  bool is_complex = false;  ///< complex numbers: the last dimension of `shape` is that of their parts
};

/// What a program is checked against besides its own text.
struct Environment {
  std::map<std::string, std::int64_t> dims;  ///< extents that override or complete `dims`
  std::map<std::string, BoundInput> inputs;
};

/// An input as declared; an extent is missing when nothing says it yet.
struct DeclaredInput {
  std::string name;
  std::vector<std::string> labels;
  std::vector<std::optional<Extent>> extents;
  DType dtype = DType::f32;
  bool is_complex = false;  ///< its last label, "parts", is that of real and imaginary parts
};

/// As it is declared: "input X[b,f] : f32".
std::string declaration_of(const DeclaredInput& input);

struct CheckedProgram {
  std::vector<DeclaredInput> inputs;
  /// Labels and sizes that nothing gives yet: neither `dims`, nor the environment, nor an input.
  std::vector<std::string> unknown_extents;
  std::vector<std::string> tensors;  ///< the names of all vertices
  std::vector<std::string> scalars;
  std::vector<std::string> losses;  ///< that `minimize` makes small
  std::vector<PassRecord> passes;   ///< those that run while a program is checked: gradient and minimize
  /// The whole program as a graph, every statement included; missing while an extent is unknown.
  std::optional<EinGraph> graph;
  /// Of a program with state: a step without what goes out, after which every state has its value before the first
  /// step.
  std::optional<EinGraph> initial;
};

/// All that is wrong with a program is that gradients are asked for which are 0 everywhere.
class NoGradient : public ProgramError {
 public:
  using ProgramError::ProgramError;
};

/// Resolves names, labels, extents and types of a program, expands its macros and turns its statements into
/// vertices: each reduction becomes a vertex, and what is element-wise between reductions becomes one.
/// Equal vertices inside statements are shared. n-ary products stay whole (see contraction_order.h).
/// Throws ProgramError with every error of the program, NoGradient where each is one: `errors` found while parsing and
/// those found here.
/// O(size of the program with its macros expanded).
CheckedProgram check(const build::Program& program, const SourceText& source, const Environment& environment,
                     std::vector<Diagnostic> errors = {});

/// The graph of a kernel, whose inputs are the arrays that it runs on. What they will say is open in it: extents that
/// the program does not give, which no label has to have. nullopt with `errors` added when the program has some.
std::optional<EinGraph> check_kernel(const build::Program& program, std::vector<Diagnostic>& errors);

/// parse, then check.
CheckedProgram parse_and_check(const SourceText& source, const Environment& environment);

/// The graph without the vertices that no output needs.
EinGraph needed_for_outputs(const EinGraph& graph);

}  // namespace einrel
