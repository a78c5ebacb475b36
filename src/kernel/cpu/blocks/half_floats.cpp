#include "kernel/cpu/blocks/half_floats.h"

#include <cstring>

#include "tensor/dtype.h"

// The compilers vectorise no conversion of f16, so that the instructions for it are called by name.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define EINREL_HAS_F16C 1
#include <immintrin.h>
#endif

namespace einrel {
namespace {

#ifdef EINREL_HAS_F16C

constexpr std::size_t width = 8;

[[gnu::target("avx,f16c")]] void widen_by_f16c(const std::byte* halves, float* z, std::size_t n) {
  std::size_t i = 0;
  for (; i + width <= n; i += width) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + 2 * i));
    _mm256_storeu_ps(z + i, _mm256_cvtph_ps(bits));
  }
  for (; i < n; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, halves + 2 * i, sizeof bits);
    z[i] = _cvtsh_ss(bits);
  }
}

[[gnu::target("avx,f16c")]] void narrow_by_f16c(const float* x, std::byte* halves, std::size_t n) {
  std::size_t i = 0;
  for (; i + width <= n; i += width) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(halves + 2 * i), bits);
  }
  for (; i < n; ++i) {
    const std::uint16_t bits = _cvtss_sh(x[i], _MM_FROUND_TO_NEAREST_INT);
    std::memcpy(halves + 2 * i, &bits, sizeof bits);
  }
}

bool has_f16c() { return __builtin_cpu_supports("f16c") != 0; }

#else

bool has_f16c() { return false; }
void widen_by_f16c(const std::byte*, float*, std::size_t) {}
void narrow_by_f16c(const float*, std::byte*, std::size_t) {}

#endif

}  // namespace

void widen_halves(const std::byte* halves, float* z, std::size_t n) {
  if (has_f16c()) return widen_by_f16c(halves, z, n);
  for (std::size_t i = 0; i < n; ++i) {
    Float16 half;
    std::memcpy(&half, halves + i * sizeof half, sizeof half);
    z[i] = to_float(half);
  }
}

void narrow_to_halves(const float* x, std::byte* halves, std::size_t n) {
  if (has_f16c()) return narrow_by_f16c(x, halves, n);
  for (std::size_t i = 0; i < n; ++i) {
    const Float16 half = to_float16(x[i]);
    std::memcpy(halves + i * sizeof half, &half, sizeof half);
  }
}

}  // namespace einrel
