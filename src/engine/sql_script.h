#pragma once

#include <string>
#include <vector>

#include "einsum/check.h"
#include "engine/compile.h"
#include "sql/dialect.h"
#include "tra/formats.h"

namespace einrel {

/// A program as a script of SQL, which people read and a shell of the database runs: inputs are tables with the names
/// of the tensors, a column for each label and `value`; outputs become such. `inputs` says their labels. Throws
/// UserError for a program with state, and as choose_formats, weights_for_scripts, program_script and plain_script of
/// sql do.
std::string sql_script(const Compiled& compiled, const std::vector<DeclaredInput>& inputs,
                       const ScalarBindings& scalars, const Formats& formats, sql::Dialect dialect);

}  // namespace einrel
