#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "sql/program/run.h"

namespace einrel {

/// What a run in a database took for each part of the program, in seconds of one step: looked up for the lines of a
/// report. Each part stands in one line.
class DatabaseTimes {
 public:
  /// `results` must live on.
  DatabaseTimes(const EinGraph& graph, const sql::DatabaseResults& results);

  /// Computing a vertex, or gathering an input, once for all steps.
  std::optional<double> of_tensor(const Vertex& vertex);
  /// Bringing it to another format. What several vertices need is brought once, for the first of them.
  std::optional<double> of_transformation(const Vertex& tensor, const TensorFormat& to);
  /// What no line has asked for: outputs made tables or read, first values of states, tables dropped, ...
  struct Rest {
    std::string about;
    double seconds = 0;
  };
  std::vector<Rest> rest() const;
  /// All together: of all steps.
  double in_all() const;

 private:
  std::optional<double> take(const sql::Work& work, double times);

  const EinGraph& graph_;
  const sql::DatabaseResults& results_;
  std::set<sql::Work> taken_;
};

}  // namespace einrel
