#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernel/kernel.h"

/// Sums of one tensor over labels that are selected (einsum/graph/selection.h), as loops over all others.
namespace einrel::selecting {

// The first quantities of every loop. What a selected label adds to them is left out.
inline constexpr std::size_t result_quantity = 0;  ///< the offset into the result
inline constexpr std::size_t source_quantity = 1;  ///< into what is summed
inline constexpr std::size_t key_quantity = 2;     ///< the number of the key (below)

/// A whole number that is part of a position.
struct Element {
  std::size_t operand = 0;
  DType dtype = DType::i64;
  std::size_t quantity = 0;  ///< its offset
  std::int64_t coefficient = 1;
};

/// A selected label: its position is the sum of a quantity and of elements.
struct Selector {
  std::size_t quantity = 0;
  std::vector<Element> elements;
  std::int64_t extent = 0;
  std::array<std::int64_t, 3> steps{};    ///< what each position adds to the first quantities
  std::vector<std::int64_t> guard_steps;  ///< and to each guard
};

/// What is summed: an operand, or one number.
struct Source {
  std::optional<std::size_t> operand;
  double number = 0;
  DType dtype = DType::f32;
};

struct SelectNest {
  std::vector<std::int64_t> bases;  ///< every quantity where all loops are at 0
  std::vector<Selector> selectors;
  std::vector<Guard> guards;  ///< where one fails the source counts as 0
  Source source;
  /// Along the result and the source; no selector and no guard depends on it. Of extent 1 where there is none.
  Loop row;
  std::vector<Loop> batches;    ///< other labels of the result that no selector depends on
  std::vector<Loop> positions;  ///< all other labels: they decide which elements meet
  /// Labels of the result that positions decide, as loops over it: the key is their position in row-major order.
  std::vector<Loop> keys;
  /// Every element of the result is one of the source, or nothing: there is nothing to add up, and a key is a position.
  bool picks = false;
};

/// Why there is none: "no label is selected".
std::variant<SelectNest, std::string> select_nest(const KernelSpec& spec);

/// The part of positions [begin, end) that one step of `walk` is about: for each, offsets from the arrays' first
/// elements; below 0 for a key where nothing is selected.
struct Run {
  static constexpr std::int64_t longest = 256;
  std::int64_t count = 0;
  std::array<std::int64_t, longest> result{};
  std::array<std::int64_t, longest> source{};
  std::array<std::int64_t, longest> key{};
};

/// Calls `visit` with runs of positions [begin, end), in order.
template <class Visit>
void walk(const SelectNest& nest, const std::byte* const* operands, std::int64_t begin, std::int64_t end, Visit visit);

/// Finds the offsets of the positions that follow `quantities`, along the innermost loop.
void find_offsets(const SelectNest& nest, const std::byte* const* operands, const std::int64_t* quantities,
                  const Loop& inner, Run& run);

template <class Visit>
void walk(const SelectNest& nest, const std::byte* const* operands, std::int64_t begin, std::int64_t end, Visit visit) {
  const Loop none{1, false, std::vector<std::int64_t>(nest.bases.size(), 0)};
  const Loop& inner = nest.positions.empty() ? none : nest.positions.back();
  std::vector<Loop> outer = nest.positions;
  if (!outer.empty()) outer.pop_back();
  Odometer odometer(std::move(outer), nest.bases);
  odometer.seek(begin / inner.extent);
  Run run;
  std::vector<std::int64_t> quantities;
  std::int64_t at = begin % inner.extent;
  for (std::int64_t position = begin; position < end; position += run.count) {
    run.count = std::min({Run::longest, inner.extent - at, end - position});
    quantities = odometer.quantities();
    for (std::size_t q = 0; q < quantities.size(); ++q)
      quantities[q] = add_wrapping(quantities[q], multiply_wrapping(inner.steps[q], at));
    find_offsets(nest, operands, quantities.data(), inner, run);
    visit(run);
    at += run.count;
    if (at == inner.extent) {
      at = 0;
      odometer.advance();
    }
  }
}

}  // namespace einrel::selecting
