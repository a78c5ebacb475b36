#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tra/from_einsum.h"

namespace einrel::sql {

/// A physical format of a matrix (the 19 of "Automatic Optimization of Matrix Implementations", section 3): the most
/// rows and columns of a chunk; nothing: all of them.
struct Format {
  std::string name;
  std::optional<std::int64_t> rows;
  std::optional<std::int64_t> columns;
};

/// "single", "row", "column", "row-strip-100", "column-strip-10", "tile-1000-100"; any extents of at least 1. Throws
/// UserError for any other, with the nearest name.
Format format_named(const std::string& name);

/// Which format each tensor is stored in.
struct Formats {
  std::map<std::string, Format> tensors;
  std::int64_t most_extent = 1000;  ///< of chunks of all others, along each dimension
  bool is_element = false;          ///< every tensor element by element instead, in plain SQL
};

/// "A=row-strip-100,B=single,tile-500" as given: what has no name holds for all other tensors, and is `tile-N` or
/// `element`. Throws UserError.
Formats parse_formats(const std::string& given);

/// How every vertex is cut, so that tensors have these formats: a vector's rows are its one dimension; a tensor of more
/// dimensions takes the format's rows and columns for its last two. Reduced labels are cut as the operands' formats
/// say. A label that cannot be cut is not. Chunks have equal extents, up to one. Throws UserError for a tensor that
/// there is none of.
GraphCuts cuts_for(const EinGraph& graph, const Formats& formats);

}  // namespace einrel::sql
