#include "kernel/contraction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "kernel/blas.h"
#include "kernel/block_ops.h"
#include "kernel/reading.h"

namespace einrel {
namespace {

// Z = sum of A * B. By which of them depends on it, a loop is
//   a row     (A and the output),     a column (B and the output),
//   inner     (reduced),              or batch (the output, and both or neither of A and B).

struct Product {
  DType type = DType::f32;  ///< of A * B: f32 or f64
  const Reading* a = nullptr;
  const Reading* b = nullptr;
};

std::optional<Product> as_product(const EinSum& einsum, const LoopNest& nest) {
  const std::vector<ScalarStep>& steps = einsum.body.steps;
  if (einsum.reducer != Reducer::sum || steps.size() != 3) return std::nullopt;
  const auto* const a = std::get_if<OperandValue>(&steps[0].op);
  const auto* const b = std::get_if<OperandValue>(&steps[1].op);
  const auto* const multiply = std::get_if<ApplyBinary>(&steps[2].op);
  if (a == nullptr || b == nullptr || multiply == nullptr) return std::nullopt;
  if (multiply->function != BinaryFunction::multiply || !is_float(steps[2].type)) return std::nullopt;
  return Product{steps[2].type, &nest.readings[a->operand], &nest.readings[b->operand]};
}

bool depends_on(const Reading& reading, const Loop& loop) {
  return loop.steps[reading.quantity] != 0 ||
         std::any_of(reading.guards.begin(), reading.guards.end(),
                     [&](const Guard& guard) { return loop.steps[guard.quantity] != 0; });
}

struct Roles {
  std::vector<Loop> rows;
  std::vector<Loop> columns;
  std::vector<Loop> inner;
  std::vector<Loop> batch;
};

Roles roles_of(const LoopNest& nest, const Product& product) {
  Roles roles;
  for (const Loop& loop : nest.loops) {
    const bool in_a = depends_on(*product.a, loop);
    const bool in_b = depends_on(*product.b, loop);
    std::vector<Loop>& role = loop.reduced    ? roles.inner
                              : in_a && !in_b ? roles.rows
                              : in_b && !in_a ? roles.columns
                                              : roles.batch;
    role.push_back(loop);
  }
  return roles;
}

/// Z^T = B^T * A^T.
void transpose(Product& product, Roles& roles) {
  std::swap(product.a, product.b);
  std::swap(roles.rows, roles.columns);
}

// Nanoseconds of one multiply-add in a large multiplication, and in the interpreter; of an element packed, by BLAS or
// here; of an element of a matrix that is multiplied with a vector; of a call. Only their ratios matter.
double multiply_add_cost(DType type) { return type == DType::f32 ? 0.015 : 0.03; }
constexpr double interpreter_cost = 0.6;
constexpr double packing_cost = 0.7;
constexpr double matrix_read_cost = 0.2;
constexpr double call_cost = 250;

double multiplication_cost(DType type, double m, double n, double k) {
  return call_cost + m * n * k * multiply_add_cost(type) + (m * k + k * n + m * n) * packing_cost;
}

double positions(const std::vector<Loop>& loops) { return static_cast<double>(position_count(loops)); }

// --- in place: one matrix multiplication for each position of all loops but three ---

/// A matrix whose rows and columns are these loops; nullopt when BLAS cannot take its strides.
std::optional<std::pair<Order, std::size_t>> layout(const Loop& row, const Loop& column, std::size_t quantity) {
  const std::int64_t row_step = row.steps[quantity];
  const std::int64_t column_step = column.steps[quantity];
  constexpr auto limit = static_cast<std::int64_t>(max_blas_extent);
  if (row.extent > limit || column.extent > limit || row_step > limit || column_step > limit) return std::nullopt;
  if (column_step == 1 && row_step >= column.extent) return {{Order::rows, static_cast<std::size_t>(row_step)}};
  if (row_step == 1 && column_step >= row.extent) return {{Order::columns, static_cast<std::size_t>(column_step)}};
  return std::nullopt;
}

/// A loop of one position, to stand for the columns of a vector.
Loop single_loop(std::size_t quantities) { return {1, false, std::vector<std::int64_t>(quantities, 0)}; }

/// Z[row,column] += sum over inner of A * B, for each position of the outer loops.
struct InPlace {
  Product product;
  Loop row, column, inner;
  std::pair<Order, std::size_t> a, b;  ///< of a vector B only the distance of its elements
  std::size_t z_leading = 1;
  std::vector<Loop> outer;
  double cost = 0;
};

bool is_plain(const Reading& reading, DType type) {
  return reading.dtype == type && reading.guards.empty() &&
         reinterpret_cast<std::uintptr_t>(reading.data) % size_of(type) == 0;
}

/// All loops of the roles but the three.
std::vector<Loop> outer_loops(const Roles& roles, std::size_t row, std::size_t column, std::size_t inner) {
  std::vector<Loop> outer = roles.batch;
  const auto append = [&outer](const std::vector<Loop>& loops, std::size_t but) {
    for (std::size_t i = 0; i < loops.size(); ++i) {
      if (i != but) outer.push_back(loops[i]);
    }
  };
  append(roles.rows, row);
  append(roles.columns, column);
  append(roles.inner, inner);
  return outer;
}

/// How BLAS can take these three loops as they lie, if at all; without outer loops and cost.
std::optional<InPlace> in_place(const Product& product, const Loop& row, const Loop& column, const Loop& inner) {
  const auto a = layout(row, inner, product.a->quantity);
  const auto b = layout(inner, column, product.b->quantity);
  const auto z = layout(row, column, output_quantity);
  if (!a || !b || !z || z->first != Order::rows) return std::nullopt;
  return InPlace{product, row, column, inner, *a, *b, z->second, {}, 0};
}

/// The same for a vector B.
std::optional<InPlace> in_place(const Product& product, const Loop& row, const Loop& inner) {
  const auto a = layout(row, inner, product.a->quantity);
  const std::int64_t x_step = inner.steps[product.b->quantity];
  const std::int64_t y_step = row.steps[output_quantity];
  const auto limit = static_cast<std::int64_t>(max_blas_extent);
  if (!a || x_step < 1 || x_step > limit || y_step > limit) return std::nullopt;
  return InPlace{product,
                 row,
                 single_loop(row.steps.size()),
                 inner,
                 *a,
                 {Order::rows, static_cast<std::size_t>(x_step)},
                 static_cast<std::size_t>(y_step),
                 {},
                 0};
}

double cost(const InPlace& plan) {
  const auto m = static_cast<double>(plan.row.extent);
  const auto n = static_cast<double>(plan.column.extent);
  const auto k = static_cast<double>(plan.inner.extent);
  const double one = n == 1 ? call_cost + m * k * matrix_read_cost : multiplication_cost(plan.product.type, m, n, k);
  return positions(plan.outer) * one;
}

/// The cheapest loops that BLAS can take as they lie.
std::optional<InPlace> best_in_place(const Product& product, const Roles& roles) {
  std::optional<InPlace> best;
  const bool vector = roles.columns.empty();
  for (std::size_t r = 0; r < roles.rows.size(); ++r) {
    for (std::size_t i = 0; i < roles.inner.size(); ++i) {
      for (std::size_t c = 0; c < (vector ? 1 : roles.columns.size()); ++c) {
        std::optional<InPlace> plan = vector ? in_place(product, roles.rows[r], roles.inner[i])
                                             : in_place(product, roles.rows[r], roles.columns[c], roles.inner[i]);
        if (!plan) continue;
        plan->outer = outer_loops(roles, r, c, i);
        plan->cost = cost(*plan);
        if (!best || plan->cost < best->cost) best = std::move(plan);
      }
    }
  }
  return best;
}

template <class T>
Tensor multiply_in_place(const InPlace& plan, const Vertex& vertex, const LoopNest& nest) {
  Tensor result(vertex.dtype, vertex.bound);
  std::memset(result.mutable_data(), 0, static_cast<std::size_t>(result.byte_count()));
  const auto m = static_cast<std::size_t>(plan.row.extent);
  const auto n = static_cast<std::size_t>(plan.column.extent);
  const auto k = static_cast<std::size_t>(plan.inner.extent);
  Odometer outer(plan.outer, nest.bases);
  for (std::int64_t i = 0; i < outer.count(); ++i, outer.advance()) {
    const std::vector<std::int64_t>& at = outer.quantities();
    const T* const a = reinterpret_cast<const T*>(plan.product.a->data) + at[plan.product.a->quantity];
    const T* const b = reinterpret_cast<const T*>(plan.product.b->data) + at[plan.product.b->quantity];
    T* const z = reinterpret_cast<T*>(result.mutable_data()) + at[output_quantity];
    const Matrix<T> matrix{a, plan.a.first, plan.a.second};
    if (n == 1) {
      multiply_add(m, k, matrix, b, plan.b.second, z, plan.z_leading);
    } else {
      multiply_add(m, n, k, matrix, Matrix<T>{b, plan.b.first, plan.b.second}, z, plan.z_leading);
    }
  }
  return result;
}

// --- through panels: rows, columns and inner loops each flattened, cut into pieces that are copied side by side ---

constexpr std::int64_t max_rows = 512;
constexpr std::int64_t max_columns = 512;
constexpr std::int64_t max_inner = 256;

double panels_cost(const Product& product, const Roles& roles) {
  const double m = positions(roles.rows);
  const double n = positions(roles.columns);
  const double k = positions(roles.inner);
  const double row_panels = std::ceil(m / max_rows);
  const double column_panels = std::ceil(n / max_columns);
  const double packed = m * k * column_panels + k * n * row_panels + 2 * m * n;
  return positions(roles.batch) * (2000 + multiplication_cost(product.type, m, n, k) + packed * packing_cost);
}

/// A half-open range of flattened positions.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t count() const { return end - begin; }
  bool operator==(const Piece&) const = default;
};

std::vector<std::int64_t> sum_of(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::vector<std::int64_t> sum(a.size());
  std::transform(a.begin(), a.end(), b.begin(), sum.begin(), add_wrapping);
  return sum;
}

/// How unevenly memory is touched when the innermost of these loops runs over an operand: the less, the better.
double unevenness(const std::vector<Loop>& loops, std::size_t quantity) {
  const Loop& inner = loops.back();
  const double step = std::abs(static_cast<double>(inner.steps[quantity]));
  return std::min(step, 16.0) + 16.0 / static_cast<double>(inner.extent);
}

/// Copies pieces of an operand that is a matrix over two groups of loops.
template <class T>
class Packer {
 public:
  Packer(const Reading& reading, const std::vector<Loop>& rows, const std::vector<Loop>& columns,
         std::size_t quantities)
      : reading_(reading),
        order_(unevenness(columns, reading.quantity) <= unevenness(rows, reading.quantity) ? Order::rows
                                                                                           : Order::columns),
        lanes_(order_ == Order::rows ? columns : rows, quantities),
        lines_(order_ == Order::rows ? rows : columns, std::vector<std::int64_t>(quantities, 0)) {}

