#pragma once

#include <string>
#include <vector>

#include "sql/database.h"
#include "sql/program/user_tables.h"
#include "tra/formats.h"

/// Tables of the user that hold tensors in chunks: columns k0, k1, ... (one for each dimension) and `chunk`, an array.
namespace einrel::sql {

/// The tensor that such a table holds, and how it is cut.
struct StoredChunks {
  DType dtype = DType::f32;
  Shape bound;
  TensorFormat format;
  bool operator==(const StoredChunks&) const = default;
};

/// Takes keys and the heads of arrays, not their elements (which SQLite reads nevertheless); in a transaction. Throws
/// UserError that names table, column and key for what is no chunk of one tensor: a key that is no number of a chunk,
/// or there twice, or missing; bytes that are no array; arrays of two types, or whose shapes are not those of equal
/// cuts.
StoredChunks chunks_in(Database& database, const UserTable& table);

/// Copies them into a temporary table of chunks (quoted).
Script copy_chunks_script(const UserTable& table, const std::string& tensor, const StoredChunks& chunks,
                          const std::string& made, Dialect dialect);

/// Makes the user's table (quoted) of the chunks of a tensor.
Script keep_chunks_script(const std::string& tensor, const std::string& chunks, const RelationType& type,
                          const std::string& table, Dialect dialect);

}  // namespace einrel::sql
