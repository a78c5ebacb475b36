// The loops of block_ops.h between values and elements. Included by exact_loops.cpp once for each instruction set.

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernel/elementwise/block_ops.h"
#include "kernel/products/pack_ops.h"
#include "tensor/convert.h"

HWY_BEFORE_NAMESPACE();
namespace einrel::HWY_NAMESPACE {
namespace {

template <class Stored>
Stored element(const std::byte* at) {
  Stored value;
  std::memcpy(&value, at, sizeof(Stored));
  return value;
}

/// bf16 and f16 are computed in f32, not in double; bools as they are stored, once they are 1 or 0.
template <class Stored>
auto loaded(Stored value) {
  if constexpr (std::is_same_v<Stored, BFloat16> || std::is_same_v<Stored, Float16>) {
    return to_float(value);
  } else if constexpr (std::is_same_v<Stored, float>) {
    return value;
  } else if constexpr (std::is_same_v<Stored, Bool8>) {
    return static_cast<Truth>(widen(value));
  } else {
    return widen(value);
  }
}

/// Calls `use(begin, count)` for as many values at a time as buffers on the way have room for.
template <class Use>
[[gnu::always_inline]] inline void by_blocks(std::size_t n, Use use) {
  for (std::size_t begin = 0; begin < n; begin += lanes_per_block) use(begin, std::min(lanes_per_block, n - begin));
}

/// Elements side by side as values.
template <class Stored, class T>
[[gnu::always_inline]] inline void widen_values(const std::byte* __restrict from, T* __restrict z, std::size_t n) {
  if constexpr (std::is_same_v<Stored, Float16>) {
    contraction::convert_line(reinterpret_cast<const Float16*>(from), static_cast<std::int64_t>(n), z);
  } else {
    for (std::size_t i = 0; i < n; ++i) z[i] = loaded(element<Stored>(from + i * sizeof(Stored)));
  }
}

/// Values as elements side by side.
template <class Stored, class T>
[[gnu::always_inline]] inline void narrow_values(const T* __restrict x, std::byte* __restrict to, std::size_t n) {
  if constexpr (std::is_same_v<Stored, Float16> && std::is_same_v<T, float>) {
    contraction::narrow_line(x, static_cast<std::int64_t>(n), reinterpret_cast<Float16*>(to));
  } else if constexpr (std::is_same_v<Stored, Float16>) {
    float floats[lanes_per_block] = {};
    by_blocks(n, [&](std::size_t begin, std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) floats[i] = float_to_round(x[begin + i]);
      narrow_values<Float16>(floats, to + begin * sizeof(Stored), count);
    });
  } else if constexpr (std::is_same_v<T, Truth>) {
    std::memcpy(to, x, n);
  } else if constexpr (std::is_same_v<Stored, Bool8>) {
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<std::byte>(x[i] != 0);
  } else {
    for (std::size_t i = 0; i < n; ++i) {
      Stored value;
      if constexpr (std::is_same_v<Stored, BFloat16> && std::is_same_v<T, float>) {
        value = to_bfloat16(x[i]);
      } else {
        value = narrow<Stored>(x[i]);
      }
      std::memcpy(to + i * sizeof(Stored), &value, sizeof(Stored));
    }
  }
}

/// Copies n elements, `from_stride` and `to_stride` bytes apart. All four loads come before the stores, and the
/// compiler is kept from making vectors of them: building one from single elements takes twice as long.
template <class Stored>
[[gnu::always_inline]] inline void copy_apart(const std::byte* from, std::int64_t from_stride, std::byte* to,
                                              std::int64_t to_stride, std::size_t n) {
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    Stored four[4];
    for (int j = 0; j < 4; ++j) four[j] = element<Stored>(from + j * from_stride);
    from += 4 * from_stride;
    for (int j = 0; j < 4; ++j) {
      std::memcpy(to + j * to_stride, &four[j], sizeof(Stored));
      asm volatile("" ::: "memory");
    }
    to += 4 * to_stride;
  }
  for (; i < n; ++i, from += from_stride, to += to_stride) std::memcpy(to, from, sizeof(Stored));
}

template <class Stored, std::int64_t step>
[[gnu::always_inline]] inline void pack_every(const std::byte* __restrict from, std::byte* __restrict to,
                                              std::size_t n) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Stored));
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(n); ++i) {
    std::memcpy(to + i * size, from + i * step * size, sizeof(Stored));
  }
}

/// Elements that are `step` apart, put side by side.
template <class Stored>
[[gnu::always_inline]] inline void pack(const std::byte* from, std::int64_t step, std::byte* to, std::size_t n) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Stored));
  switch (step) {  // short steps load whole vectors and pick
    case -1: return pack_every<Stored, -1>(from, to, n);
    case 2: return pack_every<Stored, 2>(from, to, n);
    case 3: return pack_every<Stored, 3>(from, to, n);
    case 4: return pack_every<Stored, 4>(from, to, n);
    default: return copy_apart<Stored>(from, step * size, to, size, n);
  }
}

template <class Stored, class T>
[[gnu::always_inline]] inline void load_span(const std::byte* from, std::int64_t step, T* z, std::size_t n) {
  if (step == 1) {
    widen_values<Stored>(from, z, n);
  } else if (step == 0) {
    std::fill_n(z, n, loaded(element<Stored>(from)));
  } else if constexpr (std::is_same_v<Stored, T>) {
    pack<Stored>(from, step, reinterpret_cast<std::byte*>(z), n);
  } else {
    std::byte packed[lanes_per_block * sizeof(Stored)];
    const std::int64_t step_bytes = step * static_cast<std::int64_t>(sizeof(Stored));
    by_blocks(n, [&](std::size_t begin, std::size_t count) {
      pack<Stored>(from + static_cast<std::int64_t>(begin) * step_bytes, step, packed, count);
      widen_values<Stored>(packed, z + begin, count);
    });
  }
}

