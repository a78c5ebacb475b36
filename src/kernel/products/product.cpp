#include "kernel/products/product.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace einrel::contraction {
namespace {

bool depends_on(const Reading& reading, const Loop& loop) {
  return loop.steps[reading.quantity] != 0 ||
         std::any_of(reading.guards.begin(), reading.guards.end(),
                     [&](const Guard& guard) { return loop.steps[guard.quantity] != 0; });
}

bool can_store(DType type, DType result) { return result == type || (type == DType::f32 && is_narrow(result)); }

}  // namespace

std::variant<Product, std::string> as_product(const KernelSpec& spec, const LoopNest& nest) {
  const std::variant<Match, std::string> matched = match(spec.einsum, spec.scalars);
  if (const auto* const reason = std::get_if<std::string>(&matched)) return *reason;
  Product product;
  product.match = std::get<Match>(matched);
  const Match& found = product.match;
  product.a = {found.operands[0], nest.readings[found.operands[0]], found.factors[0]};
  product.b = {found.operands[1], nest.readings[found.operands[1]], found.factors[1]};
  product.result = spec.result.dtype;
  product.result_aligned = spec.result.aligned;
  product.accumulate = spec.accumulate;
  product.large_operands = spec.large_operands;
  product.bases = nest.bases;
  if (!can_store(product.match.type, product.result)) return "its result is stored in another type";
  for (const Loop& loop : nest.loops) {
    const bool in_a = depends_on(product.a.reading, loop);
    const bool in_b = depends_on(product.b.reading, loop);
    std::vector<Loop>& role = loop.reduced    ? product.inner
                              : in_a && !in_b ? product.rows
                              : in_b && !in_a ? product.columns
                                              : product.batch;
    role.push_back(loop);
  }
  if (!found.reduces) {
    if (product.rows.empty() || product.columns.empty())
      return "it reduces nothing, and is no outer product of rows and columns";
    product.inner.push_back(single_loop(product));
  }
  if (product.inner.empty()) return "it reduces nothing";
  return product;
}

Product transposed(Product product) {
  std::swap(product.a, product.b);
  std::swap(product.rows, product.columns);
  return product;
}

double positions(const std::vector<Loop>& loops) {
  double count = 1;
  for (const Loop& loop : loops) count *= static_cast<double>(loop.extent);
  return count;
}

Loop single_loop(const Product& product) { return {1, false, std::vector<std::int64_t>(product.bases.size(), 0)}; }

std::vector<Loop> without(std::vector<Loop> loops, std::size_t index) {
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(index));
  return loops;
}

std::int64_t stretch(const std::vector<Loop>& loops, std::size_t quantity) {
  std::int64_t length = 1;
  for (auto loop = loops.rbegin(); loop != loops.rend() && loop->steps[quantity] == length; ++loop) {
    length *= loop->extent;
  }
  return length;
}

std::size_t longest(const std::vector<Loop>& loops) {
  const auto found =
      std::max_element(loops.begin(), loops.end(), [](const Loop& x, const Loop& y) { return x.extent < y.extent; });
  return static_cast<std::size_t>(found - loops.begin());
}

void order_by_step(std::vector<Loop>& loops, std::size_t quantity) {
  const auto distance = [&](const Loop& loop) {
    const std::int64_t step = loop.steps[quantity];
    return step == 0 ? std::numeric_limits<double>::infinity() : std::abs(static_cast<double>(step));
  };
  std::stable_sort(loops.begin(), loops.end(), [&](const Loop& a, const Loop& b) { return distance(a) > distance(b); });
}

void fill_offsets(const std::vector<Loop>& loops, std::size_t quantity, std::int64_t begin, std::int64_t count,
                  std::int64_t* offsets) {
  if (loops.empty()) {
    std::fill_n(offsets, count, 0);
    return;
  }
  const std::int64_t extent = loops.back().extent;
  const std::int64_t step = loops.back().steps[quantity];
  std::int64_t inner = begin % extent;
  std::int64_t outer = begin / extent;
  for (std::int64_t filled = 0; filled < count; ++outer, inner = 0) {
    std::int64_t offset = multiply_wrapping(step, inner);
    std::int64_t position = outer;
    for (std::size_t l = loops.size() - 1; l-- > 0;) {
      offset = add_wrapping(offset, multiply_wrapping(loops[l].steps[quantity], position % loops[l].extent));
      position /= loops[l].extent;
    }
    const std::int64_t length = std::min(extent - inner, count - filled);
    for (std::int64_t i = 0; i < length; ++i, offset = add_wrapping(offset, step)) offsets[filled + i] = offset;
    filled += length;
  }
}

}  // namespace einrel::contraction
