#include "kernel/cpu/contraction/split.h"

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "kernel/cpu/contraction/store.h"

namespace einrel::contraction {
namespace {

/// Lays the result out in row-major order of batch, rows and columns, from offset 0 on. Gives its size.
std::int64_t lay_out(Product& product) {
  std::int64_t step = 1;
  for (std::vector<Loop>* loops : {&product.columns, &product.rows, &product.batch}) {
    for (auto loop = loops->rbegin(); loop != loops->rend(); ++loop) {
      loop->steps[output_quantity] = step;
      step *= loop->extent;
    }
  }
  product.bases[output_quantity] = 0;
  return step;
}

/// A product whose results are partial ones.
Product partial(Product product) {
  product.result = product.match.type;
  product.result_aligned = true;
  product.accumulate = false;
  product.one_stage = true;
  product.match.scale = 1;
  return product;
}

/// Some of the rows of each batch of partial results, in one of so many parts of nearly as many.
struct RowsOfPart {
  std::int64_t begin = 0;
  std::int64_t count = 0;
};

RowsOfPart rows_of_part(std::int64_t rows, std::int64_t parts, std::int64_t part) {
  const std::int64_t begin = rows * part / parts;
  return {begin, rows * (part + 1) / parts - begin};
}

/// Parts of some ten microseconds and more.
std::int64_t combining_parts(const Split& split) {
  constexpr std::int64_t least_values = 65536;
  constexpr std::int64_t most_parts = 16;
  const std::int64_t wanted = split.pieces * split.results / least_values;
  return std::clamp<std::int64_t>(wanted, 1, std::min(most_parts, position_count(split.whole.rows)));
}

/// Reduces some rows of the partial results into those of the first one and stores them.
template <class T>
void combine(const Split& split, RowsOfPart part, std::byte* result, std::byte* shared) {
  T* const values = reinterpret_cast<T*>(shared);
  const Product& product = split.whole;
  const std::int64_t rows = position_count(product.rows);
  const std::int64_t columns = position_count(product.columns);
  const std::int64_t count = part.count * columns;
  const std::vector<std::int64_t> one_row{0};
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  std::vector<std::int64_t> row_offsets(static_cast<std::size_t>(part.count));
  std::vector<std::int64_t> column_offsets(static_cast<std::size_t>(columns));
  fill_offsets(product.rows, output_quantity, part.begin, part.count, row_offsets.data());
  fill_offsets(product.columns, output_quantity, 0, columns, column_offsets.data());
  Odometer batch(product.batch, product.bases);
  for (std::int64_t i = 0; i < batch.count(); ++i, batch.advance()) {
    T* const sums = values + (i * rows + part.begin) * columns;
    for (std::int64_t piece = 1; piece < split.pieces; ++piece) {
      store_block(BlockStore<T>{sums + piece * split.results, 0, 1, count, reinterpret_cast<std::byte*>(sums),
                                product.match.type, one_row.data(), all.data(), 1, true,
                                product.match.combination.reduce});
    }
    std::byte* const to =
        result + batch.quantities()[output_quantity] * static_cast<std::int64_t>(size_of(product.result));
    store_block(BlockStore<T>{sums, columns, part.count, columns, to, product.result, row_offsets.data(),
                              column_offsets.data(), static_cast<T>(product.match.scale), product.accumulate,
                              product.match.combination.reduce});
  }
}

void combine(const Split& split, RowsOfPart part, std::byte* result, std::byte* shared) {
  switch (split.whole.match.type) {
    case DType::f32: return combine<float>(split, part, result, shared);
    case DType::f64: return combine<double>(split, part, result, shared);
    case DType::i32: return combine<std::int32_t>(split, part, result, shared);
    case DType::i64: return combine<std::int64_t>(split, part, result, shared);
    default: throw Bug("a contraction computes in a type that it refuses");
  }
}

}  // namespace

std::optional<Split> split(const Product& product, std::int64_t pieces, std::int64_t most_bytes) {
  const std::size_t index = longest(product.inner);
  const Loop& cut = product.inner[index];
  constexpr std::int64_t shortest = 64;
  const std::int64_t length = std::max(shortest, ceil_div(cut.extent, pieces));
  const std::int64_t equal = cut.extent / length;
  if (equal < 2) return std::nullopt;
  Split result{product, partial(product), std::nullopt, equal, 0};
  result.results = lay_out(result.equal);

  Loop piece = cut;
  piece.reduced = false;
  piece.extent = equal;
  for (std::int64_t& step : piece.steps) step = multiply_wrapping(step, length);
  piece.steps[output_quantity] = result.results;
  if (equal * length < cut.extent) {
    result.last = result.equal;
    Loop& rest = result.last->inner[index];
    rest.extent -= equal * length;
    for (std::size_t q = 0; q < piece.steps.size(); ++q) {
      result.last->bases[q] = add_wrapping(result.last->bases[q], multiply_wrapping(piece.steps[q], equal));
    }
    ++result.pieces;
  }
  result.equal.inner[index].extent = length;
  result.equal.batch.insert(result.equal.batch.begin(), std::move(piece));
  const auto size = static_cast<std::int64_t>(size_of(product.match.type));
  if (result.results > most_bytes / size / result.pieces) return std::nullopt;
  return result;
}

std::int64_t shared_bytes(const Split& split) {
  return split.pieces * split.results * static_cast<std::int64_t>(size_of(split.whole.match.type));
}

PreparedKernel prepare_split(Split split, PreparedKernel equal, std::optional<PreparedKernel> last) {
  struct State {
    Split split;
    Stage equal;
    std::optional<Stage> last;
  };
  PreparedKernel prepared;
  prepared.own_bytes = std::max(equal.own_bytes, last ? last->own_bytes : 0);
  prepared.shared_bytes = shared_bytes(split);
  invariant(equal.stages.size() == 1 && (!last || last->stages.size() == 1), "a product is computed in one stage");
  auto state = std::make_shared<State>(State{std::move(split), std::move(equal.stages[0]), std::nullopt});
  if (last) state->last = std::move(last->stages[0]);
  const std::int64_t equal_parts = state->equal.parts;
  const auto compute = [state, equal_parts](const Arrays& arrays, Workspace workspace, std::int64_t part) {
    Arrays to_shared = arrays;
    to_shared.result = workspace.shared;
    if (part < equal_parts) return state->equal.run(to_shared, workspace, part);
    state->last->run(to_shared, workspace, part - equal_parts);
  };
  const std::int64_t finishing = combining_parts(state->split);
  const auto finish = [state, finishing](const Arrays& arrays, Workspace workspace, std::int64_t part) {
    const RowsOfPart rows = rows_of_part(position_count(state->split.whole.rows), finishing, part);
    combine(state->split, rows, arrays.result, workspace.shared);
  };
  prepared.stages = {{equal_parts + (state->last ? state->last->parts : 0), compute}, {finishing, finish}};
  return prepared;
}

}  // namespace einrel::contraction
