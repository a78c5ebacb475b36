#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plan/formats/format_cost.h"
#include "sql/dialect.h"

namespace einrel {

/// What `einrel calibrate --database` has measured of a database.
struct DatabaseWeights {
  std::string server;  ///< sql::Database::server()
  std::string about;   ///< for people: what was measured, and when
  FormatWeights weights;
  bool operator==(const DatabaseWeights&) const = default;
};

/// Measured beforehand; for databases that nobody calibrated.
FormatWeights assumed_weights(sql::Dialect dialect);

/// Where weights are kept among the user's settings (base/settings.h).
inline constexpr const char* database_weights_file = "databases.json";

/// What is kept there, each server once. None where there is no such file. Throws UserError that names file and field
/// for one that cannot be read or that no `calibrate` has written.
std::vector<DatabaseWeights> calibrated_databases();

/// The weights that plans for a database take: its own, else assumed ones. Throws as calibrated_databases does.
FormatWeights weights_for(const std::string& server, sql::Dialect dialect);

/// The same for a script, of which nobody knows on which server it will run: of SQLite, which has none, its own. Throws
/// UserError, too, for DuckDB, which computes no chunks.
FormatWeights weights_for_scripts(sql::Dialect dialect);

/// Beside those of others, in place of earlier ones of this server.
std::vector<DatabaseWeights> with_weights(std::vector<DatabaseWeights> kept, DatabaseWeights measured);

/// The JSON that calibrated_databases reads, and the reading of it; `source` is what messages call it.
std::string to_json(const std::vector<DatabaseWeights>& databases);
std::vector<DatabaseWeights> parse_database_weights(const std::string& text, const std::string& source);

}  // namespace einrel