template <class Stored, class T>
[[gnu::always_inline]] inline void load_rows(const std::byte* from, std::int64_t step, const ElementSpan& span, T* z) {
  const std::size_t n = span.count;
  if (span.rows > 1 && span.row_step == 0) {  // the same row again and again
    load_span<Stored>(from, step, z, n);
    for (std::size_t i = n; i < n * span.rows; i += n) std::copy_n(z, n, z + i);
    return;
  }
  const std::int64_t row_bytes = span.row_step * static_cast<std::int64_t>(sizeof(Stored));
  for (std::size_t r = 0; r < span.rows; ++r) {
    load_span<Stored>(from + static_cast<std::int64_t>(r) * row_bytes, step, z + r * n, n);
  }
}

template <class Stored, class T>
[[gnu::always_inline]] inline void load_spans(const std::byte* data, const ElementSpan* spans, std::size_t span_count,
                                              std::int64_t step, T* z) {
  for (const ElementSpan* span = spans; span != spans + span_count; ++span) {
    constexpr auto size = static_cast<std::int64_t>(sizeof(Stored));
    const std::byte* const from = data + span->offset * size;
    load_rows<Stored>(from, step, *span, z + span->first);
  }
}

template <class Stored, class T>
[[gnu::always_inline]] inline void store_as(const T* x, std::byte* to, std::int64_t step, std::size_t n) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Stored));
  if (step == 1 || n == 1) {
    narrow_values<Stored>(x, to, n);
  } else if constexpr (std::is_same_v<Stored, T>) {
    copy_apart<Stored>(reinterpret_cast<const std::byte*>(x), size, to, step * size, n);
  } else {
    std::byte packed[lanes_per_block * sizeof(Stored)];
    by_blocks(n, [&](std::size_t begin, std::size_t count) {
      narrow_values<Stored>(x + begin, packed, count);
      copy_apart<Stored>(packed, size, to + static_cast<std::int64_t>(begin) * step * size, step * size, count);
    });
  }
}

/// Floats are stored as floats, integers as integers, truths as bools: bodies convert what they do not.
template <class Stored, class T>
constexpr bool may_store = std::is_same_v<T, Truth>
                               ? std::is_same_v<Stored, Bool8>
                               : std::is_integral_v<T> ==
                                     (std::is_integral_v<Stored> ||
                                      std::is_same_v<Stored, Bool8>)&&!(std::is_same_v<T, float> &&
                                                                        std::is_same_v<Stored, double>);

template <class Stored, class T>
[[gnu::always_inline]] inline void store_if_may(const T* x, std::byte* to, std::int64_t step, std::size_t n) {
  if constexpr (may_store<Stored, T>) {
    store_as<Stored>(x, to, step, n);
  } else {
    throw Bug("a block stored as elements of another type");
  }
}

template <class T>
void store(DType stored, const T* x, std::byte* to, std::int64_t step, std::size_t n) {
  switch (stored) {
    case DType::f32: return store_if_may<float>(x, to, step, n);
    case DType::f64: return store_if_may<double>(x, to, step, n);
    case DType::bf16: return store_if_may<BFloat16>(x, to, step, n);
    case DType::f16: return store_if_may<Float16>(x, to, step, n);
    case DType::i32: return store_if_may<std::int32_t>(x, to, step, n);
    case DType::i64: return store_if_may<std::int64_t>(x, to, step, n);
    case DType::boolean: return store_if_may<Bool8>(x, to, step, n);
  }
}

template <class T>
void round_to(DType to, const T* x, float* z, std::size_t n) {
  std::byte narrow[lanes_per_block * sizeof(Float16)];
  by_blocks(n, [&](std::size_t begin, std::size_t count) {
    if (to == DType::bf16) {
      narrow_values<BFloat16>(x + begin, narrow, count);
      widen_values<BFloat16>(narrow, z + begin, count);
    } else {
      narrow_values<Float16>(x + begin, narrow, count);
      widen_values<Float16>(narrow, z + begin, count);
    }
  });
}

template <class Stored, class T>
[[gnu::always_inline]] inline void load_as(const std::byte* data, const ElementSpan* spans, std::size_t span_count,
                                           std::int64_t step, T* z) {
  if constexpr (std::is_same_v<decltype(loaded(Stored{})), T>) {
    load_spans<Stored>(data, spans, span_count, step, z);
  } else {
    throw Bug("an element loaded into a block of another type");
  }
}

template <class T>
void load(DType stored, const std::byte* data, const ElementSpan* spans, std::size_t count, std::int64_t step, T* z) {
  switch (stored) {
    case DType::f32: return load_as<float>(data, spans, count, step, z);
    case DType::f64: return load_as<double>(data, spans, count, step, z);
    case DType::bf16: return load_as<BFloat16>(data, spans, count, step, z);
    case DType::f16: return load_as<Float16>(data, spans, count, step, z);
    case DType::i32: return load_as<std::int32_t>(data, spans, count, step, z);
    case DType::i64: return load_as<std::int64_t>(data, spans, count, step, z);
    case DType::boolean: return load_as<Bool8>(data, spans, count, step, z);
  }
}

constexpr BlockMemory all_block_memory{{load<float>, load<double>, load<std::int64_t>, load<Truth>},
                                       {store<float>, store<double>, store<std::int64_t>, store<Truth>},
                                       {round_to<float>, round_to<double>, round_to<std::int64_t>}};

}  // namespace
}  // namespace einrel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
