#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "sql/functions/functions.h"

// Behind everything of C++: PostgreSQL's headers define short names as macros.
extern "C" {
#include <postgres.h>  // before all others of it
}
extern "C" {
#include <fmgr.h>
#include <utils/memutils.h>
}

/// A function of C that SQL calls by this name, as `...` does. Within extern "C".
#define EINREL_SQL_FUNCTION(name, ...) \
  PG_FUNCTION_INFO_V1(name);           \
  Datum name(PG_FUNCTION_ARGS) { return __VA_ARGS__(fcinfo); }

/// Between PostgreSQL and C++. PostgreSQL leaves functions by longjmp, which no destructor sees; C++ by exceptions,
/// which PostgreSQL does not know. So every function has two kinds of parts: those that call PostgreSQL have no objects
/// with destructors; those in C++ (`guarded`) call nothing of PostgreSQL but `room_for`.
namespace einrel::sql {

/// What went wrong, without a destructor.
struct Failure {
  int state = 0;  ///< as ereport takes it; 0: nothing
  const char* words = nullptr;
};

/// Of the exception that is being handled.
Failure current_failure() noexcept;
/// Leaves the function as PostgreSQL does.
[[noreturn]] void raise(const Failure& failure);

/// Memory of PostgreSQL's current context. Throws std::bad_alloc, and UserError for more than it gives.
void* room_for(std::size_t bytes);

/// Calls `work`, which may throw. Whoever calls this has no object with a destructor.
template <class Work>
void guarded(const Work& work) {
  static_assert(std::is_trivially_destructible_v<Work>);
  Failure failure;
  try {
    work();
  } catch (...) {
    failure = current_failure();
  }
  if (failure.state != 0) raise(failure);
}

/// The arguments of a call from number `first` on, in memory of PostgreSQL. Calls PostgreSQL.
struct Arguments {
  const Value* values;
  std::size_t count;
  Values span() const { return {values, count}; }
};
Arguments arguments_of(FunctionCallInfo call, int first = 0);

/// An array, and bytes, as a bytea. For parts in C++.
bytea* bytea_of(const Tensor& array);
bytea* bytea_of(const std::vector<std::byte>& from);

/// An object that lives as long as a memory context does. Calls PostgreSQL.
template <class Kept>
Kept* kept_in(MemoryContext context) {
  auto* const callback =
      static_cast<MemoryContextCallback*>(MemoryContextAlloc(context, sizeof(MemoryContextCallback)));
  Kept* kept = nullptr;
  guarded([&] { kept = std::make_unique<Kept>().release(); });
  callback->func = [](void* old) { const std::unique_ptr<Kept> owner(static_cast<Kept*>(old)); };
  callback->arg = kept;
  MemoryContextRegisterResetCallback(context, callback);
  return kept;
}

/// What the calls from one place of a query share. Calls PostgreSQL.
FunctionState& state_of(FunctionCallInfo call);

}  // namespace einrel::sql
