#include "sql/sqlite/functions.h"

#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "kernel/cancel.h"
#include "sql/functions/array_bytes.h"

namespace einrel::sql {
namespace {

std::vector<Value> values_of(int count, sqlite3_value** values) {
  std::vector<Value> found;
  found.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) found.push_back(value_of(values[i]));
  return found;
}

void set_array(sqlite3_context* context, const Tensor& array) {
  const std::vector<std::byte> bytes = array_bytes(array);
  sqlite3_result_blob64(context, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
}

ConnectionState& state_of(sqlite3_context* context) {
  return *static_cast<ConnectionState*>(sqlite3_user_data(context));
}

/// A function of SQL from one of ours: what it throws becomes the call's error.
template <Tensor (*function)(Values, FunctionState&)>
void scalar_function(sqlite3_context* context, int count, sqlite3_value** values) {
  ConnectionState& state = state_of(context);
  try {
    set_array(context, function(values_of(count, values), state));
  } catch (...) {
    report(context, state, std::current_exception());
  }
}

void extent_of(sqlite3_context* context, int count, sqlite3_value** values) {
  ConnectionState& state = state_of(context);
  try {
    sqlite3_result_int64(context, extent_function(values_of(count, values)));
  } catch (...) {
    report(context, state, std::current_exception());
  }
}

/// SQLite keeps this much for each group, zeros at first.
template <class Kept>
struct Slot {
  Kept* kept;
  bool has_failed;
};

template <class Kept>
void aggregate_step(sqlite3_context* context, int count, sqlite3_value** values) {
  ConnectionState& state = state_of(context);
  auto* const slot = static_cast<Slot<Kept>*>(sqlite3_aggregate_context(context, sizeof(Slot<Kept>)));
  if (slot == nullptr) return sqlite3_result_error_nomem(context);
  try {
    if (slot->kept == nullptr) slot->kept = std::make_unique<Kept>().release();
    slot->kept->add(values_of(count, values), state);
  } catch (...) {
    slot->has_failed = true;
    report(context, state, std::current_exception());
  }
}

/// SQLite calls it once for each group, also where a step has failed.
template <class Kept>
void aggregate_final(sqlite3_context* context) {
  ConnectionState& state = state_of(context);
  auto* const slot = static_cast<Slot<Kept>*>(sqlite3_aggregate_context(context, 0));
  if (slot == nullptr || slot->kept == nullptr) return;  // no rows: NULL
  const std::unique_ptr<Kept> kept(slot->kept);
  if (slot->has_failed) return;
  try {
    const std::optional<Tensor> array = kept->finish(state);
    if (array) set_array(context, *array);
  } catch (...) {
    report(context, state, std::current_exception());
  }
}

constexpr int any_number = -1;

void must_work(int code) {
  if (code != SQLITE_OK) throw RunError(fmt::format("SQLite takes no functions: {}", sqlite3_errstr(code)));
}

template <Tensor (*function)(Values, FunctionState&)>
void add_scalar(sqlite3* database, ConnectionState& state, const char* name) {
  must_work(sqlite3_create_function_v2(database, name, any_number, SQLITE_UTF8 | SQLITE_DETERMINISTIC, &state,
                                       scalar_function<function>, nullptr, nullptr, nullptr));
}

template <class Kept>
void add_aggregate(sqlite3* database, ConnectionState& state, const char* name) {
  must_work(sqlite3_create_function_v2(database, name, any_number, SQLITE_UTF8 | SQLITE_DETERMINISTIC, &state, nullptr,
                                       aggregate_step<Kept>, aggregate_final<Kept>, nullptr));
}

}  // namespace

void report(sqlite3_context* context, ConnectionState& state, std::exception_ptr error) {
  if (!state.error) state.error = error;
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  } catch (const Stopped&) {
    sqlite3_result_error_code(context, SQLITE_INTERRUPT);
  } catch (const std::exception& what) {
    sqlite3_result_error(context, what.what(), -1);
  }
}

Value value_of(sqlite3_value* value) {
  const auto size = [&] { return static_cast<std::size_t>(sqlite3_value_bytes(value)); };
  switch (sqlite3_value_type(value)) {
    case SQLITE_NULL: return Null{};
    case SQLITE_INTEGER: return sqlite3_value_int64(value);
    case SQLITE_FLOAT: return sqlite3_value_double(value);
    case SQLITE_TEXT: {
      const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(value));
      if (text == nullptr) throw RunError("SQLite has no memory for a text");
      return Text{{text, size()}};
    }
    default: {
      const auto* const bytes = static_cast<const std::byte*>(sqlite3_value_blob(value));
      if (bytes == nullptr && size() != 0) throw RunError("SQLite has no memory for a blob");
      return Bytes{{bytes, size()}};
    }
  }
}

void set_element(sqlite3_context* context, const Tensor& array, std::int64_t offset) {
  with_stored_type(array.dtype(), [&]<class Stored>() {
    const auto value = widen(array.load<Stored>(offset));
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      sqlite3_result_double(context, value);
    } else {
      sqlite3_result_int64(context, value);
    }
  });
}

void register_functions(sqlite3* database, ConnectionState& state) {
  add_scalar<kernel_function>(database, state, "einrel_kernel");
  add_scalar<positions_function>(database, state, "einrel_positions");
  add_scalar<zeros_function>(database, state, "einrel_zeros");
  add_scalar<tile_function>(database, state, "einrel_tile");
  add_scalar<box_function>(database, state, "einrel_box");
  must_work(sqlite3_create_function_v2(database, "einrel_extent", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, &state,
                                       extent_of, nullptr, nullptr, nullptr));
  add_aggregate<Gather>(database, state, "einrel_gather");
  add_aggregate<Whole>(database, state, "einrel_whole");
  add_aggregate<Fold>(database, state, "einrel_fold");
  add_aggregate<Concatenation>(database, state, "einrel_concat");
  add_aggregate<Placement>(database, state, "einrel_place");
  register_elements(database, state);
}

}  // namespace einrel::sql
