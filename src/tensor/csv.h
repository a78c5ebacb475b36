#pragma once

#include <optional>
#include <string>

#include "base/mapped_file.h"
#include "tensor/tensor.h"

namespace einrel {

/// Numbers of a table as text: a row on each line, fields between commas (or semicolons, or tabs, if the first line has
/// such and no comma; in FILE.tsv tabs), which do not count between quotes. Whether the first line names the columns is
/// given, or as names_columns says. `columns`: nothing for all of them; "NAME" or "3" (from 1 on) for one, which gives
/// a tensor of one dimension; "FIRST..LAST" for those from one to the other. Elements are read as `dtype`: whole
/// numbers exactly. Throws UserError, naming file, line and column, for a field that is no number of that type or too
/// large for it
/// (`inf` is infinity), a name that two columns have, a row with more or fewer fields than the first, a column that
/// there is not; RunError when there is no memory. O(bytes).
Tensor parse_csv(const FileBytes& file, const std::string& columns, DType dtype,
                 std::optional<bool> given_names = std::nullopt);

/// Whether the first line looks as if it named the columns: something in it is no number where the next line has one,
/// or all of it. A line whose texts stand above texts is a sample like the next: a column may hold no numbers.
bool names_columns(const FileBytes& file);

}  // namespace einrel
