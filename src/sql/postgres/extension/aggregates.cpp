#include <optional>

#include "base/error.h"
#include "sql/postgres/extension/exchange.h"

namespace einrel::sql {
namespace {

/// Keeps what a group has seen in the memory context of the aggregate.
template <class Kept>
Kept* kept_of(FunctionCallInfo call) {
  MemoryContext context = nullptr;
  if (AggCheckCallContext(call, &context) == 0) elog(ERROR, "this function is a part of an aggregate of Einrel");
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a Datum holds it
  return call->args[0].isnull ? kept_in<Kept>(context) : reinterpret_cast<Kept*>(call->args[0].value);
}

template <class Kept>
Datum add(FunctionCallInfo call) {
  FunctionState& state = state_of(call);
  Kept* const kept = kept_of<Kept>(call);
  const Arguments arguments = arguments_of(call, 1);
  guarded([&] { kept->add(arguments.span(), state); });
  return PointerGetDatum(kept);
}

template <class Kept>
Datum finish(FunctionCallInfo call) {
  if (call->args[0].isnull) {  // no rows
    call->isnull = true;
    return 0;
  }
  FunctionState& state = state_of(call);
  const Kept* const kept = kept_of<Kept>(call);
  bytea* result = nullptr;
  guarded([&] {
    const std::optional<Tensor> array = kept->finish(state);
    if (array) result = bytea_of(*array);
  });
  call->isnull = result == nullptr;
  return PointerGetDatum(result);
}

/// The state of a group, for another process.
template <class Kept>
Datum send(FunctionCallInfo call) {
  const Kept* const kept = kept_of<Kept>(call);
  bytea* result = nullptr;
  guarded([&] { result = bytea_of(kept->state_bytes()); });
  return PointerGetDatum(result);
}

/// Adds what another process has sent (einrel_receive).
template <class Kept>
Datum combine(FunctionCallInfo call) {
  FunctionState& state = state_of(call);
  Kept* const kept = kept_of<Kept>(call);
  if (!call->args[1].isnull) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a Datum holds it
    const auto* const bytes = reinterpret_cast<const bytea*>(call->args[1].value);
    guarded([&] {
      kept->merge(
          {reinterpret_cast<const std::byte*>(VARDATA_ANY(bytes)), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(bytes))},
          state);
    });
  }
  return PointerGetDatum(kept);
}

}  // namespace
}  // namespace einrel::sql

extern "C" {
PG_FUNCTION_INFO_V1(einrel_gather_add);
PG_FUNCTION_INFO_V1(einrel_gather_finish);
PG_FUNCTION_INFO_V1(einrel_whole_add);
PG_FUNCTION_INFO_V1(einrel_whole_finish);
PG_FUNCTION_INFO_V1(einrel_fold_add);
PG_FUNCTION_INFO_V1(einrel_fold_finish);
PG_FUNCTION_INFO_V1(einrel_fold_send);
PG_FUNCTION_INFO_V1(einrel_fold_combine);
PG_FUNCTION_INFO_V1(einrel_concat_add);
PG_FUNCTION_INFO_V1(einrel_concat_finish);
PG_FUNCTION_INFO_V1(einrel_concat_send);
PG_FUNCTION_INFO_V1(einrel_concat_combine);
PG_FUNCTION_INFO_V1(einrel_place_add);
PG_FUNCTION_INFO_V1(einrel_place_finish);
PG_FUNCTION_INFO_V1(einrel_place_send);
PG_FUNCTION_INFO_V1(einrel_place_combine);
PG_FUNCTION_INFO_V1(einrel_receive);

Datum einrel_gather_add(PG_FUNCTION_ARGS) { return einrel::sql::add<einrel::sql::Gather>(fcinfo); }
Datum einrel_gather_finish(PG_FUNCTION_ARGS) { return einrel::sql::finish<einrel::sql::Gather>(fcinfo); }
Datum einrel_whole_add(PG_FUNCTION_ARGS) { return einrel::sql::add<einrel::sql::Whole>(fcinfo); }
Datum einrel_whole_finish(PG_FUNCTION_ARGS) { return einrel::sql::finish<einrel::sql::Whole>(fcinfo); }
Datum einrel_fold_add(PG_FUNCTION_ARGS) { return einrel::sql::add<einrel::sql::Fold>(fcinfo); }
Datum einrel_fold_finish(PG_FUNCTION_ARGS) { return einrel::sql::finish<einrel::sql::Fold>(fcinfo); }
Datum einrel_fold_send(PG_FUNCTION_ARGS) { return einrel::sql::send<einrel::sql::Fold>(fcinfo); }
Datum einrel_fold_combine(PG_FUNCTION_ARGS) { return einrel::sql::combine<einrel::sql::Fold>(fcinfo); }
Datum einrel_concat_add(PG_FUNCTION_ARGS) { return einrel::sql::add<einrel::sql::Concatenation>(fcinfo); }
Datum einrel_concat_finish(PG_FUNCTION_ARGS) { return einrel::sql::finish<einrel::sql::Concatenation>(fcinfo); }
Datum einrel_concat_send(PG_FUNCTION_ARGS) { return einrel::sql::send<einrel::sql::Concatenation>(fcinfo); }
Datum einrel_concat_combine(PG_FUNCTION_ARGS) { return einrel::sql::combine<einrel::sql::Concatenation>(fcinfo); }
Datum einrel_place_add(PG_FUNCTION_ARGS) { return einrel::sql::add<einrel::sql::Placement>(fcinfo); }
Datum einrel_place_finish(PG_FUNCTION_ARGS) { return einrel::sql::finish<einrel::sql::Placement>(fcinfo); }
Datum einrel_place_send(PG_FUNCTION_ARGS) { return einrel::sql::send<einrel::sql::Placement>(fcinfo); }
Datum einrel_place_combine(PG_FUNCTION_ARGS) { return einrel::sql::combine<einrel::sql::Placement>(fcinfo); }

/// The bytes of a state stay bytes, for `combine`.
Datum einrel_receive(PG_FUNCTION_ARGS) { PG_RETURN_POINTER(PG_GETARG_BYTEA_P(0)); }
}
