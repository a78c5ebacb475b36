#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "kernel/cancel.h"
#include "kernel/elementwise/block_ops.h"
#include "kernel/elementwise/streaming.h"
#include "kernel/kernels.h"
#include "kernel/movement/select_loops.h"
#include "kernel/movement/select_nest.h"
#include "machine/seconds.h"
#include "tensor/convert.h"

namespace einrel {
namespace selecting {
namespace {

/// Of a scatter, positions that are sorted at a time, and keys that they are sorted by: what the shared workspace
/// holds.
constexpr std::int64_t most_sorted = std::int64_t{1} << 19;
constexpr std::int64_t most_keys = std::int64_t{1} << 18;
/// Elements of a row that are added up at a time: they stay in the first-level cache.
constexpr std::int64_t row_piece = 1024;

constexpr double seconds_per_position = 4e-9;  // to find what is selected, once

double bytes_of(const KernelSpec& spec) { return static_cast<double>(size_of(spec.result.dtype)); }

/// Modelled for elements that are read, and written or added to.
double seconds_of_rows(const KernelSpec& spec, double rows, double length) {
  constexpr double seconds_per_row = 5e-9;
  return rows * (seconds_per_row + copied_byte_seconds * length * bytes_of(spec));
}

std::int64_t parts_for(double seconds, std::int64_t units) {
  return std::min(parts_worth(seconds, looped_part_seconds), units);
}

/// The number that stands for a source without an operand, as an element of the result.
std::vector<std::byte> stored_number(const KernelSpec& spec, const Source& source) {
  std::vector<std::byte> bytes(size_of(spec.result.dtype));
  with_stored_type(spec.result.dtype, [&]<class Stored>() {
    const auto stored = narrow<Stored>(source.number);
    std::memcpy(bytes.data(), &stored, sizeof(stored));
  });
  return bytes;
}

/// A nest, and what it is computed with.
struct Selecting {
  SelectNest nest;
  DType dtype = DType::f32;
  std::int64_t size = 4;         ///< of an element
  std::int64_t source_size = 4;  ///< and of one of the source
  bool accumulates = false;
  bool streams = false;
  std::int64_t parts = 1;
  std::vector<std::byte> number;

