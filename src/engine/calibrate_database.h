#pragma once

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

/// Measures the database at this URL and keeps its weights (database_weights.h). Returns what is to be said of it.
/// Throws, before anything is measured, UserError when there is no folder for settings or the file there is damaged;
/// and as open_database and measure_queries do. Once `stop` is asked for, it ends with RunError and nothing is kept.
std::string keep_calibrated_database(const std::string& url, const std::stop_token& stop = {});

}  // namespace einrel
