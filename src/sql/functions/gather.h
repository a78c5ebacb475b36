#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "einsum/expr/scalar_value.h"
#include "sql/program/key_sql.h"
#include "tensor/tensor.h"

namespace einrel::sql {

/// What a column of a user's table may hold; a text only as what to show of it.
struct Null {};
struct Other {
  std::string shown;
};
struct Blob {
  std::vector<std::byte> bytes;
};
using Cell = std::variant<Null, std::int64_t, double, Other, Blob>;

/// What it means that a table has no row for an element: a mistake; the same, of which a message says that `sparse:`
/// allows it; zero. Scripts say none of the first, "may be zeros" and "are zeros" of the others.
enum class Absent { refused, may_be_zeros, zeros };
const char* name_of(Absent absent);
/// Throws UserError for any other name.
Absent absent_named(std::string_view name);
/// "; every element needs one", and the remedy, if there is one.
std::string refusal_of(Absent absent);
inline constexpr const char* sparse_remedy =
    "where absent elements are zeros, write sparse:table:NAME or 'sparse:query:SELECT ...'";

/// A tensor that is gathered from a table of its elements.
struct Gathered {
  DType dtype = DType::f32;
  std::string table;  ///< as messages call it: "table 'T'"
  Shape bound;
  std::vector<DimensionCut> cuts;
  Absent absent = Absent::refused;
};

/// One chunk, gathered element by element in any order. What cannot be an element is refused with a UserError that
/// names table, column and key.
class ChunkGatherer {
 public:
  /// Throws UserError unless the cuts fit the bound.
  explicit ChunkGatherer(Gathered gathered);
  /// All calls of one gatherer are of elements of one chunk. `columns` are the names of the key columns, then that of
  /// the value; `cells` what they hold.
  void add(const std::vector<Cell>& cells, const std::vector<std::string>& columns);
  /// Throws for an element that is missing, unless such are zeros.
  Tensor finish() const;

 private:
  void begin(const std::vector<std::int64_t>& at);

  Gathered gathered_;
  std::vector<std::string> columns_;
  std::vector<std::int64_t> begin_;
  Tensor chunk_;
  std::vector<bool> seen_;
};

/// Some elements of a tensor whose others are zeros.
struct FewElements {
  DType dtype = DType::f32;
  std::vector<std::pair<Key, Number>> elements;
};
/// All elements of a tensor, or few.
using Elements = std::variant<Tensor, FewElements>;

/// Gathers the elements that there are, and refuses what ChunkGatherer does.
class FewGatherer {
 public:
  explicit FewGatherer(Gathered gathered) : gathered_(std::move(gathered)), few_{gathered_.dtype, {}} {}
  void add(const std::vector<Cell>& cells, const std::vector<std::string>& columns);
  /// Ordered by their keys.
  FewElements finish();

 private:
  Gathered gathered_;
  std::vector<std::string> columns_;
  FewElements few_;
};

/// Notes which chunks there are.
class ChunkCensus {
 public:
  /// `columns` are the names of the user's key columns.
  ChunkCensus(Gathered gathered, std::vector<std::string> columns);
  void add(const Key& key);
  /// Throws UserError naming the first element of a chunk that is missing.
  void finish() const;

 private:
  Gathered gathered_;
  RelationType type_;
  std::vector<bool> seen_;
  std::vector<std::string> columns_;
};

/// What messages show of a cell, and of the keys of a row as they stand, of which the last cell is none.
std::string shown(const Cell& cell);
std::string raw_key(const std::vector<Cell>& cells, const std::vector<std::string>& columns);

/// "i=3, j=4"
std::string key_text(const std::vector<std::string>& columns, const std::vector<std::int64_t>& at);

}  // namespace einrel::sql
