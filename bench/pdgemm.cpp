// pdgemm N BLOCK...: times ScaLAPACK's product of two N x N matrices of f64 on all ranks of a job, for each size of
// blocks.
//
// Block-cyclic on the process grid nearest to a square. Rank 0 prints a line "BLOCK SECONDS" each. The memory of the
// result has been touched before, and a smaller product has run. Ends with 1 when the sum of the result is wrong.
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <vector>

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

/// The process grid nearest to a square.
struct Grid {
  explicit Grid(int ranks) {
    rows = static_cast<int>(std::sqrt(ranks));
    while (ranks % rows != 0) --rows;
    columns = ranks / rows;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", rows, columns);
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
  }
  ~Grid() { Cblacs_gridexit(context); }
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  int context = 0, rows = 0, columns = 0, row = 0, column = 0;
};

/// This rank's part of an n x n matrix, in columns.
struct Matrix {
  Matrix(int n, int block, const Grid& grid) {
    rows = numroc_(&n, &block, &grid.row, &zero, &grid.rows);
    columns = numroc_(&n, &block, &grid.column, &zero, &grid.columns);
    const int leading = std::max(1, rows);
    int info = 0;
    descinit_(desc, &n, &n, &block, &block, &zero, &zero, &grid.context, &leading, &info);
    data.resize(static_cast<std::size_t>(leading) * static_cast<std::size_t>(std::max(1, columns)));
  }
  double& at(int i, int j) { return data[static_cast<std::size_t>(j) * static_cast<std::size_t>(desc[8]) + i]; }

  int rows = 0, columns = 0;
  int desc[9] = {};
  std::vector<double> data;
};

void fill(Matrix& matrix, unsigned seed) {
  std::minstd_rand generator(seed);
  for (double& value : matrix.data) value = 2 * (generator() / static_cast<double>(std::minstd_rand::max())) - 1;
}

/// The number in the whole matrix of a row or column of this rank.
int global(int local, int block, int process, int processes) {
  return (local / block * processes + process) * block + local % block;
}

void add_up(std::vector<double>& values) {
  MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/// Whether the sum of c is that of a b: the sums of a's columns times the sums of b's rows.
bool is_right(int n, int block, const Grid& grid, Matrix& a, Matrix& b, Matrix& c) {
  std::vector<double> column_sums(n), row_sums(n), sum(1);
  for (int j = 0; j < a.columns; ++j) {
    for (int i = 0; i < a.rows; ++i) {
      column_sums[global(j, block, grid.column, grid.columns)] += a.at(i, j);
      row_sums[global(i, block, grid.row, grid.rows)] += b.at(i, j);
      sum[0] += c.at(i, j);
    }
  }
  add_up(column_sums);
  add_up(row_sums);
  add_up(sum);
  const double expected = std::inner_product(column_sums.begin(), column_sums.end(), row_sums.begin(), 0.0);
  return std::abs(sum[0] - expected) < 1e-9 * n * std::sqrt(n);
}

void multiply(int n, const Matrix& a, const Matrix& b, Matrix& c) {
  const double factor = 1;
  const double kept = 0;
  pdgemm_("N", "N", &n, &n, &n, &factor, a.data.data(), &one, &one, a.desc, b.data.data(), &one, &one, b.desc, &kept,
          c.data.data(), &one, &one, c.desc);
}

/// Returns whether the result is right.
bool measure(int n, int block, const Grid& grid, int rank) {
  Matrix a(n, block, grid), b(n, block, grid), c(n, block, grid);
  fill(a, 2 * rank + 1);
  fill(b, 2 * rank + 2);
  multiply(std::min(n, 1024), a, b, c);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  multiply(n, a, b, c);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d %.9f\n", block, MPI_Wtime() - start);
  return is_right(n, block, grid, a, b, c);
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  bool right = count > 2;
  {
    const Grid grid(ranks);
    for (int i = 2; i < count; ++i)
      right = measure(std::atoi(arguments[1]), std::atoi(arguments[i]), grid, rank) && right;
  }
  MPI_Finalize();
  return right ? 0 : 1;
}