  const std::byte* source(const Arrays& arrays) const {
    return nest.source.operand ? arrays.operands[*nest.source.operand] : number.data();
  }
  bool widens() const { return nest.source.dtype != dtype; }
  std::int64_t row_step() const { return nest.row.steps[source_quantity]; }
  bool has_contiguous_rows() const { return nest.row.extent == 1 || row_step() == 1; }
};

/// Calls `function` with the types of elements of the result and of the source.
template <class Function>
void with_types(const Selecting& it, const Function& function) {
  with_stored_type(it.dtype, [&]<class Stored>() {
    if constexpr (std::is_same_v<Stored, float>) {
      if (it.nest.source.dtype == DType::bf16) return function.template operator()<float, BFloat16>();
      if (it.nest.source.dtype == DType::f16) return function.template operator()<float, Float16>();
    }
    function.template operator()<Stored, Stored>();
  });
}

// --- gathers: every element of the result is one of the source, or 0 ------------------------------

template <class Stored, class From>
void put_row(const Selecting& it, const std::byte* from, std::byte* to) {
  const auto step = it.row_step() * static_cast<std::int64_t>(sizeof(From));
  for (std::int64_t i = 0; i < it.nest.row.extent; ++i, from += step, to += sizeof(Stored)) {
    From element;
    std::memcpy(&element, from, sizeof(From));
    Stored value;
    if constexpr (std::is_same_v<Stored, From> && !std::is_same_v<Stored, Bool8>) {
      value = element;
    } else {
      value = narrow<Stored>(widen(element));
    }
    if (it.accumulates) {
      Stored before;
      std::memcpy(&before, to, sizeof(Stored));
      value = narrow<Stored>(widen(before) + widen(value));
    }
    std::memcpy(to, &value, sizeof(Stored));
  }
}

/// Asks for a row that comes soon.
void look_ahead(const Selecting& it, const std::byte* row) {
  constexpr std::int64_t most_lines = 8;
  const std::int64_t bytes = std::min(it.nest.row.extent * it.source_size, most_lines * nominal_processor.line_bytes);
  for (std::int64_t line = 0; line < bytes; line += nominal_processor.line_bytes) __builtin_prefetch(row + line);
}
constexpr std::int64_t rows_ahead = 8;

/// Rows that are copied as they are.
void copy_rows(const Selecting& it, const Run& run, const std::byte* source, std::byte* result) {
  const auto bytes = static_cast<std::size_t>(it.nest.row.extent * it.size);
  for (std::int64_t i = 0; i < run.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    std::byte* const to = result + run.result[at] * it.size;
    const auto ahead = static_cast<std::size_t>(std::min(i + rows_ahead, run.count - 1));
    look_ahead(it, source + run.source[ahead] * it.size);
    if (run.key[at] < 0) {
      std::memset(to, 0, bytes);
    } else if (it.streams) {
      stream_copy(to, source + run.source[at] * it.size, bytes);
    } else {
      std::memcpy(to, source + run.source[at] * it.size, bytes);
    }
  }
}

/// Rows of one element.
template <class Bits>
void copy_elements(const Run& run, const std::byte* source, std::byte* result) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(Bits));
  for (std::size_t i = 0; i < static_cast<std::size_t>(run.count); ++i) {
    Bits value{};
    if (run.key[i] >= 0) std::memcpy(&value, source + run.source[i] * size, sizeof(Bits));
    std::memcpy(result + run.result[i] * size, &value, sizeof(Bits));
  }
}

void copy(const Selecting& it, const Run& run, const std::byte* source, std::byte* result) {
  if (it.nest.row.extent > 1) return copy_rows(it, run, source, result);
  switch (it.size) {
    case 2: return copy_elements<std::uint16_t>(run, source, result);
    case 4: return copy_elements<std::uint32_t>(run, source, result);
    default: return copy_elements<std::uint64_t>(run, source, result);
  }
}

template <class Stored, class From>
void put_rows(const Selecting& it, const Run& run, const std::byte* source, std::byte* result) {
  const auto bytes = static_cast<std::size_t>(it.nest.row.extent * it.size);
  for (std::int64_t i = 0; i < run.count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    std::byte* const to = result + run.result[at] * it.size;
    if (run.key[at] >= 0) {
      put_row<Stored, From>(it, source + run.source[at] * it.source_size, to);
    } else if (!it.accumulates) {
      std::memset(to, 0, bytes);
    }
  }
}

/// A part of batches and positions.
void gather_part(const Selecting& it, const Arrays& arrays, std::int64_t part) {
  const std::int64_t positions = position_count(it.nest.positions);
  const std::int64_t units = position_count(it.nest.batches) * positions;
  const std::int64_t end = units * (part + 1) / it.parts;
  const bool copies = it.has_contiguous_rows() && !it.accumulates && !it.widens() && it.dtype != DType::boolean;
  Odometer batch(it.nest.batches, std::vector<std::int64_t>(it.nest.bases.size(), 0));
  std::int64_t unit = units * part / it.parts;
  batch.seek(unit / positions);
  while (unit < end) {
    const std::byte* const source = it.source(arrays) + batch.quantities()[source_quantity] * it.source_size;
    std::byte* const result = arrays.result + batch.quantities()[result_quantity] * it.size;
    const std::int64_t begin = unit % positions;
    const std::int64_t count = std::min(positions - begin, end - unit);
    walk(it.nest, arrays.operands, begin, begin + count, [&](const Run& run) {
      throw_if_cancelled();
      if (copies) return copy(it, run, source, result);
      with_types(it, [&]<class Stored, class From>() { put_rows<Stored, From>(it, run, source, result); });
    });
    unit += count;
    batch.advance();
  }
  if (it.streams) finish_streaming();
}

// --- scatters: what comes together at a key is added up ---------------------------------------------

/// What of positions and keys is sorted and added up at a time.
struct Piece {
  std::int64_t first_position = 0;
  std::int64_t end_position = 0;
  std::int64_t first_key = 0;
  std::int64_t end_key = 0;
  std::int64_t keys() const { return end_key - first_key; }
};

/// In the shared workspace: for each key of a piece where its sources begin (and behind the last one where they end),
/// then the offsets of all sources, those of a key in the order of their positions.
struct Sorted {
  std::int64_t* begins;
  std::int64_t* sources;
  Sorted(std::byte* workspace, const Piece& piece)
      : begins(reinterpret_cast<std::int64_t*>(workspace)), sources(begins + piece.keys() + 1) {}
};

void sort_piece(const Selecting& it, const Piece& piece, const Arrays& arrays, std::byte* workspace) {
  const Sorted sorted(workspace, piece);
  const auto for_each_selected = [&](auto visit) {
    walk(it.nest, arrays.operands, piece.first_position, piece.end_position, [&](const Run& run) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(run.count); ++i) {
        const std::int64_t key = run.key[i] - piece.first_key;
        if (run.key[i] >= 0 && key >= 0 && key < piece.keys()) visit(key, run.source[i]);
      }
    });
  };
  std::fill_n(sorted.begins, piece.keys() + 1, 0);
  for_each_selected([&](std::int64_t key, std::int64_t) { ++sorted.begins[key + 1]; });
  for (std::int64_t key = 0; key < piece.keys(); ++key) sorted.begins[key + 1] += sorted.begins[key];
  // Each begin moves on to the next key's while sources are put down; then all move back.
  for_each_selected([&](std::int64_t key, std::int64_t source) { sorted.sources[sorted.begins[key]++] = source; });
  for (std::int64_t key = piece.keys(); key > 0; --key) sorted.begins[key] = sorted.begins[key - 1];
  sorted.begins[0] = 0;
}

