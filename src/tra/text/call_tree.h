#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/source.h"
#include "einsum/front/build/program.h"
#include "tra/key.h"
#include "tra/named_kernels.h"

/// The textual form of the algebras as written: names are not resolved, operations not known yet. The TRA and the IA
/// differ in their operations only, so they share this (docs/algebra.md).
namespace einrel::calls {

using Name = build::Name;

/// An arithmetic expression over names, in postorder: "2*k0 + k1".
struct Arithmetic {
  struct Term {
    std::variant<std::int64_t, std::string, KeyFunction> what;
    Span span;
  };
  std::vector<Term> terms;
  Span span;
};
/// Behind the parts of a label, how it is read: "of 956 by 2 from 0 - 1 to 3 else 0".
struct WindowClause {
  Arithmetic extent;
  std::optional<Arithmetic> coefficient;
  Arithmetic low;
  Arithmetic high;
  std::optional<double> pad;
  Span span;
};
/// One item of a vector: "4", "1: 4", "3 by 4", "4 of 956 from 0 to 4", "2*k0 + k1".
struct Entry {
  std::optional<Arithmetic> dim;
  Arithmetic value;
  std::optional<Arithmetic> unit;
  std::optional<WindowClause> window;
};
/// <0,2>
struct Vector {
  std::vector<Entry> entries;
  Span span;
};
/// <k0,k1> -> <2*k0 + k1>
struct Arrow {
  Vector from;
  Vector to;
};
/// diag . matAdd
struct Composition {
  std::vector<Name> kernels;  ///< the outermost first
};
struct Parameter {
  std::variant<Arithmetic, Vector, Arrow, Composition> what;
  Span span;
};

/// name(parameters)(inputs). An operation without parameters is written name(inputs), one without inputs
/// name(parameters): where there is one pair of parentheses, names and calls in it are inputs.
struct Call {
  Name name;
  std::vector<Parameter> parameters;
  std::vector<std::size_t> inputs;  ///< nodes of the tree
  Span span;                        ///< name and parameters
};
/// Nested calls in postorder: inputs before users, the outermost last. A Name is a relation of another statement.
struct CallTree {
  std::vector<std::variant<Name, Call>> nodes;
};

/// scalar eta = 0.01
struct ScalarStatement {
  Name name;
  std::optional<double> value;
};
/// kernel l2(A[i,j], B[j,k]) -> [i,k] with d=4 = BODY given S[i] = BODY
struct KernelStatement {
  Name name;
  KernelDefinition definition;
};
/// input A[4,4] : f32 cut <2,2> on <0>, <2>, <2>
struct InputStatement {
  Name name;
  std::vector<std::int64_t> extents;
  DType dtype = DType::f32;
  std::optional<Vector> cut;
  bool on_all = false;
  std::optional<Vector> on;
  std::vector<Vector> grid;  ///< what follows `on <0>`: sites, parts, copies; the implementation algebra has these
};
/// C = aggregate(...)(...)
struct Assignment {
  Name name;
  CallTree value;
};
/// output C, D = t3
struct OutputStatement {
  struct Output {
    Name name;
    Name node;
  };
  std::vector<Output> outputs;
};

struct Statement {
  std::variant<ScalarStatement, KernelStatement, InputStatement, Assignment, OutputStatement> what;
  Span span;
};

struct Program {
  std::vector<Statement> statements;
  /// Names that statements which could not be read would have defined: not knowing them is no error of its own.
  std::vector<std::string> suspects;
};

/// The statements that could be read. Adds every syntax error to `errors`; after one, reading goes on with the next
/// statement. Calls and expressions nest 256 deep at most. O(size).
Program parse(const SourceText& source, std::vector<Diagnostic>& errors);

}  // namespace einrel::calls
