#pragma once

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "kernel/nest.h"
#include "kernel/products/match.h"
#include "kernel/spec.h"
#include "machine/seconds.h"

namespace einrel::contraction {

/// An operand: which one, how it is read, and what each element is multiplied with.
struct Side {
  std::size_t operand = 0;
  Reading reading;
  double factor = 1;
};

/// Z[batch, row, column] = reduce over inner of join(A[batch, row, inner], B[batch, inner, column]), where each of the
/// four stands for any number of loops; an outer product has one inner position. By what depends on it, a loop is
///   a row     (the output and A),     a column (the output and B),
///   inner     (reduced),              or batch (the output, and both or neither of A and B).
struct Product {
  Match match;
  Side a;
  Side b;
  DType result = DType::f32;
  bool result_aligned = true;
  bool accumulate = false;
  bool large_operands = false;  ///< KernelSpec's
  bool one_stage = false;       ///< it is a piece of what another stage computes, and may not have several
  std::vector<Loop> rows;
  std::vector<Loop> columns;
  std::vector<Loop> inner;
  std::vector<Loop> batch;
  std::vector<std::int64_t> bases;  ///< of the nest
};

/// The product, or why the spec is none.
std::variant<Product, std::string> as_product(const KernelSpec& spec, const LoopNest& nest);

/// Whether sums of many values would lose bits: then at most `most_additions` are added in f32 one after another.
inline bool sums_in_f32(const Match& match) {
  return match.type == DType::f32 && match.combination.reduce == Reduce::sum;
}
inline constexpr std::int64_t most_additions = 1024;

/// Of nominal_processor. Only the order of modelled seconds decides.
constexpr double transfer_seconds(double bytes) { return einrel::transfer_seconds(nominal_processor, bytes); }

/// Z^T = B^T A^T: every join is symmetric.
Product transposed(Product product);

/// a / b, rounded up.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The least multiple of b that is not below a.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

/// As parts_worth, and an even number, so that two threads have as much to do each.
inline std::int64_t parts_for(double seconds, double part_seconds) {
  const std::int64_t enough = parts_worth(seconds, part_seconds);
  return enough > 1 ? round_up(enough, 2) : 1;
}

/// The positions of all loops together: about, where they are many.
double positions(const std::vector<Loop>& loops);

/// A loop of one position, for a role that has none.
Loop single_loop(const Product& product);

std::vector<Loop> without(std::vector<Loop> loops, std::size_t index);

/// How many positions lie side by side in a quantity: of the innermost loops, as far as each continues the one inside.
std::int64_t stretch(const std::vector<Loop>& loops, std::size_t quantity);

/// The index of the longest loop of at least one.
std::size_t longest(const std::vector<Loop>& loops);

/// Sorts loops so that the one of the smallest step in a quantity is innermost; steps of 0 go outside.
void order_by_step(std::vector<Loop>& loops, std::size_t quantity);

/// What the loops add to a quantity at the positions [begin, begin + count), the last loop running fastest.
void fill_offsets(const std::vector<Loop>& loops, std::size_t quantity, std::int64_t begin, std::int64_t count,
                  std::int64_t* offsets);

}  // namespace einrel::contraction
