#include <cstdlib>

#include "sql/postgres/extension/exchange.h"

extern "C" {
PG_MODULE_MAGIC;
void _PG_init();  // NOLINT(readability-identifier-naming): PostgreSQL calls it
}

namespace einrel::sql {
namespace {

/// A function of SQL from one of ours.
template <Tensor (*function)(Values, FunctionState&)>
Datum scalar_function(FunctionCallInfo call) {
  FunctionState& state = state_of(call);
  const Arguments arguments = arguments_of(call);
  bytea* result = nullptr;
  guarded([&] { result = bytea_of(function(arguments.span(), state)); });
  PG_RETURN_BYTEA_P(result);
}

Datum extent(FunctionCallInfo call) {
  const Arguments arguments = arguments_of(call);
  std::int64_t extent = 0;
  guarded([&] { extent = extent_function(arguments.span()); });
  PG_RETURN_INT64(extent);
}

}  // namespace

extern "C" {

/// PostgreSQL calls it as it loads the library. A backend has one thread: a library of linear algebra starts no others.
void _PG_init() { setenv("OPENBLAS_NUM_THREADS", "1", 1); }

EINREL_SQL_FUNCTION(einrel_kernel, scalar_function<kernel_function>)
EINREL_SQL_FUNCTION(einrel_positions, scalar_function<positions_function>)
EINREL_SQL_FUNCTION(einrel_zeros, scalar_function<zeros_function>)
EINREL_SQL_FUNCTION(einrel_tile, scalar_function<tile_function>)
EINREL_SQL_FUNCTION(einrel_box, scalar_function<box_function>)
EINREL_SQL_FUNCTION(einrel_extent, extent)
}

}  // namespace einrel::sql
