#include "sql/postgres/extension/exchange.h"

#include <cstring>

#include "base/error.h"
#include "sql/functions/array_bytes.h"
#include "sql/postgres/states.h"

extern "C" {
#include <catalog/pg_type.h>
#include <mb/pg_wchar.h>
#include <miscadmin.h>
#include <utils/builtins.h>
#include <utils/lsyscache.h>
#include <utils/numeric.h>
}

extern "C" {
/// Of libpq/libpq.h, which wants headers of what the server was built with.
bool pq_check_connection();  // NOLINT(readability-identifier-naming): PostgreSQL's
}

namespace einrel::sql {
namespace {

int state_number(const char* state) { return MAKE_SQLSTATE(state[0], state[1], state[2], state[3], state[4]); }

Failure failure_of(int state, const char* words) noexcept {
  const std::size_t size = std::strlen(words) + 1;
  auto* const copy = static_cast<char*>(palloc_extended(size, MCXT_ALLOC_NO_OOM));
  if (copy == nullptr) return {ERRCODE_OUT_OF_MEMORY, "no memory"};
  std::memcpy(copy, words, size);
  return {state, copy};
}

/// In UTF-8, as Einrel has all text.
Value text_value(const char* text, int size) {
  char* const utf8 = pg_server_to_any(text, size, PG_UTF8);
  return Text{{utf8, utf8 == text ? static_cast<std::size_t>(size) : std::strlen(utf8)}};
}

Value numeric_value(Datum datum) {
  constexpr double safe = 9e18;  // for a bigint
  const double real = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, datum));
  const bool is_small = real > -safe && real < safe;
  if (is_small && DatumGetBool(DirectFunctionCall2(numeric_eq, datum, DirectFunctionCall1(numeric_floor, datum))))
    return DatumGetInt64(DirectFunctionCall1(numeric_int8, datum));
  return real;
}

Value strange_value(Datum datum, Oid type) {
  Oid output = InvalidOid;
  bool is_varlena = false;
  getTypeOutputInfo(type, &output, &is_varlena);
  const char* const shown = psprintf("the %s '%s'", format_type_be(type), OidOutputFunctionCall(output, datum));
  const Value utf8 = text_value(shown, static_cast<int>(std::strlen(shown)));
  return Strange{std::get<Text>(utf8).text};
}

// NOLINTNEXTLINE(misc-no-recursion,readability-function-cognitive-complexity): a domain is its type; and of macros
Value value_of(Datum datum, Oid type) {
  switch (type) {
    case INT2OID: return static_cast<std::int64_t>(DatumGetInt16(datum));
    case INT4OID: return static_cast<std::int64_t>(DatumGetInt32(datum));
    case INT8OID: return static_cast<std::int64_t>(DatumGetInt64(datum));
    case FLOAT4OID: return static_cast<double>(DatumGetFloat4(datum));
    case FLOAT8OID: return DatumGetFloat8(datum);
    case BOOLOID: return static_cast<std::int64_t>(DatumGetBool(datum) ? 1 : 0);
    case NUMERICOID: return numeric_value(datum);
    case BYTEAOID: {
      const bytea* const bytes = DatumGetByteaPP(datum);
      return Bytes{
          {reinterpret_cast<const std::byte*>(VARDATA_ANY(bytes)), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(bytes))}};
    }
    case TEXTOID:
    case VARCHAROID:
    case BPCHAROID: {
      const text* const chars = DatumGetTextPP(datum);
      return text_value(VARDATA_ANY(chars), static_cast<int>(VARSIZE_ANY_EXHDR(chars)));
    }
    case UNKNOWNOID: {  // a literal, as it stands in the query
      const char* const chars = DatumGetCString(datum);
      return text_value(chars, static_cast<int>(std::strlen(chars)));
    }
    default: break;
  }
  const Oid base = getBaseType(type);
  return base == type ? strange_value(datum, type) : value_of(datum, base);
}

/// Whether the backend is to stop what it does: a statement that is cancelled, or has taken too long, a backend that is
/// to end, a client that is gone. Looks, and changes nothing: what is to follow, `raise` lets follow where PostgreSQL
/// may leave the function.
bool is_to_stop() {
  if (InterruptPending == 0 || !INTERRUPTS_CAN_BE_PROCESSED()) return false;
#if PG_VERSION_NUM >= 170000
  if (TransactionTimeoutPending != 0) return true;
#endif
  if (QueryCancelPending != 0 || ProcDiePending != 0) return true;
  return CheckClientConnectionPending != 0 && !pq_check_connection();
}

}  // namespace

Failure current_failure() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {ERRCODE_OUT_OF_MEMORY, "no memory for an array"};
  } catch (const UserError& error) {
    return failure_of(state_number(user_error_state), error.what());
  } catch (const RunError& error) {
    return failure_of(state_number(run_error_state), error.what());
  } catch (const std::exception& error) {
    return failure_of(state_number(bug_state), error.what());
  } catch (...) {
    return {state_number(bug_state), "something that is no exception"};
  }
}

void raise(const Failure& failure) {
  CHECK_FOR_INTERRUPTS();  // what is_to_stop has seen, in the server's own words: 57014, 57P01
  const char* const words = pg_any_to_server(failure.words, static_cast<int>(std::strlen(failure.words)), PG_UTF8);
  ereport(ERROR, (errcode(failure.state), errmsg_internal("%s", words)));
  pg_unreachable();
}

void* room_for(std::size_t bytes) {
  if (bytes > MaxAllocSize) throw UserError("a value would have more than the 1 GB that PostgreSQL takes");
  void* const memory = palloc_extended(bytes, MCXT_ALLOC_NO_OOM);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

Arguments arguments_of(FunctionCallInfo call, int first) {
  const int all = call->nargs;
  const int count = all > first ? all - first : 0;
  auto* const values = static_cast<Value*>(palloc(sizeof(Value) * static_cast<std::size_t>(count > 0 ? count : 1)));
  for (int i = 0; i < count; ++i) {
    const NullableDatum& argument = call->args[first + i];
    const Value value =
        argument.isnull ? Value(Null{}) : value_of(argument.value, get_fn_expr_argtype(call->flinfo, first + i));
    new (values + i) Value(value);
  }
  return {values, static_cast<std::size_t>(count)};
}

bytea* bytea_of(const Tensor& array) {
  const std::size_t size = array_size(array);
  auto* const bytes = static_cast<bytea*>(room_for(VARHDRSZ + size));
  SET_VARSIZE(bytes, VARHDRSZ + size);
  write_array(array, reinterpret_cast<std::byte*>(VARDATA(bytes)));
  return bytes;
}

bytea* bytea_of(const std::vector<std::byte>& from) {
  auto* const bytes = static_cast<bytea*>(room_for(VARHDRSZ + from.size()));
  SET_VARSIZE(bytes, VARHDRSZ + from.size());
  std::memcpy(VARDATA(bytes), from.data(), from.size());
  return bytes;
}

FunctionState& state_of(FunctionCallInfo call) {
  if (call->flinfo->fn_extra == nullptr) {
    auto* const made = kept_in<FunctionState>(call->flinfo->fn_mcxt);
    guarded([&] {
      invariant(made->workers.threads() == 1, "what a backend says of itself is for its only thread");
      made->workers.cancel_when(is_to_stop);
    });
    call->flinfo->fn_extra = made;
  }
  return *static_cast<FunctionState*>(call->flinfo->fn_extra);
}

}  // namespace einrel::sql
