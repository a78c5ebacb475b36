#include "kernel/cpu/lapack.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "einsum/vertex_facts.h"
#include "machine/processor.h"

namespace einrel {
namespace {

/// LAPACK's functions of one type, by its own names: matrices are column-major, all arguments are pointers, `info` > 0
/// says that the matrix is singular.
template <class Number>
struct Functions {
  void (*getrf)(const int* rows, const int* columns, Number* matrix, const int* stride, int* pivots, int* info);
  void (*getri)(const int* rows, Number* matrix, const int* stride, const int* pivots, Number* work,
                const int* work_count, int* info);
};

struct Lapack {
  Functions<float> of_floats{};
  Functions<double> of_doubles{};
};

template <class Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr) throw RunError(fmt::format("the LAPACK that is installed lacks {}", name));
}

/// Loaded by the first program that needs it and kept: all others start faster without. Throws RunError.
const Lapack& lapack() {
  static const Lapack loaded = [] {
    void* const library = ::dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw RunError("inverse needs LAPACK, which is not installed: apt-get install liblapack3");
    Lapack found;
    find(library, "sgetrf_", found.of_floats.getrf);
    find(library, "sgetri_", found.of_floats.getri);
    find(library, "dgetrf_", found.of_doubles.getrf);
    find(library, "dgetri_", found.of_doubles.getri);
    return found;
  }();
  return loaded;
}

const Functions<float>& functions_of(float) { return lapack().of_floats; }
const Functions<double>& functions_of(double) { return lapack().of_doubles; }

/// Where the matrices lie in the operand.
struct Matrices {
  Vertex vertex;  ///< for messages
  Shape batches;
  Strides batch_strides;
  int n = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  int work_count = 0;  ///< numbers that getri gets, for whole blocks of columns
};

/// LAPACK takes this many columns together where it has the memory.
constexpr int columns_of_block = 32;

Matrices matrices_of(const Vertex& vertex, const ArrayLayout& operand) {
  const auto& opaque = std::get<Opaque>(vertex.op);
  const std::size_t rank = opaque.labels.size();
  Strides strides(rank);
  for (std::size_t d = 0; d < rank; ++d) strides[opaque.operand[d]] = operand.strides[d];
  const std::int64_t n = opaque.labels.back().extent.value();
  const std::int64_t most = most_workspace_bytes / static_cast<std::int64_t>(sizeof(double) + sizeof(int));
  if (n > most) {
    throw UserError(fmt::format("{}: {} takes matrices of at most {} rows, not {}", vertex.name,
                                name_of(opaque.function), most, n));
  }
  Matrices matrices{vertex, {}, {}, static_cast<int>(n), strides[rank - 2], strides[rank - 1], 0};
  for (std::size_t l = 0; l + 2 < rank; ++l) {
    matrices.batches.push_back(opaque.labels[l].extent);
    matrices.batch_strides.push_back(strides[l]);
  }
  const std::int64_t left = most_workspace_bytes - n * static_cast<std::int64_t>(sizeof(int)) - 64;
  matrices.work_count =
      static_cast<int>(std::min(n * columns_of_block, std::max(n, left / static_cast<std::int64_t>(sizeof(double)))));
  return matrices;
}

/// Elements from the first matrix to this one.
std::int64_t offset_of(const Matrices& matrices, std::int64_t batch) {
  std::int64_t offset = 0;
  for (std::size_t d = matrices.batches.size(); d-- > 0;) {
    const std::int64_t extent = matrices.batches[d].value();
    offset += batch % extent * matrices.batch_strides[d];
    batch /= extent;
  }
  return offset;
}

/// Pivots lie behind getri's numbers.
template <class Number>
std::int64_t workspace_bytes(const Matrices& matrices) {
  return matrices.work_count * static_cast<std::int64_t>(sizeof(Number)) +
         matrices.n * static_cast<std::int64_t>(sizeof(int));
}

/// LAPACK reads a row-major matrix as its transpose, whose inverse is the transpose of the inverse: so rows stay rows.
template <class Number>
void invert_batch(const Matrices& matrices, const Functions<Number>& functions, const Arrays& arrays,
                  Workspace workspace, std::int64_t batch) {
  const auto n = static_cast<std::int64_t>(matrices.n);
  auto* const result = reinterpret_cast<Number*>(arrays.result) + batch * n * n;
  const std::byte* const from =
      arrays.operands[0] + offset_of(matrices, batch) * static_cast<std::int64_t>(sizeof(Number));
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t column = 0; column < n; ++column) {
      const std::int64_t element = row * matrices.row_stride + column * matrices.column_stride;
      std::memcpy(&result[row * n + column], from + element * static_cast<std::int64_t>(sizeof(Number)),
                  sizeof(Number));
    }
  }
  auto* const work = reinterpret_cast<Number*>(workspace.own);
  auto* const pivots = reinterpret_cast<int*>(work + matrices.work_count);
  int info = 0;
  const int rows = matrices.n;
  functions.getrf(&rows, &rows, result, &rows, pivots, &info);
  if (info == 0) functions.getri(&rows, result, &rows, pivots, work, &matrices.work_count, &info);
  invariant(info >= 0, "LAPACK takes the arguments that it gets");
  if (info > 0) throw UserError(singular_text(matrices.vertex, batch));
}

template <class Number>
PreparedKernel prepared(Matrices matrices, std::int64_t batches) {
  const std::int64_t bytes = workspace_bytes<Number>(matrices);
  const auto run = [matrices = std::move(matrices), &functions = functions_of(Number{})](
                       const Arrays& arrays, Workspace workspace, std::int64_t batch) {
    invert_batch<Number>(matrices, functions, arrays, workspace, batch);
  };
  return {bytes, 0, {Stage{batches, run}}};
}

}  // namespace

KernelNote lapack_note() { return {"lapack", "inverses of matrices", "LAPACK"}; }

Choice choose_lapack(const Vertex& vertex, const ArrayLayout& operand) {
  // Of the reference LAPACK, which uses a core badly; what is installed may be faster.
  constexpr double operations_per_second = nominal_processor.flops_per_core / 25;
  const std::int64_t batches = batches_of(std::get<Opaque>(vertex.op));
  Matrices matrices = matrices_of(vertex, operand);
  Offer offer;
  offer.seconds = flops(vertex) / operations_per_second;
  offer.path = fmt::format("{} matri{} of {} x {}, one after the other", batches, batches == 1 ? "x" : "ces",
                           matrices.n, matrices.n);
  const bool is_double = vertex.dtype == DType::f64;
  offer.own_bytes = is_double ? workspace_bytes<double>(matrices) : workspace_bytes<float>(matrices);
  offer.prepare = [matrices = std::move(matrices), batches, is_double] {
    return is_double ? prepared<double>(matrices, batches) : prepared<float>(matrices, batches);
  };
  const double seconds = offer.seconds;
  return {lapack_note().name, std::move(offer), {{lapack_note().name, seconds}}};
}

}  // namespace einrel
