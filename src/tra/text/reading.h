#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tra/relation.h"
#include "tra/signature.h"
#include "tra/text/call_tree.h"

/// What the parameters of operations and the names of kernels mean; shared by the readers of the algebras. The read_
/// functions throw parsing::SyntaxError (einsum/parse_expr.h).
namespace einrel::calls {

/// A whole number of at least 0; `what` says which, for messages: "the dimension".
std::size_t read_index(const Parameter& parameter, std::string_view what);
std::int64_t read_integer(const Parameter& parameter, std::string_view what);
/// <0,2>
KeyPositions read_positions(const Vector& vector);
KeyPositions read_positions(const Parameter& parameter);
/// <2, 3 by 4>
std::vector<DimensionCut> read_cuts(const Vector& vector);
/// <2, 3 by 4, 4 of 956 by 2 from -1 to 3 else 0>: also with windows, as a Repartition may make them.
std::vector<DimensionCut> read_new_cuts(const Vector& vector);
/// <2, 3 by 4>, one per dimension in order, or <1: 2, 0: 3>.
TensorCut read_tensor_cut(const Vector& vector, std::size_t rank);
/// <k0,k1> -> <2*k0 + k1>; the names on the left are those of keys with `arity` positions.
KeyMap read_key_map(const Parameter& parameter, std::size_t arity);
/// k0 == k1
KeyExpr read_predicate(const Parameter& parameter, std::size_t arity);
/// diag . matAdd, the outermost first.
std::vector<Name> read_kernel_names(const Parameter& parameter);

/// The kernels that a program can name: those of the registry and its own, which are made for the types they are used
/// with.
class KernelScope {
 public:
  /// Nothing is said about unknown kernels that are among the program's suspects.
  KernelScope(const Program& program, std::vector<Diagnostic>& errors)
      : errors_(errors), suspects_(program.suspects.begin(), program.suspects.end()) {}

  /// Every scalar must be known before the first kernel is made.
  void add_scalar(const std::string& name) { scalars_.push_back(name); }
  void define(const KernelStatement& statement);
  /// The kernel for arrays of these signatures; nullopt with an error added when there is none.
  std::optional<Kernel> find(const std::vector<Name>& names, const std::vector<Signature>& arrays);
  bool contains(const std::string& name) const { return definitions_.count(name) != 0; }
  /// Checks the definitions that nothing has used.
  void check_unused();

 private:
  std::optional<Kernel> find_one(const Name& name, const std::vector<Signature>& arrays);
  std::optional<Kernel> make(const KernelDefinition& definition, const std::vector<DType>& dtypes);

  std::vector<Diagnostic>& errors_;
  std::set<std::string> suspects_;
  std::vector<std::string> scalars_;
  std::map<std::string, KernelDefinition> definitions_;
  std::map<std::pair<std::string, std::vector<DType>>, std::optional<Kernel>> made_;
};

/// Sorts errors by their place and drops those that say the same of the same place.
void sort_and_unite(std::vector<Diagnostic>& errors);

}  // namespace einrel::calls
