// pdgemm ROWSxCOLUMNS EXTENTS BLOCK...: times ScaLAPACK's products of matrices of f64 on all ranks of a job, for each
// size of blocks, block-cyclic on a grid of processes.
//
// Three extents IxJxK: A B, where A is I x J and B is J x K. Five, IxJxKxLxM: A B + C (D E), as three calls of pdgemm,
// the last of which adds. Rank 0 prints a line "BLOCK SECONDS BYTES" each: the bytes that went from rank to rank. The
// memory of the results has been touched before, and smaller products have run. Ends with 1 when the sum of the result
// is wrong.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "moved_bytes.h"

extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
int numroc_(const int* n, const int* block, const int* process, const int* first, const int* processes);
void descinit_(int* desc, const int* rows, const int* columns, const int* block_rows, const int* block_columns,
               const int* first_row, const int* first_column, const int* context, const int* leading, int* info);
void pdgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
             const double* alpha, const double* a, const int* ia, const int* ja, const int* desc_a, const double* b,
             const int* ib, const int* jb, const int* desc_b, const double* beta, double* c, const int* ic,
             const int* jc, const int* desc_c);
}

namespace {

constexpr int zero = 0;
constexpr int one = 1;

struct Grid {
  Grid(int wanted_rows, int wanted_columns) {
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", wanted_rows, wanted_columns);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
  }
  ~Grid() { Cblacs_gridexit(context); }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  int context = 0, rows = 0, columns = 0, row = 0, column = 0;
};

/// This rank's part of a matrix, in columns.
struct Matrix {
  Matrix(int all_rows, int all_columns, int block_size, const Grid& of)
      : height(all_rows), width(all_columns), block(block_size), grid(&of) {
    rows = numroc_(&height, &block, &of.row, &zero, &of.rows);
    columns = numroc_(&width, &block, &of.column, &zero, &of.columns);
    const int leading = std::max(1, rows);
    int info = 0;
    descinit_(desc, &height, &width, &block, &block, &zero, &zero, &of.context, &leading, &info);
    data.resize(static_cast<std::size_t>(leading) * static_cast<std::size_t>(std::max(1, columns)));
  }
  double at(int i, int j) const { return data[static_cast<std::size_t>(j) * static_cast<std::size_t>(desc[8]) + i]; }
  /// The number in the whole matrix of a row or a column of this rank.
  int global_row(int i) const { return (i / block * grid->rows + grid->row) * block + i % block; }
  int global_column(int j) const { return (j / block * grid->columns + grid->column) * block + j % block; }

  int height, width, block;
  const Grid* grid;
  int rows = 0, columns = 0;
  int desc[9] = {};
  std::vector<double> data;
};

void fill(Matrix& matrix, unsigned seed) {
  std::minstd_rand generator(seed);
  for (double& value : matrix.data) value = 2 * (generator() / static_cast<double>(std::minstd_rand::max())) - 1;
}

std::vector<double> added_up(std::vector<double> values) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return values;
}

/// The matrix times a column; without one, times ones.
std::vector<double> times(const Matrix& matrix, const std::vector<double>& column = {}) {
  std::vector<double> result(matrix.height);
  for (int j = 0; j < matrix.columns; ++j) {
    const double factor = column.empty() ? 1 : column[matrix.global_column(j)];
    for (int i = 0; i < matrix.rows; ++i) result[matrix.global_row(i)] += matrix.at(i, j) * factor;
  }
  return added_up(result);
}

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

/// c = a b + kept c, of the first `most` rows and columns.
void multiply(const Matrix& a, const Matrix& b, double kept, Matrix& c, int most) {
  const double factor = 1;
  const int rows = std::min(most, c.height), columns = std::min(most, c.width), inner = std::min(most, a.width);
  pdgemm_("N", "N", &rows, &columns, &inner, &factor, a.data.data(), &one, &one, a.desc, b.data.data(), &one, &one,
          b.desc, &kept, c.data.data(), &one, &one, c.desc);
}

struct Measured {
  double seconds = 0;
  long long bytes = 0;
};

/// Runs it small, then times it.
template <class Compute>
Measured timed(Compute&& compute) {
  compute(1024);
  MPI_Barrier(MPI_COMM_WORLD);
  einrel::bench::reset_moved_bytes();
  const double start = MPI_Wtime();
  compute(std::numeric_limits<int>::max());
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - start;
  long long own = einrel::bench::moved_bytes().all, all = 0;
  MPI_Reduce(&own, &all, 1, MPI_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  return {seconds, all};
}

/// Prints a line and returns whether the result is right.
bool report(const Measured& measured, int block, int rank, const Matrix& result, const std::vector<double>& expected) {
  if (rank == 0) std::printf("%d %.9f %lld\n", block, measured.seconds, measured.bytes);
  double scale = 0;
  for (const double of_row : expected) scale += std::abs(of_row);
  return std::abs(sum_of(times(result)) - sum_of(expected)) <= 1e-10 * scale;
}

bool measure_product(const std::vector<int>& extents, int block, const Grid& grid, int rank) {
  Matrix a(extents[0], extents[1], block, grid), b(extents[1], extents[2], block, grid);
  Matrix c(extents[0], extents[2], block, grid);
  fill(a, 2 * rank + 1);
  fill(b, 2 * rank + 2);
  const Measured measured = timed([&](int most) { multiply(a, b, 0, c, most); });
  return report(measured, block, rank, c, times(a, times(b)));
}

bool measure_chain(const std::vector<int>& extents, int block, const Grid& grid, int rank) {
  const int i = extents[0], j = extents[1], k = extents[2], l = extents[3], m = extents[4];
  Matrix a(i, j, block, grid), b(j, k, block, grid), c(i, l, block, grid), d(l, m, block, grid), e(m, k, block, grid);
  Matrix de(l, k, block, grid), z(i, k, block, grid);
  unsigned seed = 5 * rank;
  for (Matrix* const matrix : {&a, &b, &c, &d, &e}) fill(*matrix, ++seed);
  const Measured measured = timed([&](int most) {
    multiply(a, b, 0, z, most);
    multiply(d, e, 0, de, most);
    multiply(c, de, 1, z, most);
  });
  std::vector<double> expected = times(a, times(b));
  const std::vector<double> other = times(c, times(d, times(e)));
  for (std::size_t row = 0; row < expected.size(); ++row) expected[row] += other[row];
  return report(measured, block, rank, z, expected);
}

std::vector<int> numbers_of(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, 'x');) numbers.push_back(std::atoi(word.c_str()));
  return numbers;
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  bool right = count > 3;
  if (right) {
    const std::vector<int> sides = numbers_of(arguments[1]), extents = numbers_of(arguments[2]);
    const Grid grid(sides.at(0), sides.at(1));
    for (int i = 3; i < count; ++i) {
      const auto measure = extents.size() == 3 ? measure_product : measure_chain;
      right = measure(extents, std::atoi(arguments[i]), grid, rank) && right;
    }
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
