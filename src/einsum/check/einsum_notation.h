#pragma once

#include <optional>
#include <string>
#include <vector>

#include "einsum/check/check.h"

namespace einrel {

/// One einsum in NumPy's notation with its operands, and our two extensions.
struct EinsumRequest {
  std::string subscripts;            ///< as for numpy.einsum: "ij,jk->ik", implicit output, "...", repeated labels
  std::vector<BoundInput> operands;  ///< read as the first of their readable_as
  std::optional<std::string> join;   ///< combines one value per operand, named x, y, z or x1, x2, ...; default: product
  std::optional<std::string> reduce;  ///< the name of a reduction; default: sum (any, for bools, as in NumPy)
};

/// The name that operand `position` of `count` has in `join`: x, y, z up to three operands, else x1, x2, ...
std::string operand_name(std::size_t position, std::size_t count);

/// The name of the result.
inline constexpr const char* einsum_result = "result";

/// What errors point into: the join expression where there is one, else the subscripts.
SourceText einsum_source(const EinsumRequest& request);

/// Throws UserError for a reduction that there is not.
void check_reduction(const EinsumRequest& request);

/// The statement that the request is: `einsum_result`, of tensors named operand_name(...).
/// Throws ProgramError that points into the subscripts or the join expression.
build::Definition einsum_definition(const EinsumRequest& request);

/// The request as a program of one statement over inputs named operand_name(...), checked and as a graph. Dimensions
/// of extent 1 broadcast against longer ones under the same label, as in NumPy.
/// Throws ProgramError that points into the subscripts or the join expression.
EinGraph einsum_graph(const EinsumRequest& request);

}  // namespace einrel
