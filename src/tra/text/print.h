#pragma once

#include <string>
#include <vector>

#include "tra/tra_expr.h"

namespace einrel {

/// The program in the textual form that parse_tra reads (docs/algebra.md): scalars, kernels that are not in the
/// registry, then one line per node; nodes without a name are called t1, t2, ... Read back, it is the same program, but
/// for names of nodes and kernels and for the order of operands in kernels (see in_reading_order).
///
/// What no text of the language says is printed as people read it and not read back: the number NaN, an i32 number
/// beside nothing of that type, a reduction over a label that its body does not have (from_einsum makes these of empty
/// tensors). O(nodes * size of their kernels).
std::string to_text(const TraExpr& program);
/// One operation over named inputs: "join(<1>, <0>, matMul)(A, B)"; an input without its name: "[4,4] : f32 cut <2,2>".
std::string to_text(const TraOp& op, const std::vector<std::string>& inputs, std::size_t key_arity);
/// What stands behind a kernel that takes numbers of keys with `arity` positions: ", <k0> -> <4*k0>".
std::string numbers_text(const KeyMap& numbers, std::size_t arity);
/// "<2,3 by 4>"
std::string to_text(const std::vector<DimensionCut>& cuts);

}  // namespace einrel
