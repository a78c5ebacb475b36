#include "kernel/lapack.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "einsum/graph/vertex_facts.h"
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
  void (*gelqf)(const int* rows, const int* columns, Number* matrix, const int* stride, Number* factors, Number* work,
                const int* work_count, int* info);
  void (*orglq)(const int* rows, const int* columns, const int* reflections, Number* matrix, const int* stride,
                const Number* factors, Number* work, const int* work_count, int* info);
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
    if (library == nullptr)
      throw RunError("linear algebra needs LAPACK, which is not installed: apt-get install liblapack3");
    Lapack found;
    find(library, "sgetrf_", found.of_floats.getrf);
    find(library, "sgetri_", found.of_floats.getri);
    find(library, "sgelqf_", found.of_floats.gelqf);
    find(library, "sorglq_", found.of_floats.orglq);
    find(library, "dgetrf_", found.of_doubles.getrf);
    find(library, "dgetri_", found.of_doubles.getri);
    find(library, "dgelqf_", found.of_doubles.gelqf);
    find(library, "dorglq_", found.of_doubles.orglq);
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
  int rows = 0;
  int columns = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
  int work_count = 0;  ///< numbers that LAPACK gets, for whole blocks of columns
  int shorter() const { return std::min(rows, columns); }
};

/// LAPACK takes this many columns together where it has the memory.
constexpr int columns_of_block = 32;

/// What lies behind the numbers for LAPACK: a pivot, or the factor of a reflection, for each row.
constexpr auto bytes_behind = static_cast<std::int64_t>(sizeof(double));

Matrices matrices_of(const Vertex& vertex, const ArrayLayout& operand) {
  const auto& opaque = std::get<Opaque>(vertex.op);
  const std::size_t batches = batch_labels(opaque);
  Strides strides(batches + 2);
  for (std::size_t d = 0; d < strides.size(); ++d) strides[opaque.operand[d]] = operand.strides[d];
  const std::int64_t rows = opaque.labels[batches].extent.value();
  const std::int64_t columns = opaque.labels[batches + 1].extent.value();
  const std::int64_t longer = std::max(rows, columns);
  const std::int64_t most = most_workspace_bytes / (static_cast<std::int64_t>(sizeof(double)) + bytes_behind);
  if (longer > most) {
    throw UserError(fmt::format("{}: {} takes matrices of at most {} rows and columns, not {}", vertex.name,
                                name_of(result_of(opaque)), most, longer));
  }
  Matrices matrices{
      vertex, {}, {}, static_cast<int>(rows), static_cast<int>(columns), strides[batches], strides[batches + 1], 0};
  for (std::size_t l = 0; l < batches; ++l) {
    matrices.batches.push_back(opaque.labels[l].extent);
    matrices.batch_strides.push_back(strides[l]);
  }
  const std::int64_t left = most_workspace_bytes - longer * bytes_behind - 64;
  matrices.work_count = static_cast<int>(
      std::min(longer * columns_of_block, std::max(longer, left / static_cast<std::int64_t>(sizeof(double)))));
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

template <class Number>
std::int64_t workspace_bytes(const Matrices& matrices) {
  const std::int64_t numbers = matrices.work_count * static_cast<std::int64_t>(sizeof(Number));
  return (numbers + bytes_behind - 1) / bytes_behind * bytes_behind +
         std::max(matrices.rows, matrices.columns) * bytes_behind;
}

/// The matrix of a batch, row-major.
template <class Number>
void copy_matrix(const Matrices& matrices, const Arrays& arrays, std::int64_t batch, Number* to) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Number));
  const std::byte* const from = arrays.operands[0] + offset_of(matrices, batch) * size;
  for (std::int64_t row = 0; row < matrices.rows; ++row) {
    for (std::int64_t column = 0; column < matrices.columns; ++column) {
      const std::int64_t element = row * matrices.row_stride + column * matrices.column_stride;
      std::memcpy(to++, from + element * size, sizeof(Number));
    }
  }
}

