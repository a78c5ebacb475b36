#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "plan/formats/fit_weights.h"
#include "sql/database.h"

namespace einrel {

/// A part of a program that a database did: a vertex, or a tensor brought to another format.
struct MeasuredQuery {
  std::string about;  ///< "Z[i,k] = sum[j] X[i,j] * Y[j,k], X single, Y column-strip-100, Z column-strip-100"
  MeasuredCost measured;
};

/// Runs some 40 programs of one vertex in formats and sizes of all kinds, each a few times, and takes the least times.
/// All in temporary tables of transactions that are undone. Half a minute in SQLite, twice that in PostgreSQL.
/// Throws as sql::run does.
std::vector<MeasuredQuery> measure_queries(sql::Database& database, const FormatWeights& before,
                                           const std::stop_token& stop = {});

/// Weights that explain what was measured.
struct BelievedWeights {
  std::vector<MeasuredQuery> measured;
  FittedWeights fitted;
};

/// Measures, and once again where the weights explain little (R^2 below 0.7) or one of them is zero; of each
/// query the least time counts. Throws RunError where that does not help, as on a busy machine.
BelievedWeights believed_weights(const std::function<std::vector<MeasuredQuery>()>& measure,
                                 const FormatWeights& before);

/// Keeps weights of a server (database_weights.h) that were measured in so many seconds, in place of what is kept of
/// it. Returns what is to be said of them. Throws as calibrated_databases, with_weights and AtomicFile do.
std::string keep_weights(const std::string& server, const BelievedWeights& found, double seconds);

/// Measures the database at this URL and keeps its weights (database_weights.h), if they are believed_weights. Returns
/// what is to be said of it. Throws, before anything is measured, UserError when there is no folder for settings or the
/// file there is damaged; and as open_database and measure_queries do. Once `stop` is asked for, it ends with RunError
/// and nothing is kept.
std::string keep_calibrated_database(const std::string& url, const std::stop_token& stop = {});

}  // namespace einrel
