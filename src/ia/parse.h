#pragma once

#include "base/source.h"
#include "ia/ia_program.h"

namespace einrel {

/// Reads a program in the textual form of the implementation algebra (docs/algebra.md):
///   input A[4,4] cut <2,2> on <0>
///   C = local_aggregate(<0,2>, matAdd)(shuf(<0,2>)(local_join(<1>, <0>, matMul)(bcast(A), A)))
/// A shuffle or repartition without a site grid is spread over the sites evenly. Throws ProgramError with what is wrong
/// first.
IaProgram parse_ia(const SourceText& source, std::int64_t sites);

}  // namespace einrel
