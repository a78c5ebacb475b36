#include "sql/functions/gather.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "sql/functions/array_bytes.h"
#include "tensor/convert.h"

namespace einrel::sql {
namespace {

template <class Computed>
void store(DType dtype, Computed value, std::byte* to) {
  with_stored_type(dtype, [&]<class Stored>() {
    const Stored stored = narrow<Stored>(value);
    std::memcpy(to, &stored, sizeof(stored));
  });
}

/// Why a number cannot be an element of that type; "" if it can.
std::string misfit(DType dtype, const Cell& cell) {
  if (is_float(dtype)) return "";
  const auto* const whole = std::get_if<std::int64_t>(&cell);
  if (whole == nullptr) return fmt::format("is no whole number, as {} wants", name_of(dtype));
  if (dtype == DType::boolean && *whole != 0 && *whole != 1) return "is neither 0 nor 1, as bool wants";
  const bool fits =
      *whole >= std::numeric_limits<std::int32_t>::min() && *whole <= std::numeric_limits<std::int32_t>::max();
  return dtype == DType::i32 && !fits ? "is too large for i32" : "";
}

/// Where the type of a column is wrong, but its keys are not: "; a query makes it one: CAST(i AS bigint)".
std::string key_remedy(const std::string& column, const Cell& key) {
  const auto* const real = std::get_if<double>(&key);
  if (real == nullptr || !std::isfinite(*real) || *real != std::floor(*real)) return "";
  return fmt::format("; a query makes it one: CAST({} AS bigint)", printable(column));
}

std::size_t part_of(Extent extent, const DimensionCut& cut, std::int64_t element) {
  std::int64_t low = 0;
  std::int64_t high = cut.parts;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (chunk_begin(extent, cut, middle) <= element ? low : high) = middle;
  }
  return static_cast<std::size_t>(low);
}

/// Of a cell that is one.
Number number_in(const Cell& cell) {
  if (const auto* const whole = std::get_if<std::int64_t>(&cell)) return *whole;
  return std::get<double>(cell);
}

/// The key of a row whose cells can be an element.
Key checked_key(const Gathered& gathered, const std::vector<Cell>& cells, const std::vector<std::string>& columns) {
  const std::size_t rank = gathered.bound.size();
  Key at;
  for (std::size_t d = 0; d < rank; ++d) {
    const auto* const key = std::get_if<std::int64_t>(&cells[d]);
    if (key == nullptr)
      throw UserError(fmt::format("{}: column '{}' is {}, no whole number, in the row of {}{}", gathered.table,
                                  printable(columns[d]), shown(cells[d]), raw_key(cells, columns),
                                  key_remedy(columns[d], cells[d])));
    if (const std::int64_t extent = gathered.bound[d].value(); *key < 0 || *key >= extent)
      throw UserError(fmt::format("{}: column '{}' is {} in the row of {}, but its label {}", gathered.table,
                                  printable(columns[d]), *key, raw_key(cells, columns),
                                  extent == 0 ? "has the extent 0" : fmt::format("runs from 0 to {}", extent - 1)));
    at.push_back(*key);
  }
  const Cell& value = cells[rank];
  const std::string name = printable(columns[rank]);
  if (std::holds_alternative<Null>(value))
    throw UserError(fmt::format("{}: column '{}' is NULL at {}; every element needs a number", gathered.table, name,
                                key_text(columns, at)));
  if (std::holds_alternative<Other>(value) || std::holds_alternative<Blob>(value))
    throw UserError(fmt::format("{}: column '{}' is {} at {}, no number", gathered.table, name, shown(value),
                                key_text(columns, at)));
  if (const std::string why = misfit(gathered.dtype, value); !why.empty())
    throw UserError(fmt::format("{}: column '{}' is {} at {}, which {}", gathered.table, name, shown(value),
                                key_text(columns, at), why));
  return at;
}

[[noreturn]] void refuse_second(const Gathered& gathered, const std::vector<std::string>& columns, const Key& at) {
  throw UserError(
      fmt::format("{} has two rows for {}; every key may be there once", gathered.table, key_text(columns, at)));
}

}  // namespace

std::string shown(const Cell& cell) {
  if (std::holds_alternative<Null>(cell)) return "NULL";
  if (const auto* const whole = std::get_if<std::int64_t>(&cell)) return fmt::format("{}", *whole);
  if (const auto* const real = std::get_if<double>(&cell)) return fmt::format("{:#}", *real);  // 1.0, no 1
  if (const auto* const blob = std::get_if<Blob>(&cell)) return "a blob of " + counted(blob->bytes.size(), "byte");
  return std::get<Other>(cell).shown;
}

std::string raw_key(const std::vector<Cell>& cells, const std::vector<std::string>& columns) {
  std::vector<std::string> parts;
  for (std::size_t d = 0; d + 1 < cells.size(); ++d)
    parts.push_back(fmt::format("{}={}", printable(columns[d]), shown(cells[d])));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string key_text(const std::vector<std::string>& columns, const std::vector<std::int64_t>& at) {
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < at.size(); ++d) parts.push_back(fmt::format("{}={}", printable(columns[d]), at[d]));
  return parts.empty() ? "its one place" : fmt::format("{}", fmt::join(parts, ", "));
}

const char* name_of(Absent absent) {
  switch (absent) {
    case Absent::refused: return "refused";
    case Absent::may_be_zeros: return "may be zeros";
    case Absent::zeros: return "are zeros";
  }
  throw Bug("absent elements outside their enumeration");
}

