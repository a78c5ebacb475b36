#include "sql/functions/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "sql/functions/array_bytes.h"
#include "tra/interpret.h"

namespace einrel::sql {
namespace {

std::int64_t integer_of(const Value& value, const char* what) {
  const auto* const number = std::get_if<std::int64_t>(&value);
  if (number == nullptr) throw UserError(fmt::format("{} is no whole number", what));
  return *number;
}

std::size_t index_of(const Value& value, std::size_t below, const char* what) {
  const std::int64_t number = integer_of(value, what);
  if (number < 0 || static_cast<std::uint64_t>(number) >= below)
    throw UserError(
        fmt::format("{} is {}, but has to be from 0 to {}", what, number, static_cast<std::int64_t>(below) - 1));
  return static_cast<std::size_t>(number);
}

std::string text_of(const Value& value, const char* what) {
  const auto* const text = std::get_if<Text>(&value);
  if (text == nullptr) throw UserError(fmt::format("{} is no text", what));
  return std::string(text->text);
}

DType dtype_of(const Value& value) {
  const std::string name = text_of(value, "the dtype");
  const std::optional<DType> dtype = dtype_named(name);
  if (!dtype) throw UserError(fmt::format("'{}' is no dtype", printable(name)));
  return *dtype;
}

void want(std::size_t least, Values values, const char* function) {
  if (values.size() < least) throw UserError(fmt::format("{} takes at least {} values", function, least));
}

/// An array as a value of its own, or a number as an array.
Tensor argument_of(const Value& value, const char* function) {
  const auto* const number = std::get_if<std::int64_t>(&value);
  if (number == nullptr) return array_of(value, function);
  Tensor scalar(DType::i64, {});
  std::memcpy(scalar.mutable_data(), number, sizeof(*number));
  return scalar;
}

/// In memory of its own: what a value holds is gone after the call.
Tensor kept(const Tensor& array) {
  if (array.has_owner()) return array;
  Tensor copy(array.dtype(), array.shape());
  copy_elements(array.dtype(), array.shape(), {array.data(), array.strides()}, copy.mutable_data(), copy.strides());
  return copy;
}

/// New memory, if a database takes so much for a value.
Tensor array_for(DType dtype, Shape shape) {
  check_chunk_bytes(dtype, shape);
  return Tensor(dtype, std::move(shape));
}

/// Reads the first values of einrel_gather and einrel_whole; leaves how many in `used`.
Gathered gathered_of(Values values, std::size_t& used, const char* function) {
  want(3, values, function);
  Gathered gathered{dtype_of(values[0]), text_of(values[1], "the table's name"), {}, {}};
  const std::size_t rank = index_of(values[2], most_dimensions + 1, "the rank");
  want(3 + 2 * rank, values, function);
  for (std::size_t d = 0; d < rank; ++d) {
    gathered.bound.emplace_back(integer_of(values[3 + 2 * d], "an extent"));
    gathered.cuts.push_back({integer_of(values[4 + 2 * d], "a number of parts"), 1});
    check_cut(gathered.bound[d], gathered.cuts[d]);
  }
  std::int64_t chunks = 1;
  for (const DimensionCut& cut : gathered.cuts) chunks = checked_multiply(chunks, cut.parts);
  if (chunks > static_cast<std::int64_t>(most_chunks))
    throw UserError(fmt::format("{} would be {} chunks, more than {}", gathered.table, chunks, most_chunks));
  used = 3 + 2 * rank;
  return gathered;
}

/// What einrel_gather and einrel_whole take last, if they are given it.
Absent absent_of(Values values, std::size_t used) {
  return values.size() > used ? absent_named(text_of(values[used], "what absent elements are")) : Absent::refused;
}

/// Of the rows of a group.
std::size_t same_dimension(std::size_t before, std::size_t now) {
  if (now != before) throw UserError("einrel_concat got two dimensions; a group has one");
  return now;
}

// Numbers and arrays one after the other, each array behind its size.

void put(std::vector<std::byte>& bytes, std::int64_t number) {
  const auto* const begin = reinterpret_cast<const std::byte*>(&number);
  bytes.insert(bytes.end(), begin, begin + sizeof(number));
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  std::int64_t number() {
    std::int64_t value = 0;
    std::memcpy(&value, take(sizeof(value)).data(), sizeof(value));
    return value;
  }
  std::span<const std::byte> sized() {
    const std::int64_t size = number();
    if (size < 0) refuse();
    return take(static_cast<std::size_t>(size));
  }
  bool is_at_end() const { return left_.empty(); }
  [[noreturn]] static void refuse() { throw UserError("these bytes are no state of an aggregate of Einrel"); }

 private:
  std::span<const std::byte> take(std::size_t size) {
    if (size > left_.size()) refuse();
    const std::span<const std::byte> taken = left_.first(size);
    left_ = left_.subspan(size);
    return taken;
  }
  std::span<const std::byte> left_;
};

}  // namespace

Cell cell_of(const Value& value) {
  struct ToCell {
    Cell operator()(Null) const { return Null{}; }
    Cell operator()(std::int64_t number) const { return number; }
    Cell operator()(double number) const { return number; }
    Cell operator()(Text text) const { return Other{fmt::format("the text '{}'", printable(text.text, 60))}; }
    Cell operator()(Bytes bytes) const { return Blob{{bytes.bytes.begin(), bytes.bytes.end()}}; }
    Cell operator()(Strange strange) const { return Other{printable(strange.shown, 60)}; }
  };
  return std::visit(ToCell{}, value);
}

Tensor array_of(const Value& value, const char* function) {
  const auto* const bytes = std::get_if<Bytes>(&value);
  if (bytes == nullptr) throw UserError(fmt::format("{} got a value that is no array", function));
  return array_in(bytes->bytes);
}

Tensor kernel_function(Values values, FunctionState& state) {
  want(2, values, "einrel_kernel");
  std::vector<Tensor> arguments;
  for (const Value& value : values.subspan(1)) arguments.push_back(argument_of(value, "einrel_kernel"));
  return call(state.kernels.find(text_of(values[0], "the kernel"), arguments), arguments, state.workers);
}

Tensor positions_function(Values values, FunctionState&) {
  want(2, values, "einrel_positions");
  const std::int64_t begin = integer_of(values[0], "the first position");
  const std::int64_t extent = integer_of(values[1], "the number of positions");
  Tensor array = array_for(DType::i64, {Extent(extent)});
  checked_add(begin, extent);
  for (std::int64_t i = 0; i < extent; ++i) {
    const std::int64_t position = begin + i;
    std::memcpy(array.mutable_data() + i * static_cast<std::int64_t>(sizeof(position)), &position, sizeof(position));
  }
  return array;
}

Tensor zeros_function(Values values, FunctionState&) {
  want(1, values, "einrel_zeros");
  Shape shape;
  for (const Value& value : values.subspan(1)) shape.emplace_back(integer_of(value, "an extent"));
  Tensor array = array_for(dtype_of(values[0]), std::move(shape));
  if (array.byte_count() != 0) std::memset(array.mutable_data(), 0, static_cast<std::size_t>(array.byte_count()));
  return array;
}

Tensor tile_function(Values values, FunctionState&) {
  want(4, values, "einrel_tile");
  const Tensor array = array_of(values[0], "einrel_tile");
  const Tile op{index_of(values[1], array.rank(), "the dimension"), integer_of(values[2], "the size of tiles")};
  if (op.size < 1) throw UserError("the size of tiles is below 1");
  const std::int64_t tiles = tile_count(array.shape()[op.dim], op);
  return tile_of(array, op,
                 static_cast<std::int64_t>(index_of(values[3], static_cast<std::size_t>(tiles), "the tile")));
}

Tensor box_function(Values values, FunctionState&) {
  want(1, values, "einrel_box");
  const Tensor array = array_of(values[0], "einrel_box");
  if (values.size() != 1 + 2 * array.rank())
    throw UserError(fmt::format("einrel_box takes begin and extent for each of {} dimensions", array.rank()));
  std::vector<std::int64_t> begin;
  Shape bound;
  for (std::size_t d = 0; d < array.rank(); ++d) {
    begin.push_back(integer_of(values[1 + 2 * d], "where a box begins"));
    bound.emplace_back(integer_of(values[2 + 2 * d], "the extent of a box"));
    if (begin[d] < 0 || checked_add(begin[d], bound[d].value()) > array.shape()[d].value())
      throw UserError(fmt::format("a box leaves its array in dimension {}", d));
  }
  return array.box(begin, std::move(bound));
}

std::int64_t extent_function(Values values) {
  want(2, values, "einrel_extent");
  const Tensor array = array_of(values[0], "einrel_extent");
  return array.shape()[index_of(values[1], array.rank(), "the dimension")].value();
}

void Gather::add(Values values, FunctionState&) {
  if (!gatherer_) {
    Gathered gathered = gathered_of(values, used_, "einrel_gather");
    rank_ = gathered.bound.size();
    gathered.absent = absent_of(values, used_ + 2 * (rank_ + 1));
    gatherer_.emplace(std::move(gathered));
  }
  want(used_ + 2 * (rank_ + 1), values, "einrel_gather");
  std::vector<Cell> cells;
  std::vector<std::string> columns;
  for (std::size_t i = 0; i <= rank_; ++i) cells.push_back(cell_of(values[used_ + i]));
  for (std::size_t i = 0; i <= rank_; ++i) columns.push_back(text_of(values[used_ + rank_ + 1 + i], "a column's name"));
  gatherer_->add(cells, columns);
}

void Whole::add(Values values, FunctionState&) {
  std::size_t used = 0;
  Gathered gathered = gathered_of(values, used, "einrel_whole");
  const std::size_t rank = gathered.bound.size();
  want(used + 1 + 2 * rank, values, "einrel_whole");
  if (!census_) {
    std::vector<std::string> columns;
    for (std::size_t d = 0; d < rank; ++d) columns.push_back(text_of(values[used + 1 + rank + d], "a column's name"));
    gathered.absent = absent_of(values, used + 1 + 2 * rank);
    census_.emplace(std::move(gathered), std::move(columns));
  }
  if (integer_of(values[used], "whether there is a chunk") == 0) return;
  Key key;
  for (std::size_t d = 0; d < rank; ++d) key.push_back(integer_of(values[used + 1 + d], "a key"));
  census_->add(key);
}

std::optional<Tensor> Whole::finish(FunctionState&) const {
  census_->finish();
  return std::nullopt;
}

std::vector<std::byte> stored(const std::string& text, const KeyedArrays& arrays) {
  std::vector<std::byte> bytes;
  put(bytes, static_cast<std::int64_t>(text.size()));
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), begin, begin + text.size());
  for (const auto& [key, array] : arrays) {
    put(bytes, static_cast<std::int64_t>(key.size()));
    for (const std::int64_t number : key) put(bytes, number);
    const std::vector<std::byte> own = array_bytes(array);
    put(bytes, static_cast<std::int64_t>(own.size()));
    bytes.insert(bytes.end(), own.begin(), own.end());
  }
  return bytes;
}

