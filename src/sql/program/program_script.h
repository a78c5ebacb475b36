#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sql/program/lower_tra.h"
#include "sql/program/user_tables.h"
#include "tra/from_einsum.h"

namespace einrel::sql {

/// Where a program that runs in a database has its inputs, and where its outputs go.
struct Tables {
  std::map<std::string, UserTable> inputs;  ///< tables and queries of the user
  std::vector<OutputTable> outputs;         ///< tables of the user; quoted
  Dialect dialect = Dialect::sqlite;
};

/// How a program is cut into chunks, and why each tensor is, for people.
struct ChunkedGraph {
  GraphCuts cuts;
  std::map<std::string, std::string> reasons;  ///< by the name of the vertex
};

/// Whether it pays that processes of a server share the work of some vertex.
bool is_worth_sharing(const EinGraph& graph, const GraphCuts& cuts);

/// Every vertex as a table; inputs are those of `stored`, by name. Throws as chunk_script does.
ChunkScript vertex_script(const EinGraph& graph, const ChunkedGraph& chunked, const ScalarBindings& scalars,
                          const std::map<std::string, std::string>& stored, TableNames& names, KernelTable& kernels,
                          Dialect dialect, const std::optional<Sharing>& sharing = {});

/// The outputs that become tables of the user, of the chunks that `computed` makes.
Script scatter_outputs(const EinGraph& graph, const ChunkScript& computed, const std::vector<OutputTable>& outputs,
                       Dialect dialect);

/// The whole program: inputs gathered into chunks, every vertex as a table, outputs as tables of the user; in the end
/// the temporary tables go. `names` knows the tables that there are. Throws as from_einsum and chunk_script do.
ChunkScript program_script(const EinGraph& graph, const ChunkedGraph& chunked, const ScalarBindings& scalars,
                           const Tables& tables, TableNames& names, KernelTable& kernels);

/// The labels that name the dimensions of a tensor, d0, d1, ... where there are none.
std::vector<std::string> dimension_names(const Vertex& vertex);

}  // namespace einrel::sql
