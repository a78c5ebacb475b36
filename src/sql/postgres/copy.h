#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tra/relation.h"

/// The binary format of PostgreSQL's COPY, of rows that are whole numbers (bigint) and an array (bytea).
namespace einrel::sql {

/// What comes before all rows, and behind them.
std::string copy_header();
std::string copy_trailer();
/// One row; of a table of elements, with `value` (bigint or double precision) in place of the array.
std::string copy_row(const Key& key, const Tensor& array);
std::string copy_row(const Key& key, std::int64_t value);
std::string copy_row(const Key& key, double value);

/// Reads rows out of the messages that a server sends, each of which has whole ones.
class CopyReader {
 public:
  explicit CopyReader(std::size_t key_arity) : key_arity_(key_arity) {}
  /// Adds the rows of one message, in memory of their own. Throws RunError for what is no such row.
  void read(std::span<const std::byte> message, Relation& rows);

 private:
  std::size_t key_arity_;
  bool has_begun_ = false;
};

}  // namespace einrel::sql