  /// The part of the matrix of this batch position; stays until the next call. Nothing to do when it is the same part.
  Matrix<T> pack(const Odometer& batch, std::int64_t batch_position, Piece rows, Piece columns) {
    const Piece along = order_ == Order::rows ? columns : rows;
    const Piece across = order_ == Order::rows ? rows : columns;
    const auto width = static_cast<std::size_t>(along.count());
    if (batch_position != packed_batch_ || along != packed_along_ || across != packed_across_) {
      panel_.resize(width * static_cast<std::size_t>(across.count()));
      lanes_.select(along.begin, width);
      lines_.seek(across.begin);
      for (T* line = panel_.data(); line != panel_.data() + panel_.size(); line += width, lines_.advance()) {
        read_block(reading_, lanes_, sum_of(batch.quantities(), lines_.quantities()).data(), line);
      }
      packed_batch_ = batch_position;
      packed_along_ = along;
      packed_across_ = across;
    }
    return {panel_.data(), order_, width};
  }

 private:
  const Reading& reading_;
  Order order_;
  Lanes lanes_;
  Odometer lines_;
  std::vector<T> panel_;
  std::int64_t packed_batch_ = -1;
  Piece packed_along_;
  Piece packed_across_;
};

/// Calls use with consecutive pieces of [0, total).
template <class Use>
void for_each_piece(std::int64_t total, std::int64_t size, Use&& use) {
  for (std::int64_t begin = 0; begin < total; begin += size) use(Piece{begin, std::min(begin + size, total)});
}

template <class T>
class PanelContraction {
 public:
  PanelContraction(const Product& product, const Roles& roles, const Vertex& vertex, const LoopNest& nest)
      : a_(*product.a, roles.rows, roles.inner, nest.bases.size()),
        b_(*product.b, roles.inner, roles.columns, nest.bases.size()),
        inner_count_(position_count(roles.inner)),
        rows_(roles.rows, std::vector<std::int64_t>(nest.bases.size(), 0)),
        columns_(roles.columns, nest.bases.size()),
        batch_(roles.batch, nest.bases),
        result_(vertex.dtype, vertex.bound) {}