std::pair<std::string, KeyedArrays> read_stored(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  const std::span<const std::byte> text = reader.sized();
  std::pair<std::string, KeyedArrays> read{{reinterpret_cast<const char*>(text.data()), text.size()}, {}};
  while (!reader.is_at_end()) {
    const std::int64_t size = reader.number();
    if (size < 0) Reader::refuse();
    Key key;
    for (std::int64_t i = 0; i < size; ++i) key.push_back(reader.number());
    read.second.emplace_back(std::move(key), kept(array_in(reader.sized())));
  }
  return read;
}

void Fold::add(Values values, FunctionState& state) {
  want(2, values, "einrel_fold");
  const Tensor array = argument_of(values[1], "einrel_fold");
  if (arrays_.empty()) text_ = text_of(values[0], "the kernel");
  Key key;
  for (const Value& value : values.subspan(2)) key.push_back(integer_of(value, "a key"));
  take(std::move(key), array, state);
}

void Fold::take(Key key, const Tensor& array, FunctionState& state) {
  if (!arrays_.empty() && is_associative_commutative(state.kernels.find(text_, {array, array}))) {
    Tensor& all = arrays_.begin()->second;
    all = call(state.kernels.find(text_, {all, array}), {all, array}, state.workers);
  } else if (!arrays_.emplace(std::move(key), kept(array)).second) {
    throw UserError("einrel_fold got two arrays of one key");
  }
}