template <class Stored>
constexpr bool is_plain_float = std::is_same_v<Stored, float> || std::is_same_v<Stored, double>;

/// sums[i] += from[i * step]
template <class Stored, class Sum>
void add_elements(const std::byte* from, std::int64_t step, std::int64_t count, Sum* sums) {
  if constexpr (is_plain_float<Stored>) {
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(from) % sizeof(Stored) == 0;
    if (step == 1 && is_aligned && count > 1) {
      return std::get<SelectLoops::AddRow<Stored>>(select_loops().add_row)(reinterpret_cast<const Stored*>(from), count,
                                                                           sums);
    }
  }
  for (std::int64_t i = 0; i < count; ++i, from += step * static_cast<std::int64_t>(sizeof(Stored))) {
    Stored value;
    std::memcpy(&value, from, sizeof(Stored));
    if constexpr (std::is_integral_v<Sum>) {
      sums[i] = add_wrapping(sums[i], static_cast<std::int64_t>(widen(value)));
    } else {
      sums[i] += static_cast<double>(widen(value));
    }
  }
}

template <class Stored, class Sum>
void store_elements(const Sum* sums, std::int64_t count, std::byte* to) {
  if constexpr (std::is_same_v<Stored, float>) {
    if (reinterpret_cast<std::uintptr_t>(to) % sizeof(float) == 0)
      return convert_block(DType::f32, sums, reinterpret_cast<float*>(to), static_cast<std::size_t>(count));
  }
  for (std::int64_t i = 0; i < count; ++i, to += sizeof(Stored)) {
    const auto value = narrow<Stored>(sums[i]);
    std::memcpy(to, &value, sizeof(Stored));
  }
}

/// As add_up, of rows of one element.
template <class Stored, class From, class Sum>
void add_up_element(std::span<const std::int64_t> sources, const std::byte* source, bool goes_on, std::byte* to) {
  constexpr auto size = static_cast<std::int64_t>(sizeof(From));
  Sum sum = 0;
  if (goes_on) add_elements<Stored>(to, 0, 1, &sum);
  for (const std::int64_t offset : sources) add_elements<From>(source + offset * size, 0, 1, &sum);
  const auto value = narrow<Stored>(sum);
  std::memcpy(to, &value, sizeof(Stored));
}

/// The row of a key: the sum of the rows at `sources`, and of what is there before if `goes_on`.
template <class Stored, class From>
void add_up(const Selecting& it, std::span<const std::int64_t> sources, const std::byte* source, bool goes_on,
            std::byte* to, std::byte* workspace) {
  using Sum = std::conditional_t<std::is_integral_v<Stored>, std::int64_t, double>;
  constexpr auto size = static_cast<std::int64_t>(sizeof(Stored));
  constexpr auto source_size = static_cast<std::int64_t>(sizeof(From));
  auto* const sums = reinterpret_cast<Sum*>(workspace);
  const std::int64_t length = it.nest.row.extent;
  if (length == 1) return add_up_element<Stored, From, Sum>(sources, source, goes_on, to);
  for (std::int64_t begin = 0; begin < length; begin += row_piece) {
    const std::int64_t count = std::min(row_piece, length - begin);
    std::fill_n(sums, count, Sum{0});
    if (goes_on) add_elements<Stored>(to + begin * size, 1, count, sums);
    for (const std::int64_t offset : sources)
      add_elements<From>(source + (offset + begin * it.row_step()) * source_size, it.row_step(), count, sums);
    store_elements<Stored>(sums, count, to + begin * size);
  }
}

/// Adds up what was sorted, one key after the other.
template <class Stored, class From>
class KeyAdder {
 public:
  KeyAdder(const Selecting& it, const Piece& piece, const Arrays& arrays, Workspace workspace)
      : it_(it),
        sorted_(workspace.shared, piece),
        workspace_(workspace.own),
        source_(it.source(arrays)),
        result_(arrays.result),
        first_key_(piece.first_key),
        end_of_sources_(sorted_.begins[piece.keys()]),
        goes_on_(it.accumulates || piece.first_position > 0) {}

