#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sql/dialect.h"
#include "sql/functions/kernel_table.h"
#include "sql/program/names.h"
#include "sql/program/script.h"
#include "tra/tra_expr.h"

namespace einrel::sql {

/// A program over tables of chunks: key columns k0, k1, ... and `chunk`, an array.
struct ChunkScript {
  Script statements;
  std::map<std::string, std::string> tables;  ///< of each output by its name; quoted, ready for FROM
  std::map<std::string, RelationType> types;  ///< the same
};

/// What stands above the statement of a vertex.
struct Remark {
  std::string formula;
  std::string why;        ///< it has the chunks that it has
  bool is_large = false;  ///< it is worth that processes share it
};
/// By the name of the vertex.
using Remarks = std::map<std::string, Remark>;

/// A kernel with the values of named scalars in their place.
Kernel with_scalars(Kernel kernel, const ScalarBindings& scalars);

/// Every operation of the algebra as a query; those that several read, and those with a name, as temporary tables, the
/// others as parts of the statements that read them. What runs on chunks are calls of einrel_kernel and others
/// (functions.h). Large vertices are computed in parts where there is `sharing`. `inputs` are the tables of the
/// StoredRelations, quoted; named scalars get the values given. Throws as infer does, and UserError for a chunk of more
/// than most_chunk_bytes (tra/formats.h).
ChunkScript chunk_script(const TraExpr& program, const std::map<std::string, std::string>& inputs,
                         const ScalarBindings& scalars, const Remarks& remarks, TableNames& names, KernelTable& kernels,
                         Dialect dialect, const std::optional<Sharing>& sharing = {});

}  // namespace einrel::sql