std::optional<Tensor> Fold::finish(FunctionState& state) const {
  if (arrays_.empty()) return std::nullopt;
  Tensor all = arrays_.begin()->second;
  for (auto next = std::next(arrays_.begin()); next != arrays_.end(); ++next)
    all = call(state.kernels.find(text_, {all, next->second}), {all, next->second}, state.workers);
  return all;
}

std::vector<std::byte> Fold::state_bytes() const { return stored(text_, KeyedArrays(arrays_.begin(), arrays_.end())); }

void Fold::merge(std::span<const std::byte> bytes, FunctionState& state) {
  auto [text, arrays] = read_stored(bytes);
  if (arrays_.empty()) text_ = std::move(text);
  for (auto& [key, array] : arrays) take(std::move(key), array, state);
}

void Concatenation::add(Values values, FunctionState&) {
  want(3, values, "einrel_concat");
  Tensor array = kept(array_of(values[2], "einrel_concat"));
  const std::size_t dim = index_of(values[0], array.rank(), "the dimension");
  dim_ = arrays_.empty() ? dim : same_dimension(dim_, dim);
  take(integer_of(values[1], "the key"), std::move(array));
}

void Concatenation::take(std::int64_t key, Tensor array) {
  if (dim_ >= array.rank()) Reader::refuse();
  if (!arrays_.empty()) {
    const Tensor& first = arrays_.begin()->second;
    Shape equal = array.shape();
    if (equal.size() == first.rank()) equal[dim_] = first.shape()[dim_];
    if (equal != first.shape() || array.dtype() != first.dtype())
      throw UserError("einrel_concat got arrays that do not lie side by side");
  }
  if (!arrays_.emplace(key, std::move(array)).second) throw UserError("einrel_concat got two arrays of one key");
}

