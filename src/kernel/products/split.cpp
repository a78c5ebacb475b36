#include "kernel/products/split.h"

#include <algorithm>
#include <array>
#include <memory>
#include <type_traits>

#include "base/error.h"
#include "kernel/products/store.h"

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

/// Adds `count` elements of every piece to those of the first one, in double: f32 would lose what there are so many
/// pieces for.
void add_many_pieces(const Split& split, float* values, std::int64_t count) {
  constexpr std::int64_t together = 512;
  std::array<double, together> sums{};
  for (std::int64_t begin = 0; begin < count; begin += together) {
    const std::int64_t end = std::min(begin + together, count);
    sums.fill(0);
    for (std::int64_t piece = 0; piece < split.pieces; ++piece) {
      const float* const from = values + piece * split.results;
      for (std::int64_t i = begin; i < end; ++i)
        sums[static_cast<std::size_t>(i - begin)] += static_cast<double>(from[i]);
    }
    for (std::int64_t i = begin; i < end; ++i)
      values[i] = static_cast<float>(sums[static_cast<std::size_t>(i - begin)]);
  }
}

/// Reduces `count` elements of every piece into those of the first one.
template <class T>
void reduce_pieces(const Split& split, T* values, std::int64_t count) {
  constexpr std::int64_t many = 32;
  if constexpr (std::is_same_v<T, float>) {
    if (split.pieces > many && split.whole.match.combination.reduce == Reduce::sum)
      return add_many_pieces(split, values, count);
  }
  const std::vector<std::int64_t> one_row{0};
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
  for (std::int64_t piece = 1; piece < split.pieces; ++piece) {
    store_block(BlockStore<T>{values + piece * split.results, 0, 1, count, reinterpret_cast<std::byte*>(values),
                              split.whole.match.type, one_row.data(), all.data(), 1, true,
                              split.whole.match.combination.reduce});
  }
}

/// Reduces some rows of the partial results into those of the first one and stores them.
template <class T>
void combine(const Split& split, RowsOfPart part, std::byte* result, std::byte* shared) {
  T* const values = reinterpret_cast<T*>(shared);
  const Product& product = split.whole;
  const std::int64_t rows = position_count(product.rows);
  const std::int64_t columns = position_count(product.columns);
  const std::int64_t count = part.count * columns;
  std::vector<std::int64_t> row_offsets(static_cast<std::size_t>(part.count));
  std::vector<std::int64_t> column_offsets(static_cast<std::size_t>(columns));
  fill_offsets(product.rows, output_quantity, part.begin, part.count, row_offsets.data());
  fill_offsets(product.columns, output_quantity, 0, columns, column_offsets.data());
  Odometer batch(product.batch, product.bases);
  for (std::int64_t i = 0; i < batch.count(); ++i, batch.advance()) {
    T* const sums = values + (i * rows + part.begin) * columns;
    reduce_pieces(split, sums, count);
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

/// The reduced loops of a product, cut.
struct CutLoops {
  std::vector<Loop> inner;  ///< of which one is cut
  std::vector<Loop> whole;  ///< of which every position is in pieces of its own
  std::size_t index = 0;    ///< of the loop that is cut: into so many equal pieces of a length, and what rests
  std::int64_t equal = 1;
  std::int64_t length = 1;
  std::int64_t rest = 0;

  std::int64_t of_loop() const { return equal + (rest > 0 ? 1 : 0); }
  std::int64_t pieces() const { return whole.empty() && equal < 2 ? 1 : position_count(whole) * of_loop(); }
};

/// The longest loop, and those before it that have no more positions than there may be pieces.
CutLoops cut_loops(std::vector<Loop> inner, const CutLimits& cut) {
  CutLoops loops;
  loops.inner = std::move(inner);
  std::int64_t pieces = cut.pieces;
  loops.index = longest(loops.inner);
  while (cut.shortest == 1 && loops.inner.size() > 1 && loops.inner[loops.index].extent <= pieces) {
    loops.whole.push_back(loops.inner[loops.index]);
    pieces /= loops.whole.back().extent;
    loops.inner = without(std::move(loops.inner), loops.index);
    loops.index = longest(loops.inner);
  }
  const std::int64_t extent = loops.inner[loops.index].extent;
  loops.length = std::max(std::min(cut.shortest, extent), ceil_div(extent, pieces));
  loops.equal = extent / loops.length;
  loops.rest = extent % loops.length;
  return loops;
}

}  // namespace

std::optional<Split> split(const Product& product, const CutLimits& cut) {
  Split result{product, partial(product), std::nullopt, 0, 0};
  result.results = lay_out(result.equal);
  const CutLoops loops = cut_loops(result.equal.inner, cut);
  if (loops.pieces() < 2) return std::nullopt;
  const auto size = static_cast<std::int64_t>(size_of(product.match.type));
  if (result.results > cut.most_bytes / size / loops.pieces()) return std::nullopt;
  result.pieces = loops.pieces();

  Loop piece = loops.inner[loops.index];
  piece.reduced = false;
  piece.extent = loops.equal;
  for (std::int64_t& step : piece.steps) step = multiply_wrapping(step, loops.length);
  piece.steps[output_quantity] = result.results;
  result.equal.inner = loops.inner;
  std::int64_t step = result.results * loops.of_loop();
  for (auto loop = loops.whole.rbegin(); loop != loops.whole.rend(); ++loop) {
    result.equal.batch.insert(result.equal.batch.begin(), *loop);
    result.equal.batch.front().reduced = false;
    result.equal.batch.front().steps[output_quantity] = step;
    step *= loop->extent;
  }
  if (loops.rest > 0) {
    result.last = result.equal;
    result.last->inner[loops.index].extent = loops.rest;
    for (std::size_t q = 0; q < piece.steps.size(); ++q) {
      result.last->bases[q] = add_wrapping(result.last->bases[q], multiply_wrapping(piece.steps[q], loops.equal));
    }
  }
  result.equal.inner[loops.index].extent = loops.length;
  if (loops.equal > 1) {
    const auto behind = static_cast<std::ptrdiff_t>(loops.whole.size());
    result.equal.batch.insert(result.equal.batch.begin() + behind, std::move(piece));
  }
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
