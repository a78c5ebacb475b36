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

/// The bytes of a state stay bytes, for `combine`.
Datum receive(FunctionCallInfo fcinfo) { PG_RETURN_POINTER(PG_GETARG_BYTEA_P(0)); }

}  // namespace

extern "C" {
EINREL_SQL_FUNCTION(einrel_gather_add, add<Gather>)
EINREL_SQL_FUNCTION(einrel_gather_finish, finish<Gather>)
EINREL_SQL_FUNCTION(einrel_whole_add, add<Whole>)
EINREL_SQL_FUNCTION(einrel_whole_finish, finish<Whole>)
EINREL_SQL_FUNCTION(einrel_fold_add, add<Fold>)
EINREL_SQL_FUNCTION(einrel_fold_finish, finish<Fold>)
EINREL_SQL_FUNCTION(einrel_fold_send, send<Fold>)
EINREL_SQL_FUNCTION(einrel_fold_combine, combine<Fold>)
EINREL_SQL_FUNCTION(einrel_concat_add, add<Concatenation>)
EINREL_SQL_FUNCTION(einrel_concat_finish, finish<Concatenation>)
EINREL_SQL_FUNCTION(einrel_concat_send, send<Concatenation>)
EINREL_SQL_FUNCTION(einrel_concat_combine, combine<Concatenation>)
EINREL_SQL_FUNCTION(einrel_place_add, add<Placement>)
EINREL_SQL_FUNCTION(einrel_place_finish, finish<Placement>)
EINREL_SQL_FUNCTION(einrel_place_send, send<Placement>)
EINREL_SQL_FUNCTION(einrel_place_combine, combine<Placement>)
EINREL_SQL_FUNCTION(einrel_receive, receive)
}

}  // namespace einrel::sql