std::optional<Tensor> Concatenation::finish(FunctionState&) const {
  if (arrays_.empty()) return std::nullopt;
  std::vector<Tensor> arrays;
  Shape bound = arrays_.begin()->second.shape();
  bound[dim_] = Extent(0);
  for (const auto& [key, array] : arrays_) {
    arrays.push_back(array);
    bound[dim_] = Extent(checked_add(bound[dim_].value(), array.shape()[dim_].value()));
  }
  check_chunk_bytes(arrays.front().dtype(), bound);
  return concatenate(arrays, dim_);
}

std::vector<std::byte> Concatenation::state_bytes() const {
  KeyedArrays arrays;
  for (const auto& [key, array] : arrays_) arrays.emplace_back(Key{static_cast<std::int64_t>(dim_), key}, array);
  return stored("", arrays);
}

void Concatenation::merge(std::span<const std::byte> bytes, FunctionState&) {
  for (auto& [key, array] : read_stored(bytes).second) {
    if (key.size() != 2 || key[0] < 0) Reader::refuse();
    const auto dim = static_cast<std::size_t>(key[0]);
    dim_ = arrays_.empty() ? dim : same_dimension(dim_, dim);
    take(key[1], std::move(array));
  }
}

void Placement::add(Values values, FunctionState&) {
  want(1, values, "einrel_place");
  Tensor array = kept(array_of(values[0], "einrel_place"));
  Key begin;
  for (const Value& value : values.subspan(1)) begin.push_back(integer_of(value, "where a box begins"));
  take(std::move(array), std::move(begin));
}

void Placement::take(Tensor array, Key begin) {
  const bool fits = begin.size() == array.rank() &&
                    (boxes_.empty() ||
                     (array.rank() == boxes_.front().second.rank() && array.dtype() == boxes_.front().second.dtype()));
  if (!fits) throw UserError("einrel_place takes boxes of one type, and where each begins");
  for (std::size_t d = 0; d < array.rank(); ++d) {
    if (begin[d] < 0) throw UserError("a box begins before its array");
    checked_add(begin[d], array.shape()[d].value());
  }
  boxes_.emplace_back(std::move(begin), std::move(array));
}

std::optional<Tensor> Placement::finish(FunctionState&) const {
  if (boxes_.empty()) return std::nullopt;
  const auto& [first_begin, first] = boxes_.front();
  std::vector<std::int64_t> extents(first_begin.size(), 0);
  std::int64_t elements = 0;
  for (const auto& [begin, array] : boxes_) {
    elements = checked_add(elements, array.count());
    for (std::size_t d = 0; d < extents.size(); ++d)
      extents[d] = std::max(extents[d], begin[d] + array.shape()[d].value());
  }
  const Shape bound = make_shape(extents);
  if (element_count(bound) != elements) throw UserError("einrel_place got boxes that do not fill their array");
  Tensor whole = array_for(first.dtype(), bound);
  // Boxes that lie on each other leave as many places free: those are zeros, not what was in memory before.
  if (whole.byte_count() != 0) std::memset(whole.mutable_data(), 0, static_cast<std::size_t>(whole.byte_count()));
  for (const auto& [begin, array] : boxes_) {
    if (array.count() == 0) continue;  // it may lie anywhere
    const auto size = static_cast<std::int64_t>(size_of(whole.dtype()));
    copy_elements(whole.dtype(), array.shape(), {array.data(), array.strides()},
                  whole.mutable_data() + offset_of(begin, whole.strides()) * size, whole.strides());
  }
  return whole;
}

std::vector<std::byte> Placement::state_bytes() const { return stored("", boxes_); }

void Placement::merge(std::span<const std::byte> bytes, FunctionState&) {
  for (auto& [begin, array] : read_stored(bytes).second) take(std::move(array), std::move(begin));
}

}  // namespace einrel::sql
