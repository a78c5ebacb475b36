#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sql/dialect.h"
#include "sql/functions/gather.h"
#include "sql/program/names.h"
#include "sql/program/script.h"
#include "tra/relation.h"

namespace einrel::sql {

/// How a table of the user holds a tensor.
enum class Layout {
  elements,  ///< a row for each element: one column per label, and `value`
  rows,      ///< a row for each index of the first label, a column for each of the second (of a vector: one column)
  chunks     ///< a row for each chunk: columns k0, k1, ..., and `chunk`, an array (chunk_tables.h)
};

/// A table or a query that a tensor is read from.
struct UserTable {
  std::string source;           ///< in SQL, ready for FROM
  std::string title;            ///< for messages: "table 'T'"
  std::vector<Column> columns;  ///< keys in the order of the dimensions, then the value; or those of a row
  Layout layout = Layout::elements;
  bool is_sparse = false;  ///< of elements: those that are absent are zeros
  bool is_query = false;   ///< else a table or a view, whose rows have no order
  std::string kept = {};   ///< the temporary table that `source` reads, if a query was computed; quoted
  double kept_bytes = 0;   ///< that it takes
};

/// A table or query as people type it.
struct TypedSource {
  bool is_sparse = false;
  bool is_query = false;
  bool is_chunks = false;  ///< what a table is to become; one that is there is known by its columns
  std::string text;        ///< the name, or the query
};
/// "table:NAME" or "query:SELECT ...", also with "sparse:" before it, or "chunks:NAME"; nothing for what begins
/// otherwise. Throws UserError where neither a table nor a query follows "sparse:".
std::optional<TypedSource> typed_source(const std::string& given);

/// Of columns that are called as those of chunks, and hold none.
inline constexpr const char* chunk_column_remedy =
    "; if it is to hold numbers, give it another name: a query with AS does";

/// How it is read as a tensor with these labels, for people: "a row for each i, a column for each j, in no certain
/// order".
std::string layout_text(const UserTable& table, const std::vector<std::string>& labels);

/// What it means that a table has no row for an element.
Absent absent_in(const UserTable& table);

/// Which columns are keys of a tensor with these labels, which is the value. Throws UserError when the columns fit no
/// layout.
UserTable read_columns(std::string source, std::string title, const std::vector<Column>& columns,
                       const std::vector<std::string>& labels, Dialect dialect);

/// Where an output of a program goes.
struct OutputTable {
  std::string tensor;
  std::string table;  ///< as the user calls it, or quoted
  bool in_chunks = false;
};

/// A query of how many elements each dimension has; of elements of the largest and the smallest key of each, -1 and 0
/// where there is none, and of how many rows have one; and of how many rows there are.
std::string extents_query(const UserTable& table, Dialect dialect);
/// A query of one element (elements_query) with a key that is no whole number.
std::string bad_key_query(const UserTable& table, std::size_t rank, Dialect dialect);

/// The elements of a tensor of that many dimensions as a query of columns i0, i1, ..., v, and c, the name of the column
/// that v comes from.
std::string elements_query(const UserTable& table, std::size_t rank);
/// The names of the key columns as messages say them.
std::vector<std::string> key_names(const UserTable& table, std::size_t rank);

/// Gathers the elements into a temporary table of chunks, called `made` (quoted), and looks for chunks that are
/// missing, or makes them of zeros.
Script gather_script(const UserTable& table, const std::string& tensor, DType dtype, const Shape& bound,
                     const std::vector<DimensionCut>& cuts, const std::string& made, Dialect dialect);

/// Makes the user's table (quoted) of the elements of chunks; `labels` name its columns, as far as SQL takes them.
Script scatter_script(const std::string& tensor, const std::string& chunks, const RelationType& type,
                      const std::vector<std::string>& labels, const std::string& table, Dialect dialect);

/// Names of key columns: the labels, or d0, d1, ... where two of them or one and `value` are the same to a database, or
/// one can be no column there.
std::vector<std::string> key_column_names(const std::vector<std::string>& labels, Dialect dialect);

}  // namespace einrel::sql