  Tensor run() && {
    for (std::int64_t i = 0; i < batch_.count(); ++i, batch_.advance()) {
      for_each_piece(rows_.count(), max_rows, [&](Piece rows) {
        for_each_piece(columns_.total(), max_columns, [&](Piece columns) { multiply(i, rows, columns); });
      });
    }
    return std::move(result_);
  }

 private:
  void multiply(std::int64_t batch_position, Piece rows, Piece columns) {
    const auto m = static_cast<std::size_t>(rows.count());
    const auto n = static_cast<std::size_t>(columns.count());
    tile_.assign(m * n, T{0});
    for_each_piece(inner_count_, max_inner, [&](Piece inner) {
      multiply_add(m, n, static_cast<std::size_t>(inner.count()), a_.pack(batch_, batch_position, rows, inner),
                   b_.pack(batch_, batch_position, inner, columns), tile_.data(), n);
    });
    store(rows, columns);
  }

  void store(Piece rows, Piece columns) {
    const auto size = static_cast<std::int64_t>(size_of(result_.dtype()));
    columns_.select(columns.begin, static_cast<std::size_t>(columns.count()));
    rows_.seek(rows.begin);
    const T* line = tile_.data();
    for (std::int64_t row = rows.begin; row < rows.end; ++row, rows_.advance(), line += columns.count()) {
      const std::int64_t row_offset = batch_.quantities()[output_quantity] + rows_.quantities()[output_quantity];
      for (std::size_t r = 0; r < columns_.runs().size(); ++r) {
        const Run run = columns_.runs()[r];
        const std::int64_t offset = row_offset + columns_.at(r, output_quantity);
        store_block(result_.dtype(), line + run.first, result_.mutable_data() + offset * size,
                    columns_.step(output_quantity), run.count);
      }
    }
  }

