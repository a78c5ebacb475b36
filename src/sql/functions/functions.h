#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "kernel/workers.h"
#include "sql/functions/gather.h"
#include "sql/functions/kernel_table.h"

/// What scripts call, whatever the database: a database turns its values into these, and arrays into array_bytes.
///
///     einrel_kernel(kernel, array or number...)         what the kernel makes of arrays; numbers are i64 of rank 0
///     einrel_positions(begin, extent)                   begin, begin + 1, ... as i64
///     einrel_zeros(dtype, extent...)
///     einrel_tile(array, dimension, size, number)       a tile
///     einrel_box(array, begin, extent, ...)             the box there; a pair for each dimension
///     einrel_extent(array, dimension)
///     einrel_gather(dtype, table, rank, extent, parts, ..., key..., value, column...[, absent])
///                                                       aggregate: the chunk of a user's elements (gather.h)
///     einrel_whole(dtype, table, rank, extent, parts, ..., is there, k0, k1, ..., column...[, absent])
///                                                       aggregate: fails where a chunk is missing; NULL
///     einrel_fold(kernel, array, key...)                aggregate: from the smallest key on
///     einrel_concat(dimension, key, array)              aggregate: arrays behind each other, by key
///     einrel_place(array, begin...)                     aggregate: an array of boxes, each at its place
///     einrel_elements(array)                            table: value, and its coordinates d0, d1, ...
///
/// All throw UserError on what they do not understand.
namespace einrel::sql {

struct Text {
  std::string_view text;
};
struct Bytes {
  std::span<const std::byte> bytes;
};
/// A value that no function takes, as messages show it: "the date '2024-01-01'".
struct Strange {
  std::string_view shown;
};
/// What a database hands over; it lives as long as the call.
using Value = std::variant<Null, std::int64_t, double, Text, Bytes, Strange>;
static_assert(std::is_trivially_destructible_v<Value>, "a database may leave the function that makes them by longjmp");
using Values = std::span<const Value>;

/// What calls share.
struct FunctionState {
  KernelTable kernels;
  Workers workers;
};

/// The most dimensions of a table of elements: SQLite's limit of columns.
constexpr std::size_t most_dimensions = 30;

/// A value as an element of a tensor, or as what messages show of it.
Cell cell_of(const Value& value);

/// The array in a value; it lives as long as the value.
Tensor array_of(const Value& value, const char* function);

Tensor kernel_function(Values values, FunctionState& state);
Tensor positions_function(Values values, FunctionState& state);
Tensor zeros_function(Values values, FunctionState& state);
Tensor tile_function(Values values, FunctionState& state);
Tensor box_function(Values values, FunctionState& state);
std::int64_t extent_function(Values values);

// What aggregates keep: `add` for each row, `finish` for the array, after at least one row.

class Gather {
 public:
  void add(Values values, FunctionState& state);
  std::optional<Tensor> finish(FunctionState&) const { return gatherer_->finish(); }

 private:
  std::optional<ChunkGatherer> gatherer_;
  std::size_t used_ = 0;
  std::size_t rank_ = 0;
};

class Whole {
 public:
  void add(Values values, FunctionState& state);
  std::optional<Tensor> finish(FunctionState& state) const;

 private:
  std::optional<ChunkCensus> census_;
};

/// Arrays of an aggregate with what they are sorted by, as bytes that another process of the database reads.
using KeyedArrays = std::vector<std::pair<Key, Tensor>>;
std::vector<std::byte> stored(const std::string& text, const KeyedArrays& arrays);
/// The text, and arrays in memory of their own. Throws UserError for other bytes.
std::pair<std::string, KeyedArrays> read_stored(std::span<const std::byte> bytes);

// The following can be computed in parts: `state_bytes` is what one has seen, `merge` adds that to another.

class Fold {
 public:
  void add(Values values, FunctionState& state);
  std::optional<Tensor> finish(FunctionState& state) const;
  std::vector<std::byte> state_bytes() const;
  void merge(std::span<const std::byte> bytes, FunctionState& state);

 private:
  /// `array` may be a view of memory that is soon gone.
  void take(Key key, const Tensor& array, FunctionState& state);

  std::string text_;
  std::map<Key, Tensor> arrays_;
};

class Concatenation {
 public:
  void add(Values values, FunctionState& state);
  std::optional<Tensor> finish(FunctionState& state) const;
  std::vector<std::byte> state_bytes() const;
  void merge(std::span<const std::byte> bytes, FunctionState& state);

 private:
  void take(std::int64_t key, Tensor array);

  std::map<std::int64_t, Tensor> arrays_;
  std::size_t dim_ = 0;
};

class Placement {
 public:
  void add(Values values, FunctionState& state);
  std::optional<Tensor> finish(FunctionState& state) const;
  std::vector<std::byte> state_bytes() const;
  void merge(std::span<const std::byte> bytes, FunctionState& state);

 private:
  void take(Tensor array, Key begin);

  KeyedArrays boxes_;  // by where they begin
};

}  // namespace einrel::sql
