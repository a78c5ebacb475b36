#pragma once

#include <string>
#include <vector>

#include "einsum/check/check.h"
#include "run/choose_formats.h"
#include "run/compile.h"
#include "sql/dialect.h"
#include "tra/formats.h"

namespace einrel {

/// The formats in which a script computes a graph, with the weights for scripts. Throws UserError for the format
/// `element`, which is no choice of chunks, and as choose_formats and weights_for_scripts do.
ChosenFormats formats_of_script(const EinGraph& graph, const Formats& formats, sql::Dialect dialect);

/// A program as a script of SQL, which people read and a shell of the database runs: inputs are tables with the names
/// of the tensors, a column for each label and `value`; outputs become such. `inputs` says their labels. Throws
/// UserError for a program with state, and as formats_of_script, check_table_names, program_script and plain_script do.
std::string sql_script(const Compiled& compiled, const std::vector<DeclaredInput>& inputs,
                       const ScalarBindings& scalars, const Formats& formats, const sql::ScriptTarget& target);

}  // namespace einrel