  /// Keys [begin, end) of a piece, for the batch that these offsets lead to.
  void run(std::int64_t begin, std::int64_t end, std::int64_t source_offset, std::int64_t result_offset) {
    const Loop none{1, false, {0}};
    std::vector<Loop> outer = it_.nest.keys;
    const Loop inner = outer.empty() ? none : outer.back();
    if (!outer.empty()) outer.pop_back();
    Odometer place(std::move(outer), {0});
    place.seek((first_key_ + begin) / inner.extent);
    std::int64_t at = (first_key_ + begin) % inner.extent;
    for (std::int64_t key = begin; key < end; ++key) {
      throw_if_cancelled();
      const std::int64_t offset = result_offset + place.quantities().front() + at * inner.steps.front();
      add(key, source_ + source_offset * it_.source_size, result_ + offset * it_.size);
      if (++at < inner.extent) continue;
      at = 0;
      place.advance();
    }
  }

 private:
  void add(std::int64_t key, const std::byte* source, std::byte* to) {
    const std::int64_t first = sorted_.begins[key];
    const std::int64_t last = sorted_.begins[key + 1];
    const auto bytes = static_cast<std::size_t>(it_.nest.row.extent * it_.size);
    if (first == last) {
      if (!goes_on_) std::memset(to, 0, bytes);
      return;
    }
    if (it_.nest.row.extent > 1) {
      for (std::int64_t ahead = first + rows_ahead; ahead < std::min(last + rows_ahead, end_of_sources_); ++ahead)
        look_ahead(it_, source + sorted_.sources[ahead] * it_.source_size);
    }
    if (last == first + 1 && !goes_on_ && !it_.widens() && it_.has_contiguous_rows()) {
      std::memcpy(to, source + sorted_.sources[first] * it_.size, bytes);
    } else {
      add_up<Stored, From>(it_, {sorted_.sources + first, sorted_.sources + last}, source, goes_on_, to, workspace_);
    }
  }

  const Selecting& it_;
  Sorted sorted_;
  std::byte* workspace_;
  const std::byte* source_;
  std::byte* result_;
  std::int64_t first_key_;
  std::int64_t end_of_sources_;
  bool goes_on_;
};

/// Units [begin, end) of keys of batches.
template <class Stored, class From>
void add_up_units(const Selecting& it, const Piece& piece, const Arrays& arrays, Workspace workspace,
                  std::int64_t begin, std::int64_t end) {
  KeyAdder<Stored, From> adder(it, piece, arrays, workspace);
  Odometer batch(it.nest.batches, std::vector<std::int64_t>(it.nest.bases.size(), 0));
  batch.seek(begin / piece.keys());
  for (std::int64_t unit = begin; unit < end; batch.advance()) {
    const std::int64_t first = unit % piece.keys();
    const std::int64_t count = std::min(piece.keys() - first, end - unit);
    adder.run(first, first + count, batch.quantities()[source_quantity], batch.quantities()[result_quantity]);
    unit += count;
  }
}

void scatter_part(const Selecting& it, const Piece& piece, const Arrays& arrays, Workspace workspace,
                  std::int64_t part) {
  const std::int64_t units = position_count(it.nest.batches) * piece.keys();
  const std::int64_t parts = std::min(it.parts, units);
  with_types(it, [&]<class Stored, class From>() {
    constexpr bool is_narrow = std::is_same_v<Stored, BFloat16> || std::is_same_v<Stored, Float16>;
    if constexpr (!std::is_same_v<Stored, Bool8> && !is_narrow)  // those are not added up in their type
      add_up_units<Stored, From>(it, piece, arrays, workspace, units * part / parts, units * (part + 1) / parts);
  });
}

std::vector<Piece> pieces_of(const SelectNest& nest) {
  const std::int64_t positions = position_count(nest.positions);
  const std::int64_t keys = position_count(nest.keys);
  std::vector<Piece> pieces;
  for (std::int64_t position = 0; position < positions; position += most_sorted) {
    for (std::int64_t key = 0; key < keys; key += most_keys) {
      pieces.push_back({position, std::min(position + most_sorted, positions), key, std::min(key + most_keys, keys)});
    }
  }
  return pieces;
}

