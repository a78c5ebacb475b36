#pragma once

#include <vector>

#include "tra/tra_expr.h"

namespace einrel {

/// The part of a relation's type that does not depend on any extent.
struct Signature {
  std::size_t key_arity = 0;
  std::size_t rank = 0;
  DType dtype = DType::f32;
};

/// What an operation makes of relations with these signatures, if its parameters fit them; infer() says whether they
/// do.
Signature signature_of(const TraOp& op, const std::vector<Signature>& inputs);
/// Of a kernel's arguments: arrays, and numbers of their keys.
std::vector<Signature> with_numbers(std::vector<Signature> arrays, const KeyMap& numbers);

}  // namespace einrel
