#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "base/unnamed_file.h"

namespace einrel {

/// A part of a file.
struct FilePart {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};

/// Gives out parts of something that has no end, and takes them back: the smallest gap that is large enough, else what
/// follows the last part. Neighbouring gaps become one. O(log gaps).
class FreeParts {
 public:
  /// Where there are that many bytes, more than 0.
  std::int64_t take(std::int64_t bytes);
  /// What `take` gave.
  void give_back(const FilePart& part);

  /// No part that is taken ends behind this.
  std::int64_t end() const { return end_; }
  std::size_t gaps() const { return by_begin_.size(); }

 private:
  using Gaps = std::map<std::int64_t, std::int64_t>;
  void remove(Gaps::iterator gap);

  Gaps by_begin_;                                            // their bytes; none touches another or the end
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // bytes, begin
  std::int64_t end_ = 0;
};

/// Chunks in one unnamed file, however many they are: a process may open few files. What a chunk had that is gone, a
/// later one gets; all of it goes back to the disk with the file. Several threads may call it. Throws as UnnamedFile.
class SpillFile {
 public:
  explicit SpillFile(std::string folder) : file_(std::move(folder)) {}

  /// A part for a chunk, with room for all of it on the disk.
  FilePart take(std::int64_t bytes);
  void give_back(const FilePart& part);
  const UnnamedFile& file() const { return file_; }

 private:
  UnnamedFile file_;
  std::mutex mutex_;
  FreeParts parts_;
  std::int64_t room_ = 0;  // from the beginning on, bytes that the disk has given
};

}  // namespace einrel