  Packer<T> a_;
  Packer<T> b_;
  std::int64_t inner_count_;
  Odometer rows_;
  Lanes columns_;
  Odometer batch_;
  Tensor result_;
  std::vector<T> tile_;
};

template <class T>
std::optional<Tensor> contract_as(Product product, Roles roles, const Vertex& vertex, const LoopNest& nest) {
  // The columns of the result should be what is contiguous in it; a vector should be B.
  const auto output_step = [](const std::vector<Loop>& loops) {
    return loops.empty() ? 0 : loops.back().steps[output_quantity];
  };
  if (output_step(roles.rows) < output_step(roles.columns)) transpose(product, roles);

  const double without_blas = positions(nest.loops) * interpreter_cost;
  std::optional<InPlace> plan;
  if (is_plain(*product.a, product.type) && is_plain(*product.b, product.type) && vertex.dtype == product.type) {
    plan = best_in_place(product, roles);
  }
  const double panels = roles.columns.empty() ? without_blas : panels_cost(product, roles);
  if (std::min(panels, plan ? plan->cost : panels) >= without_blas || !has_blas()) return std::nullopt;
  if (plan && plan->cost <= panels) return multiply_in_place<T>(*plan, vertex, nest);
  return PanelContraction<T>(product, roles, vertex, nest).run();
}

}  // namespace

std::optional<Tensor> contract(const Vertex& vertex, const EinSum& einsum, const LoopNest& nest) {
  const std::optional<Product> product = as_product(einsum, nest);
  if (!product) return std::nullopt;
  // Below about a million operations, loading the library costs more than it gains.
  if (positions(nest.loops) < 500000) return std::nullopt;
  Roles roles = roles_of(nest, *product);
  if ((roles.rows.empty() && roles.columns.empty()) || roles.inner.empty()) return std::nullopt;
  if (product->type == DType::f32) return contract_as<float>(*product, std::move(roles), vertex, nest);
  return contract_as<double>(*product, std::move(roles), vertex, nest);
}

}  // namespace einrel
