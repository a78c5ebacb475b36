#include "kernel/products/store.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "einsum/expr/functions.h"
#include "kernel/products/pack_ops.h"
#include "tensor/convert.h"

namespace einrel::contraction {
namespace {

template <class T>
T reduced(Reduce reduce, T before, T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (reduce == Reduce::sum) return before + value;
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    if (reduce == Reduce::sum) return static_cast<T>(static_cast<Unsigned>(before) + static_cast<Unsigned>(value));
  }
  if (before != before) return before;
  const bool keep = reduce == Reduce::max ? before >= value : before <= value;
  return keep ? before : value;
}

/// How an element that is stored as Stored is computed with.
template <class T, class Stored>
T loaded(Stored value) {
  if constexpr (std::is_same_v<T, Stored>) {
    return value;
  } else {
    return static_cast<T>(widen(value));
  }
}

template <class T, class Stored>
Stored narrowed(T value) {
  if constexpr (std::is_same_v<T, Stored>) {
    return value;
  } else if constexpr (std::is_same_v<Stored, BFloat16>) {
    return to_bfloat16(value);
  } else {
    return to_float16(value);
  }
}

template <class T, class Stored>
void store_one(const BlockStore<T>& store, std::int64_t r, std::int64_t c) {
  std::byte* const to = store.result + (store.rows[r] + store.columns[c]) * static_cast<std::int64_t>(sizeof(Stored));
  T value = store.values[r * store.stride + c];
  if constexpr (std::is_floating_point_v<T>) value *= store.scale;
  Stored stored;
  if (store.accumulate) {
    std::memcpy(&stored, to, sizeof(Stored));
    value = reduced(store.reduce, loaded<T>(stored), value);
  }
  stored = narrowed<T, Stored>(value);
  std::memcpy(to, &stored, sizeof(Stored));
}

/// How many columns from `begin` on lie side by side in the result.
template <class T>
std::int64_t run_from(const BlockStore<T>& store, std::int64_t begin) {
  std::int64_t end = begin + 1;
  while (end < store.column_count && store.columns[end] == store.columns[end - 1] + 1) ++end;
  return end - begin;
}

/// One stretch of a row.
template <class T>
void store_line(const BlockStore<T>& store, const T* values, std::int64_t count, T* to) {
  const T scale = store.scale;
  if (!store.accumulate) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = values[i] * scale;
  } else if (store.reduce == Reduce::sum) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = reduced(Reduce::sum, to[i], static_cast<T>(values[i] * scale));
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i] = reduced(store.reduce, to[i], values[i]);
  }
}

/// Row by row, whole stretches at a time. Integers have no scale; narrow floats are not accumulated in this way.
template <class T, class Stored>
void store_stretches(const BlockStore<T>& store) {
  for (std::int64_t c = 0; c < store.column_count;) {
    const std::int64_t length = run_from(store, c);
    if constexpr (std::is_same_v<T, Stored> && std::is_floating_point_v<T>) {
      if (store.reduce == Reduce::sum) {
        store_lines(LineStore<T>{store.values + c, store.stride, store.row_count, length,
                                 reinterpret_cast<T*>(store.result) + store.columns[c], store.rows, store.scale,
                                 store.accumulate});
        c += length;
        continue;
      }
    }
    for (std::int64_t r = 0; r < store.row_count; ++r) {
      const T* const values = store.values + r * store.stride + c;
      Stored* const to = reinterpret_cast<Stored*>(store.result) + store.rows[r] + store.columns[c];
      if constexpr (std::is_same_v<T, Stored>) {
        store_line(store, values, length, to);
      } else {
        narrow_line(values, length, to);
      }
    }
    c += length;
  }
}

template <class T, class Stored>
void store_as(const BlockStore<T>& store) {
  const bool aligned = reinterpret_cast<std::uintptr_t>(store.result) % sizeof(Stored) == 0;
  const bool plain = std::is_same_v<T, Stored> || (!store.accumulate && store.scale == 1);
  constexpr std::int64_t least_stretch = 8;
  if (aligned && plain && run_from(store, 0) >= std::min(store.column_count, least_stretch))
    return store_stretches<T, Stored>(store);
  const auto distance = [](const std::int64_t* offsets, std::int64_t count) {
    return count < 2 ? 0 : std::abs(offsets[1] - offsets[0]);
  };
  if (store.column_count > 1 && distance(store.rows, store.row_count) < distance(store.columns, store.column_count)) {
    for (std::int64_t c = 0; c < store.column_count; ++c) {
      for (std::int64_t r = 0; r < store.row_count; ++r) store_one<T, Stored>(store, r, c);
    }
  } else {
    for (std::int64_t r = 0; r < store.row_count; ++r) {
      for (std::int64_t c = 0; c < store.column_count; ++c) store_one<T, Stored>(store, r, c);
    }
  }
}

}  // namespace

template <class T>
void store_block(const BlockStore<T>& store) {
  with_stored_type(store.stored, [&]<class Stored>() {
    constexpr bool is_narrow = std::is_same_v<Stored, BFloat16> || std::is_same_v<Stored, Float16>;
    if constexpr (std::is_same_v<T, Stored> || (std::is_same_v<T, float> && is_narrow)) {
      store_as<T, Stored>(store);
    } else {
      throw Bug("a contraction stores its result in a type that it refuses");
    }
  });
}

template void store_block(const BlockStore<float>&);
template void store_block(const BlockStore<double>&);
template void store_block(const BlockStore<std::int32_t>&);
template void store_block(const BlockStore<std::int64_t>&);

}  // namespace einrel::contraction