Absent absent_named(std::string_view name) {
  for (const Absent absent : {Absent::refused, Absent::may_be_zeros, Absent::zeros}) {
    if (name == name_of(absent)) return absent;
  }
  throw UserError(fmt::format("absent elements cannot be '{}'", printable(name)));
}

std::string refusal_of(Absent absent) {
  return absent == Absent::may_be_zeros ? fmt::format("; every element needs one, but {}", sparse_remedy)
                                        : "; every element needs one";
}

ChunkGatherer::ChunkGatherer(Gathered gathered) : gathered_(std::move(gathered)) {
  for (std::size_t d = 0; d < gathered_.bound.size(); ++d) check_cut(gathered_.bound[d], gathered_.cuts[d]);
}

void ChunkGatherer::begin(const std::vector<std::int64_t>& at) {
  Shape shape;
  for (std::size_t d = 0; d < at.size(); ++d) {
    const auto part = static_cast<std::int64_t>(part_of(gathered_.bound[d], gathered_.cuts[d], at[d]));
    begin_.push_back(chunk_begin(gathered_.bound[d], gathered_.cuts[d], part));
    shape.push_back(chunk_extent(gathered_.bound[d], gathered_.cuts[d], part));
  }
  check_chunk_bytes(gathered_.dtype, shape);
  chunk_ = Tensor(gathered_.dtype, std::move(shape));
  if (gathered_.absent == Absent::zeros)
    std::memset(chunk_.mutable_data(), 0, static_cast<std::size_t>(chunk_.byte_count()));
  seen_.assign(static_cast<std::size_t>(chunk_.count()), false);
}

void ChunkGatherer::add(const std::vector<Cell>& cells, const std::vector<std::string>& columns) {
  const Key at = checked_key(gathered_, cells, columns);
  columns_ = columns;
  if (seen_.empty()) begin(at);
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < at.size(); ++d) {
    const std::int64_t inside = at[d] - begin_[d];
    if (inside < 0 || inside >= chunk_.shape()[d].value())
      throw UserError(fmt::format("{}: elements of two chunks are gathered into one", gathered_.table));
    offset = offset * chunk_.shape()[d].value() + inside;
  }
  const auto position = static_cast<std::size_t>(offset);
  if (seen_[position]) refuse_second(gathered_, columns, at);
  seen_[position] = true;
  std::byte* const to = chunk_.mutable_data() + offset * static_cast<std::int64_t>(size_of(gathered_.dtype));
  std::visit([&](auto value) { store(gathered_.dtype, value, to); }, number_in(cells[at.size()]));
}

namespace {

[[noreturn]] void refuse_hole(const Gathered& gathered, const std::vector<std::string>& columns,
                              const std::vector<std::int64_t>& at) {
  std::vector<std::int64_t> last;
  for (const Extent extent : gathered.bound) last.push_back(extent.value() - 1);
  const std::string up_to = last.empty() ? "" : fmt::format(", since keys go up to {}", key_text(columns, last));
  throw UserError(fmt::format("{} has no row for {}: a hole{}{}", gathered.table, key_text(columns, at), up_to,
                              refusal_of(gathered.absent)));
}

}  // namespace

Tensor ChunkGatherer::finish() const {
  const auto hole = std::find(seen_.begin(), seen_.end(), false);
  if (hole == seen_.end() || gathered_.absent == Absent::zeros) return chunk_;
  std::int64_t rest = hole - seen_.begin();
  std::vector<std::int64_t> at(begin_.size());
  for (std::size_t d = at.size(); d-- > 0;) {
    at[d] = begin_[d] + rest % chunk_.shape()[d].value();
    rest /= chunk_.shape()[d].value();
  }
  refuse_hole(gathered_, columns_, at);
}

void FewGatherer::add(const std::vector<Cell>& cells, const std::vector<std::string>& columns) {
  const Key at = checked_key(gathered_, cells, columns);
  few_.elements.emplace_back(at, as_type(few_.dtype, number_in(cells[at.size()])));
  columns_ = columns;
}

FewElements FewGatherer::finish() {
  std::sort(few_.elements.begin(), few_.elements.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const auto twice = std::adjacent_find(few_.elements.begin(), few_.elements.end(),
                                        [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != few_.elements.end()) refuse_second(gathered_, columns_, twice->first);
  return std::move(few_);
}

ChunkCensus::ChunkCensus(Gathered gathered, std::vector<std::string> columns)
    : gathered_(std::move(gathered)),
      type_(relation_type(gathered_.dtype, gathered_.bound, cut_of_all(gathered_.cuts))),
      seen_(type_.chunks.size(), false),
      columns_(std::move(columns)) {}

void ChunkCensus::add(const Key& key) {
  const Chunk* const chunk = find_chunk(type_, key);
  if (chunk == nullptr) throw UserError(fmt::format("{} has a chunk {} too many", gathered_.table, to_string(key)));
  seen_[static_cast<std::size_t>(chunk - type_.chunks.data())] = true;
}

void ChunkCensus::finish() const {
  const auto hole = std::find(seen_.begin(), seen_.end(), false);
  if (hole == seen_.end()) return;
  const Key& key = type_.chunks[static_cast<std::size_t>(hole - seen_.begin())].key;
  std::vector<std::int64_t> at;
  for (std::size_t d = 0; d < key.size(); ++d) at.push_back(chunk_begin(gathered_.bound[d], gathered_.cuts[d], key[d]));
  refuse_hole(gathered_, columns_, at);
}

}  // namespace einrel::sql