/// LAPACK reads a row-major matrix as its transpose, whose inverse is the transpose of the inverse: so rows stay rows.
template <class Number>
void invert_batch(const Matrices& matrices, const Functions<Number>& functions, const Arrays& arrays,
                  Workspace workspace, std::int64_t batch) {
  const int n = matrices.rows;
  auto* const result = reinterpret_cast<Number*>(arrays.result) + batch * n * n;
  copy_matrix(matrices, arrays, batch, result);
  auto* const work = reinterpret_cast<Number*>(workspace.own);
  auto* const pivots = reinterpret_cast<int*>(work + matrices.work_count);
  int info = 0;
  functions.getrf(&n, &n, result, &n, pivots, &info);
  if (info == 0) functions.getri(&n, result, &n, pivots, work, &matrices.work_count, &info);
  invariant(info >= 0, "LAPACK takes the arguments that it gets");
  if (info > 0) throw UserError(singular_text(matrices.vertex, batch));
}

/// Of the transpose that LAPACK reads it computes L and Q^T, whose product is R^T Q^T: row-major they are R and Q. The
/// matrix is factored in the place of the factor that is as large, and the other one taken out of it.
template <class Number>
void factor_batch(const Matrices& matrices, const Functions<Number>& functions, const Arrays& arrays,
                  Workspace workspace, std::int64_t batch) {
  const std::int64_t rows = matrices.rows;
  const std::int64_t columns = matrices.columns;
  const int between = matrices.shorter();
  auto* const q = reinterpret_cast<Number*>(arrays.results[0]) + batch * rows * between;
  auto* const r = reinterpret_cast<Number*>(arrays.results[1]) + batch * between * columns;
  const bool is_tall = rows >= columns;
  Number* const whole = is_tall ? q : r;
  copy_matrix(matrices, arrays, batch, whole);
  auto* const work = reinterpret_cast<Number*>(workspace.own);
  Number* const factors = work + matrices.work_count;
  int info = 0;
  functions.gelqf(&matrices.columns, &matrices.rows, whole, &matrices.columns, factors, work, &matrices.work_count,
                  &info);
  invariant(info == 0, "LAPACK takes the arguments that it gets");
  for (std::int64_t row = 0; row < between; ++row) {  // above is R, below are the reflections that Q is made of
    if (is_tall) {
      std::fill_n(r + row * columns, row, Number{0});
      std::copy_n(q + row * columns + row, columns - row, r + row * columns + row);
    } else {
      std::copy_n(r + row * columns, row, q + row * rows);
      std::fill_n(r + row * columns, row, Number{0});
    }
  }
  functions.orglq(&between, &matrices.rows, &between, q, &between, factors, work, &matrices.work_count, &info);
  invariant(info == 0, "LAPACK takes the arguments that it gets");
}

template <class Number>
PreparedKernel prepared(Matrices matrices, std::int64_t batches) {
  const std::int64_t bytes = workspace_bytes<Number>(matrices);
  const bool is_inverse = std::get<Opaque>(matrices.vertex.op).function == OpaqueFunction::inverse;
  const auto run = [matrices = std::move(matrices), &functions = functions_of(Number{}), is_inverse](
                       const Arrays& arrays, Workspace workspace, std::int64_t batch) {
    const auto compute = is_inverse ? invert_batch<Number> : factor_batch<Number>;
    compute(matrices, functions, arrays, workspace, batch);
  };
  return {bytes, 0, {Stage{batches, run}}};
}

}  // namespace

KernelNote lapack_note() { return {"lapack", "inverses and QR factors of matrices", "LAPACK"}; }

Choice choose_lapack(const Vertex& vertex, const ArrayLayout& operand) {
  // Of the reference LAPACK, which uses a core badly; what is installed may be faster.
  constexpr double operations_per_second = nominal_processor.flops_per_core / 25;
  const std::int64_t batches = batches_of(std::get<Opaque>(vertex.op));
  Matrices matrices = matrices_of(vertex, operand);
  Offer offer;
  offer.seconds = flops(vertex) / operations_per_second;
  offer.path = fmt::format("{} matri{} of {} x {}, one after the other", batches, batches == 1 ? "x" : "ces",
                           matrices.rows, matrices.columns);
  const bool is_double = vertex.dtype == DType::f64;
  offer.own_bytes = is_double ? workspace_bytes<double>(matrices) : workspace_bytes<float>(matrices);
  offer.prepare = [matrices = std::move(matrices), batches, is_double] {
    return is_double ? prepared<double>(matrices, batches) : prepared<float>(matrices, batches);
  };
  const double seconds = offer.seconds;
  return {lapack_note().name, std::move(offer), {{lapack_note().name, seconds}}};
}

}  // namespace einrel
