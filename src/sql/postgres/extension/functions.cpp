#include <cstdlib>

#include "sql/postgres/extension/exchange.h"

extern "C" {
PG_MODULE_MAGIC;
void _PG_init();  // NOLINT(readability-identifier-naming): PostgreSQL calls it

PG_FUNCTION_INFO_V1(einrel_kernel);
PG_FUNCTION_INFO_V1(einrel_positions);
PG_FUNCTION_INFO_V1(einrel_zeros);
PG_FUNCTION_INFO_V1(einrel_tile);
PG_FUNCTION_INFO_V1(einrel_box);
PG_FUNCTION_INFO_V1(einrel_extent);
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

}  // namespace
}  // namespace einrel::sql

extern "C" {

/// PostgreSQL calls it as it loads the library. A backend has one thread: a library of linear algebra starts no others.
void _PG_init() { setenv("OPENBLAS_NUM_THREADS", "1", 1); }

Datum einrel_kernel(PG_FUNCTION_ARGS) { return einrel::sql::scalar_function<einrel::sql::kernel_function>(fcinfo); }
Datum einrel_positions(PG_FUNCTION_ARGS) {
  return einrel::sql::scalar_function<einrel::sql::positions_function>(fcinfo);
}
Datum einrel_zeros(PG_FUNCTION_ARGS) { return einrel::sql::scalar_function<einrel::sql::zeros_function>(fcinfo); }
Datum einrel_tile(PG_FUNCTION_ARGS) { return einrel::sql::scalar_function<einrel::sql::tile_function>(fcinfo); }
Datum einrel_box(PG_FUNCTION_ARGS) { return einrel::sql::scalar_function<einrel::sql::box_function>(fcinfo); }

Datum einrel_extent(PG_FUNCTION_ARGS) {
  const einrel::sql::Arguments arguments = einrel::sql::arguments_of(fcinfo);
  std::int64_t extent = 0;
  einrel::sql::guarded([&] { extent = einrel::sql::extent_function(arguments.span()); });
  PG_RETURN_INT64(extent);
}
}
