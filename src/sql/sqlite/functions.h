#pragma once

#include <sqlite3.h>

#include <exception>
#include <memory>

#include "kernel/workers.h"
#include "sql/kernel_table.h"

namespace einrel::sql {

/// What the functions of one connection share; it must outlive the connection.
struct FunctionState {
  KernelTable kernels;
  Workers workers;
  std::exception_ptr error;  ///< of the last call that failed: SQLite itself keeps its words only
};

/// Registers with a connection what scripts call:
///
///     einrel_kernel(kernel, array or number...)         what the kernel makes of arrays; numbers are i64 of rank 0
///     einrel_positions(begin, extent)                   begin, begin + 1, ... as i64
///     einrel_zeros(dtype, extent...)
///     einrel_tile(array, dimension, size, number)       a tile
///     einrel_box(array, begin, extent, ...)             the box there; a pair for each dimension
///     einrel_extent(array, dimension)
///     einrel_gather(dtype, table, rank, extent, parts, ..., key..., value, column...)
///                                                       aggregate: the chunk of a user's elements (gather.h)
///     einrel_whole(dtype, table, rank, extent, parts, ..., is there, k0, k1, ..., column...)
///                                                       aggregate: fails where a chunk is missing; NULL
///     einrel_fold(kernel, array, key...)                aggregate: from the smallest key on
///     einrel_concat(dimension, key, array)              aggregate: arrays behind each other, by key
///     einrel_place(array, begin...)                     aggregate: an array of boxes, each at its place
///     einrel_elements(array)                            table: value, and its coordinates d0, d1, ...
///
/// All fail on what they do not understand, and never crash. Throws RunError when SQLite refuses them.
void register_functions(sqlite3* database, FunctionState& state);

/// The table-valued einrel_elements.
void register_elements(sqlite3* database, FunctionState& state);

/// Keeps what was thrown, and tells SQLite its words.
void report(sqlite3_context* context, FunctionState& state, std::exception_ptr error);

/// The array in a value; it lives as long as the value. Throws UserError where there is none.
Tensor array_of(sqlite3_value* value, const char* function);
/// A number of a tensor's element as SQLite stores it; NaN is NULL there.
void set_element(sqlite3_context* context, const Tensor& array, std::int64_t offset);

/// SQLite's limit of columns of einrel_elements.
constexpr std::size_t most_dimensions = 30;

}  // namespace einrel::sql
