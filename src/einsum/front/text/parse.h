#pragma once

#include <vector>

#include "base/source.h"
#include "einsum/front/build/program.h"

namespace einrel {

/// The statements of a program that could be read. Adds every syntax error to `errors`; after one, reading
/// goes on with the next statement. Expressions may nest 256 deep. O(size).
build::Program parse(const SourceText& source, std::vector<Diagnostic>& errors);

/// One expression on its own, such as "sq(x-y)". Throws ProgramError.
build::Expr parse_expression(const SourceText& source);

}  // namespace einrel
