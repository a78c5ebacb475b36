#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/source.h"
#include "einsum/expr/complex_function.h"
#include "einsum/expr/functions.h"
#include "tensor/dtype.h"

/// A program as its parts: what check() takes, whether a text was parsed or C++ put it together (build/formula). Names
/// are not resolved yet. Expressions are vectors of nodes in postorder, so that passes over them are loops and no depth
/// of nesting can exhaust the call stack. Spans say where something stands in the text; what was never text has none
/// until it is printed (text/print_program).
namespace einrel::build {

struct Name {
  std::string text;
  Span span;
};

/// coefficient * label
struct IndexTerm {
  std::int64_t coefficient = 1;
  Name label;
};

/// An affine index such as `2*y+dy-1`; a plain label is one term with coefficient 1.
struct Index {
  std::vector<IndexTerm> terms;
  std::int64_t offset = 0;
  Span span;
  /// It is instead the value of a formula, one of the nodes before the access: E[T[s],d]. All others are affine.
  bool is_computed = false;
};

struct Number {
  double value = 0;
  std::optional<std::int64_t> integer;  ///< set when written without point or exponent and it fits
};
/// A bare name: a scalar, a label's value, or a macro's parameter.
struct NameUse {
  std::string name;
};
/// X[i,j], or pad(X[i+di], 0) when `pad` is set. The formulas of computed indices, in order, are the nodes before it.
struct Access {
  Name tensor;
  std::vector<Index> indices;
  std::optional<double> pad;
};
struct Unary {
  UnaryFunction function{};
};
struct Binary {
  BinaryFunction function{};
};
struct Where {};
struct Cast {
  DType type{};
  bool is_complex = false;  ///< to complex numbers with parts of that type
};
/// sum[j] body
struct Reduce {
  Reducer reducer{};
  std::vector<Name> labels;
};
/// softmax[j](arguments...); the arguments are the nodes before this one.
struct MacroCall {
  Name macro;
  std::vector<Name> labels;
  std::size_t arguments = 0;
};

/// uniform(seed), where the node before this one is the seed; or, with a stream, uniform_at(seed, position, iteration,
/// stream), where the three before it are the others.
struct Random {
  RandomFunction function{};
  std::optional<std::uint32_t> stream;
};

/// in_range_at(x, position, tensor[shape], indexed[extent]): the nodes before it are x and the position. See
/// CheckRange.
struct InRange {
  std::string tensor;
  std::vector<std::int64_t> shape;
  std::string indexed;
  std::int64_t extent = 0;
};

/// inverse[i,j](argument); the argument is the node before this one. The brackets name rows and columns, and of
/// qr_q[i,j,k] what is between its factors.
struct OpaqueCall {
  OpaqueResult result;
  std::vector<Name> matrix;
};

/// conj(Z[i]), complex(a, b)
struct ComplexCall {
  ComplexFunction function{};
};

using Operation = std::variant<Number, NameUse, Access, Unary, Binary, Where, Cast, Reduce, Random, InRange, OpaqueCall,
                               ComplexCall, MacroCall>;

struct Node {
  Span span;  ///< the whole subexpression as written; for a node out of a macro, the call
  Operation op;
};

struct Expr {
  std::vector<Node> nodes;
};

/// An InRange of the nodes that its last two arguments were read as: T[8], E[5]. Nothing where they are no such thing.
std::optional<InRange> range_of(const Node& tensor, const Node& indexed);

/// How many of the subexpressions before it a node takes.
std::size_t arity(const Node& node);
/// For each node, the first node of the subexpression that ends there. O(nodes).
std::vector<std::size_t> subexpression_starts(const Expr& expr);

/// The labels that mean something in the arguments of a node alone: what it reduces, and of the rows and columns of
/// linear algebra those that its result lacks.
std::vector<Name> bound_labels(const Node& node);

/// For each node, the innermost node that binds labels in whose arguments it is, or `no_reduction`; those form chains
/// outwards. O(nodes).
inline constexpr std::size_t no_reduction = static_cast<std::size_t>(-1);
std::vector<std::size_t> enclosing_reductions(const Expr& expr);

/// dims b=1000
struct Dim {
  Name label;
  std::int64_t extent = 0;
};
struct Dims {
  std::vector<Dim> dims;
};
/// input X[b,f] : f32
struct InputDecl {
  Name name;
  std::vector<Name> labels;
  DType dtype = DType::f32;
  bool is_complex = false;  ///< of complex numbers with parts of that type
};
struct Inputs {
  std::vector<InputDecl> inputs;
};
/// scalar eta = 0.01
struct ScalarDecl {
  Name name;
  std::optional<Number> value;
};
struct Scalars {
  std::vector<ScalarDecl> scalars;
};
/// def sqdist[j](x, y) = sum[j] sq(x - y)
struct MacroDef {
  Name name;
  std::vector<Name> labels;
  std::vector<Name> parameters;
  Expr body;
};
/// Z[i,k] = expression
struct Definition {
  Name name;
  std::vector<Name> labels;
  Expr value;
};
/// One dimension of a view: one label, or several written (h d), or none written 1.
using Group = std::vector<Name>;
/// H[b,s,h,d] = view X[b,s,(h d)]
struct ViewDefinition {
  Name name;
  std::vector<Group> to;
  Name source;
  std::vector<Group> from;
};
/// gradient G1, G2 = loss wrt W1, W2; with `seed` of what is no scalar: gradient D = Z wrt X given S
struct Gradient {
  std::vector<Name> results;
  Name loss;
  std::vector<Name> variables;
  std::optional<Name> seed;
};
/// state W[f,h] = expression: its value before the first step
struct State {
  Definition initial;
};
/// next W[f,h] = expression: its value in the next step
struct Next {
  Definition value;
};
/// minimize loss over W1, W2 by adam(0.001): a gradient, the states that the optimiser needs, and next values
struct Minimize {
  Name loss;
  std::vector<Name> over;
  Name optimiser;
  std::vector<Expr> arguments;
};
/// until condition: the last step is the first after which it holds
struct Until {
  Expr condition;
};
/// output V1, V2
struct Outputs {
  std::vector<Name> names;
};

struct Statement {
  Span span;
  std::variant<Dims, Inputs, Scalars, MacroDef, State, Definition, ViewDefinition, Gradient, Next, Minimize, Until,
               Outputs>
      what;
};

struct Program {
  std::vector<Statement> statements;
  /// Names in statements that could not be read: not knowing them elsewhere is no error of its own.
  std::set<std::string> suspects;
  /// Tensors that are parts of others, which the program does not name: they keep what they were computed in, and are
  /// rounded where those are stored. What a text defines is named.
  std::set<std::string> unnamed;
};

}  // namespace einrel::build
