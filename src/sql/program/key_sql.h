#pragma once

#include <string>
#include <vector>

#include "sql/dialect.h"
#include "tra/key.h"
#include "tra/relation.h"

namespace einrel::sql {

/// An expression over keys as a number in SQL, and as a condition; `columns` are the positions of the key.
std::string to_sql(const KeyExpr& expr, const std::vector<std::string>& columns, Dialect dialect);
std::string condition_sql(const KeyExpr& expr, const std::vector<std::string>& columns, Dialect dialect);

/// The chunk that element `element` (SQL) of a dimension lies in, if it lies in one; the inverse of chunk_begin.
std::string chunk_of(Extent extent, const DimensionCut& cut, const std::string& element);

/// The extent of chunk `part` (SQL) of a dimension.
std::string extent_of_chunk(Extent extent, const DimensionCut& cut, const std::string& part);

/// Per dimension of a stored tensor, one key position for each, the first element of chunk k0, k1, ... (as `columns`).
std::vector<std::string> chunk_begins(const RelationType& type, const std::vector<std::string>& columns,
                                      Dialect dialect);

/// "k0", "k1", ..., each with `before` in front.
std::vector<std::string> column_names(std::size_t arity, const std::string& before = "");

}  // namespace einrel::sql