std::int64_t quotient_upwards(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double pieces_count(const SelectNest& nest) {
  const std::int64_t of_positions = quotient_upwards(position_count(nest.positions), most_sorted);
  const std::int64_t of_keys = quotient_upwards(position_count(nest.keys), most_keys);
  return static_cast<double>(of_positions) * static_cast<double>(of_keys);
}

PreparedKernel prepared_gather(const std::shared_ptr<const Selecting>& it) {
  PreparedKernel kernel;
  kernel.stages.push_back(
      {it->parts, [it](const Arrays& arrays, Workspace, std::int64_t part) { gather_part(*it, arrays, part); }});
  return kernel;
}

PreparedKernel prepared_scatter(const std::shared_ptr<const Selecting>& it, const Offer& offer) {
  PreparedKernel kernel{offer.own_bytes, offer.shared_bytes, {}};
  for (const Piece& piece : pieces_of(it->nest)) {
    kernel.stages.push_back({1, [it, piece](const Arrays& arrays, Workspace workspace, std::int64_t) {
                               sort_piece(*it, piece, arrays, workspace.shared);
                             }});
    const std::int64_t units = position_count(it->nest.batches) * piece.keys();
    kernel.stages.push_back(
        {std::min(it->parts, units), [it, piece](const Arrays& arrays, Workspace workspace, std::int64_t part) {
           scatter_part(*it, piece, arrays, workspace, part);
         }});
  }
  return kernel;
}

Offer offer_gather(const KernelSpec& spec, Selecting it) {
  const std::int64_t rows = position_count(it.nest.positions) * position_count(it.nest.batches);
  const auto length = static_cast<double>(it.nest.row.extent);
  Offer offer;
  offer.seconds =
      seconds_of_rows(spec, static_cast<double>(rows), length) + seconds_per_position * static_cast<double>(rows);
  offer.path = fmt::format("gathers rows of {} elements", it.nest.row.extent);
  it.parts = parts_for(offer.seconds, rows);
  const std::int64_t row_bytes = it.nest.row.extent * it.size;
  it.streams = spec.large_result && row_bytes % nominal_processor.line_bytes == 0;
  offer.prepare = [it = std::make_shared<const Selecting>(std::move(it))] { return prepared_gather(it); };
  return offer;
}

Offer offer_scatter(const KernelSpec& spec, Selecting it) {
  const std::int64_t positions = position_count(it.nest.positions);
  const std::int64_t keys = position_count(it.nest.keys);
  const auto batches = static_cast<double>(position_count(it.nest.batches));
  const auto length = static_cast<double>(it.nest.row.extent);
  const double rows = batches * static_cast<double>(positions + keys);
  Offer offer;
  const std::int64_t passes = 2 * quotient_upwards(keys, most_keys);
  offer.seconds = seconds_of_rows(spec, rows, length) +
                  seconds_per_position * static_cast<double>(positions) * static_cast<double>(passes);
  offer.path = fmt::format("adds up rows of {} elements, sorted by {} positions", it.nest.row.extent, keys);
  const auto word = static_cast<std::int64_t>(sizeof(std::int64_t));
  offer.own_bytes = row_piece * word;
  offer.shared_bytes = (std::min(keys, most_keys) + 1 + std::min(positions, most_sorted)) * word;
  it.parts = parts_for(offer.seconds, std::min(keys, most_keys) * position_count(it.nest.batches));
  auto shared = std::make_shared<const Selecting>(std::move(it));
  const Offer sizes{0, "", offer.own_bytes, offer.shared_bytes, {}};
  offer.prepare = [shared, sizes] { return prepared_scatter(shared, sizes); };
  return offer;
}

std::variant<Offer, Refusal> offer(const KernelSpec& spec, const LoopNest&) {
  std::variant<SelectNest, std::string> found = select_nest(spec);
  if (auto* const reason = std::get_if<std::string>(&found)) return Refusal{std::move(*reason)};
  Selecting it;
  it.nest = std::move(std::get<SelectNest>(found));
  it.dtype = spec.result.dtype;
  it.size = static_cast<std::int64_t>(size_of(spec.result.dtype));
  it.source_size = static_cast<std::int64_t>(size_of(it.nest.source.dtype));
  it.accumulates = spec.accumulate;
  if (!it.nest.source.operand) it.number = stored_number(spec, it.nest.source);
  if (it.accumulates && it.dtype == DType::boolean) return Refusal{"it adds up bools"};
  if (it.nest.picks) return offer_gather(spec, std::move(it));
  constexpr double most_pieces = 4096;
  if (pieces_count(it.nest) > most_pieces) return Refusal{"too much is to be sorted"};
  return offer_scatter(spec, std::move(it));
}

}  // namespace
}  // namespace selecting

KernelInfo select_kernel() {
  return {"select", "elements that are picked or added up where comparisons of labels say: gathers and scatters",
          "own loops", selecting::offer};
}

}  // namespace einrel
