#include "kernel/blas.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/error.h"

namespace einrel {
namespace {

/// The C interface of BLAS, as far as it is used here.
enum CblasOrder : int { cblas_row_major = 101 };
enum CblasTranspose : int { cblas_as_it_lies = 111, cblas_transposed = 112 };
template <class T>
using Gemm = void (*)(CblasOrder, CblasTranspose, CblasTranspose, int m, int n, int k, T alpha, const T* a, int lda,
                      const T* b, int ldb, T beta, T* c, int ldc);

template <class T>
using Gemv = void (*)(CblasOrder, CblasTranspose, int m, int n, T alpha, const T* a, int lda, const T* x, int incx,
                      T beta, T* y, int incy);

template <class T>
struct Routines {
  Gemm<T> gemm = nullptr;
  Gemv<T> gemv = nullptr;
};

struct Blas {
  Routines<float> f32;
  Routines<double> f64;
  bool complete() const { return f32.gemm && f32.gemv && f64.gemm && f64.gemv; }
};

/// An environment variable that is set while this lives, unless the user has set it already.
class TemporaryVariable {
 public:
  TemporaryVariable(const char* name, const char* value) : name_(name), set_(std::getenv(name) == nullptr) {
    if (set_) setenv(name, value, 1);
  }
  ~TemporaryVariable() {
    if (set_) unsetenv(name_);
  }
  TemporaryVariable(const TemporaryVariable&) = delete;
  TemporaryVariable& operator=(const TemporaryVariable&) = delete;

 private:
  const char* name_;
  bool set_;
};

/// OpenBLAS knows processors by model number and takes those newer than itself for the oldest (SSE3 code, 4 times
/// slower). What the processor can do tells better. nullptr: let OpenBLAS decide.
const char* core_type() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

void* open_library() {
  const TemporaryVariable threads("OPENBLAS_NUM_THREADS", "1");
  const char* const core = core_type();
  if (core == nullptr) return dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  const TemporaryVariable coretype("OPENBLAS_CORETYPE", core);
  return dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
Function symbol(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}

/// The library stays loaded until the process ends.
Blas load() {
  void* const library = open_library();
  if (library == nullptr) return {};
  const Blas blas{{symbol<Gemm<float>>(library, "cblas_sgemm"), symbol<Gemv<float>>(library, "cblas_sgemv")},
                  {symbol<Gemm<double>>(library, "cblas_dgemm"), symbol<Gemv<double>>(library, "cblas_dgemv")}};
  const auto set_threads = symbol<void (*)(int)>(library, "openblas_set_num_threads");
  if (!blas.complete() || set_threads == nullptr) return {};
  set_threads(1);  // the process may have loaded it before, with more
  return blas;
}

const Blas& blas() {
  static const Blas loaded = load();
  return loaded;
}

int number(std::size_t value) {
  invariant(value <= max_blas_extent, "an extent is too large for BLAS");
  return static_cast<int>(value);
}

CblasTranspose transpose(Order order) { return order == Order::rows ? cblas_as_it_lies : cblas_transposed; }

}  // namespace

bool has_blas() { return blas().complete(); }

void multiply_add(std::size_t m, std::size_t n, std::size_t k, Matrix<float> a, Matrix<float> b, float* c,
                  std::size_t c_leading) {
  blas().f32.gemm(cblas_row_major, transpose(a.order), transpose(b.order), number(m), number(n), number(k), 1, a.data,
                  number(a.leading), b.data, number(b.leading), 1, c, number(c_leading));
}

void multiply_add(std::size_t m, std::size_t n, std::size_t k, Matrix<double> a, Matrix<double> b, double* c,
                  std::size_t c_leading) {
  blas().f64.gemm(cblas_row_major, transpose(a.order), transpose(b.order), number(m), number(n), number(k), 1, a.data,
                  number(a.leading), b.data, number(b.leading), 1, c, number(c_leading));
}

// A matrix that lies by columns is, by rows, its transpose.

void multiply_add(std::size_t m, std::size_t k, Matrix<float> a, const float* x, std::size_t x_step, float* y,
                  std::size_t y_step) {
  const bool by_rows = a.order == Order::rows;
  blas().f32.gemv(cblas_row_major, transpose(a.order), number(by_rows ? m : k), number(by_rows ? k : m), 1, a.data,
                  number(a.leading), x, number(x_step), 1, y, number(y_step));
}

void multiply_add(std::size_t m, std::size_t k, Matrix<double> a, const double* x, std::size_t x_step, double* y,
                  std::size_t y_step) {
  const bool by_rows = a.order == Order::rows;
  blas().f64.gemv(cblas_row_major, transpose(a.order), number(by_rows ? m : k), number(by_rows ? k : m), 1, a.data,
                  number(a.leading), x, number(x_step), 1, y, number(y_step));
}

}  // namespace einrel
