#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/source.h"
#include "einsum/check/check.h"
#include "tra/text/parse.h"

namespace einrel {

/// The stored relations that outputs of a program in the TRA need, in its order.
std::vector<StoredRelation> inputs_of(const TraExpr& program);

/// "A[4,4] : f32", as a program declares an input, without its cut.
std::string declaration_of(const StoredRelation& input);

/// Throws ProgramError where an output is no tensor (tra/relation.h), which alone can be written and summarised: with
/// where it is computed, what its keys and arrays are, and what would make it one.
void check_outputs_are_tensors(const TraExpr& program, const SourceText& source);

/// A program in the TRA that is to run: read from text, with these relations as outputs, if there are any, in place of
/// its own, and checked against what its inputs are bound to. Throws ProgramError for a program that is wrong, data
/// that do not fit it and outputs that are no tensors, UserError for outputs that it does not have.
ParsedTra tra_program(const SourceText& source, const std::map<std::string, BoundInput>& inputs,
                      const std::vector<std::string>& outputs);

}  // namespace einrel
