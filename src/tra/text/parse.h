#pragma once

#include "base/source.h"
#include "tra/layout.h"
#include "tra/tra_expr.h"

namespace einrel {

/// A program read from text.
struct ParsedTra {
  TraExpr program;
  InputLayouts layouts;  ///< of the inputs that say how they are stored
};

/// Reads a program in the textual form of the algebra (docs/algebra.md) and infers it. Throws ProgramError with every
/// error that can be found: first in the text and in kernels, then in what the operations do to keys and arrays.
/// O(size of the text + tuples of all relations) without errors.
ParsedTra parse_tra(const SourceText& source);

}  // namespace einrel
