#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/train.h"

namespace einrel {

/// The epochs so far, as a table in FILE.csv and a curve in FILE.svg beside it, which are complete after each.
class TrainLog {
 public:
  /// Of a training that goes on, the epochs up to `done` stay in the file. Throws UserError unless the name ends with
  /// .csv and both files can be written, and are none of those that are `read` and none that others have written.
  TrainLog(std::string path, std::vector<std::string> names, bool has_test, std::int64_t done,
           const std::vector<std::string>& read);
  /// Throws as write_text does.
  void add(const EpochReport& epoch);

 private:
  void append(std::vector<double> row, std::int64_t bytes);

  std::string path_;
  std::vector<std::string> columns_;
  std::vector<std::string> lines_;         ///< rows as they are written
  std::vector<std::vector<double>> rows_;  ///< the same as they are drawn
};

/// Curves over the epochs, a picture for each name that is reported, training and test in it.
std::string curve_svg(const std::vector<std::string>& columns, const std::vector<std::vector<double>>& rows);

}  // namespace einrel
