#include "sql/sqlite/functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "base/error.h"
#include "base/text.h"
#include "sql/array_bytes.h"
#include "sql/gather.h"
#include "tra/interpret.h"

namespace einrel::sql {
namespace {

using Values = std::span<sqlite3_value*>;

std::int64_t integer_of(sqlite3_value* value, const char* what) {
  if (sqlite3_value_type(value) != SQLITE_INTEGER) throw UserError(fmt::format("{} is no whole number", what));
  return sqlite3_value_int64(value);
}

std::size_t index_of(sqlite3_value* value, std::size_t below, const char* what) {
  const std::int64_t number = integer_of(value, what);
  if (number < 0 || static_cast<std::uint64_t>(number) >= below)
    throw UserError(
        fmt::format("{} is {}, but has to be from 0 to {}", what, number, static_cast<std::int64_t>(below) - 1));
  return static_cast<std::size_t>(number);
}

std::string text_of(sqlite3_value* value, const char* what) {
  if (sqlite3_value_type(value) != SQLITE_TEXT) throw UserError(fmt::format("{} is no text", what));
  const auto* const text = reinterpret_cast<const char*>(sqlite3_value_text(value));
  if (text == nullptr) throw RunError("SQLite has no memory for a text");
  return {text, static_cast<std::size_t>(sqlite3_value_bytes(value))};
}

DType dtype_of(sqlite3_value* value) {
  const std::string name = text_of(value, "the dtype");
  const std::optional<DType> dtype = dtype_named(name);
  if (!dtype) throw UserError(fmt::format("'{}' is no dtype", printable(name)));
  return *dtype;
}

void want(std::size_t least, Values values, const char* function) {
  if (values.size() < least) throw UserError(fmt::format("{} takes at least {} values", function, least));
}

/// An array as a value of its own, or a number as an array.
Tensor argument_of(sqlite3_value* value, const char* function) {
  if (sqlite3_value_type(value) != SQLITE_INTEGER) return array_of(value, function);
  Tensor scalar(DType::i64, {});
  const std::int64_t number = sqlite3_value_int64(value);
  std::memcpy(scalar.mutable_data(), &number, sizeof(number));
  return scalar;
}

/// In memory of its own: what a value holds is gone after the call.
Tensor kept(const Tensor& array) {
  if (array.has_owner()) return array;
  Tensor copy(array.dtype(), array.shape());
  copy_elements(array.dtype(), array.shape(), {array.data(), array.strides()}, copy.mutable_data(), copy.strides());
  return copy;
}

void set_array(sqlite3_context* context, const Tensor& array) {
  const std::vector<std::byte> bytes = array_bytes(array);
  sqlite3_result_blob64(context, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
}

Tensor kernel(Values values, FunctionState& state) {
  want(2, values, "einrel_kernel");
  std::vector<Tensor> arguments;
  for (sqlite3_value* value : values.subspan(1)) arguments.push_back(argument_of(value, "einrel_kernel"));
  return call(state.kernels.find(text_of(values[0], "the kernel"), arguments), arguments, state.workers);
}

Tensor positions(Values values, FunctionState&) {
  want(2, values, "einrel_positions");
  const std::int64_t begin = integer_of(values[0], "the first position");
  const std::int64_t extent = integer_of(values[1], "the number of positions");
  Tensor array(DType::i64, {Extent(extent)});
  checked_add(begin, extent);
  for (std::int64_t i = 0; i < extent; ++i) {
    const std::int64_t position = begin + i;
    std::memcpy(array.mutable_data() + i * static_cast<std::int64_t>(sizeof(position)), &position, sizeof(position));
  }
  return array;
}

Tensor zeros(Values values, FunctionState&) {
  want(1, values, "einrel_zeros");
  Shape shape;
  for (sqlite3_value* value : values.subspan(1)) shape.emplace_back(integer_of(value, "an extent"));
  Tensor array(dtype_of(values[0]), std::move(shape));
  if (array.byte_count() != 0) std::memset(array.mutable_data(), 0, static_cast<std::size_t>(array.byte_count()));
  return array;
}

Tensor tile(Values values, FunctionState&) {
  want(4, values, "einrel_tile");
  const Tensor array = array_of(values[0], "einrel_tile");
  const Tile op{index_of(values[1], array.rank(), "the dimension"), integer_of(values[2], "the size of tiles")};
  if (op.size < 1) throw UserError("the size of tiles is below 1");
  const std::int64_t tiles = tile_count(array.shape()[op.dim], op);
  return tile_of(array, op,
                 static_cast<std::int64_t>(index_of(values[3], static_cast<std::size_t>(tiles), "the tile")));
}

Tensor box(Values values, FunctionState&) {
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

/// Reads the first values of einrel_gather and einrel_whole; leaves how many in `used`.
Gathered gathered_of(Values values, std::size_t& used) {
  want(3, values, "einrel_gather");
  Gathered gathered{dtype_of(values[0]), text_of(values[1], "the table's name"), {}, {}};
  const std::size_t rank = index_of(values[2], most_dimensions + 1, "the rank");
  want(3 + 2 * rank, values, "einrel_gather");
  for (std::size_t d = 0; d < rank; ++d) {
    gathered.bound.emplace_back(integer_of(values[3 + 2 * d], "an extent"));
    gathered.cuts.push_back({integer_of(values[4 + 2 * d], "a number of parts"), 1});
    check_cut(gathered.bound[d], gathered.cuts[d]);
  }
  used = 3 + 2 * rank;
  return gathered;
}

Cell cell_of(sqlite3_value* value) {
  switch (sqlite3_value_type(value)) {
    case SQLITE_NULL: return Null{};
    case SQLITE_INTEGER: return sqlite3_value_int64(value);
    case SQLITE_FLOAT: return sqlite3_value_double(value);
    case SQLITE_TEXT: return Other{fmt::format("the text '{}'", printable(text_of(value, "a value"), 60))};
    default: return Other{fmt::format("{} bytes", sqlite3_value_bytes(value))};
  }
}

// What aggregates keep: `add` for each row, `finish` for the array.

class Gather {
 public:
  void add(Values values, FunctionState&) {
    if (!gatherer_) {
      Gathered gathered = gathered_of(values, used_);
      rank_ = gathered.bound.size();
      gatherer_.emplace(std::move(gathered));
    }
    want(used_ + 2 * (rank_ + 1), values, "einrel_gather");
    std::vector<Cell> cells;
    std::vector<std::string> columns;
    for (std::size_t i = 0; i <= rank_; ++i) cells.push_back(cell_of(values[used_ + i]));
    for (std::size_t i = 0; i <= rank_; ++i)
      columns.push_back(text_of(values[used_ + rank_ + 1 + i], "a column's name"));
    gatherer_->add(cells, columns);
  }
  std::optional<Tensor> finish(FunctionState&) const { return gatherer_->finish(); }

 private:
  std::optional<ChunkGatherer> gatherer_;
  std::size_t used_ = 0;
  std::size_t rank_ = 0;
};

class Whole {
 public:
  void add(Values values, FunctionState&) {
    std::size_t used = 0;
    Gathered gathered = gathered_of(values, used);
    const std::size_t rank = gathered.bound.size();
    want(used + 1 + 2 * rank, values, "einrel_whole");
    if (!census_) {
      std::vector<std::string> columns;
      for (std::size_t d = 0; d < rank; ++d) columns.push_back(text_of(values[used + 1 + rank + d], "a column's name"));
      census_.emplace(std::move(gathered), std::move(columns));
    }
    if (integer_of(values[used], "whether there is a chunk") == 0) return;
    Key key;
    for (std::size_t d = 0; d < rank; ++d) key.push_back(integer_of(values[used + 1 + d], "a key"));
    census_->add(key);
  }
  std::optional<Tensor> finish(FunctionState&) const {
    census_->finish();
    return std::nullopt;
  }

 private:
  std::optional<ChunkCensus> census_;
};

class Fold {
 public:
  void add(Values values, FunctionState& state) {
    want(2, values, "einrel_fold");
    const Tensor array = argument_of(values[1], "einrel_fold");
    if (arrays_.empty()) text_ = text_of(values[0], "the kernel");
    Key key;
    for (sqlite3_value* value : values.subspan(2)) key.push_back(integer_of(value, "a key"));
    if (!arrays_.empty() && is_associative_commutative(state.kernels.find(text_, {array, array}))) {
      Tensor& all = arrays_.begin()->second;
      all = call(state.kernels.find(text_, {all, array}), {all, array}, state.workers);
    } else if (!arrays_.emplace(std::move(key), kept(array)).second) {
      throw UserError("einrel_fold got two arrays of one key");
    }
  }
  std::optional<Tensor> finish(FunctionState& state) const {
    Tensor all = arrays_.begin()->second;
    for (auto next = std::next(arrays_.begin()); next != arrays_.end(); ++next)
      all = call(state.kernels.find(text_, {all, next->second}), {all, next->second}, state.workers);
    return all;
  }

 private:
  std::string text_;
  std::map<Key, Tensor> arrays_;
};

class Concatenation {
 public:
  void add(Values values, FunctionState&) {
    want(3, values, "einrel_concat");
    Tensor array = kept(array_of(values[2], "einrel_concat"));
    dim_ = index_of(values[0], array.rank(), "the dimension");
    if (!arrays_.empty()) {
      const Tensor& first = arrays_.begin()->second;
      Shape equal = array.shape();
      if (equal.size() == first.rank()) equal[dim_] = first.shape()[dim_];
      if (equal != first.shape() || array.dtype() != first.dtype())
        throw UserError("einrel_concat got arrays that do not lie side by side");
    }
    if (!arrays_.emplace(integer_of(values[1], "the key"), std::move(array)).second)
      throw UserError("einrel_concat got two arrays of one key");
  }
  std::optional<Tensor> finish(FunctionState&) const {
    std::vector<Tensor> arrays;
    for (const auto& [key, array] : arrays_) arrays.push_back(array);
    return concatenate(arrays, dim_);
  }

 private:
  std::map<std::int64_t, Tensor> arrays_;
  std::size_t dim_ = 0;
};

class Placement {
 public:
  void add(Values values, FunctionState&) {
    want(1, values, "einrel_place");
    Tensor array = kept(array_of(values[0], "einrel_place"));
    const bool fits =
        values.size() == 1 + array.rank() &&
        (boxes_.empty() || (array.rank() == boxes_[0].array.rank() && array.dtype() == boxes_[0].array.dtype()));
    if (!fits) throw UserError("einrel_place takes boxes of one type, and where each begins");
    std::vector<std::int64_t> begin;
    for (std::size_t d = 0; d < array.rank(); ++d) {
      begin.push_back(integer_of(values[1 + d], "where a box begins"));
      if (begin[d] < 0) throw UserError("a box begins before its array");
      checked_add(begin[d], array.shape()[d].value());
    }
    boxes_.push_back({std::move(array), std::move(begin)});
  }
  std::optional<Tensor> finish(FunctionState&) const {
    std::vector<std::int64_t> extents(boxes_[0].begin.size(), 0);
    std::int64_t elements = 0;
    for (const Box& box : boxes_) {
      elements = checked_add(elements, box.array.count());
      for (std::size_t d = 0; d < extents.size(); ++d)
        extents[d] = std::max(extents[d], box.begin[d] + box.array.shape()[d].value());
    }
    const Shape bound = make_shape(extents);
    if (element_count(bound) != elements) throw UserError("einrel_place got boxes that do not fill their array");
    Tensor whole(boxes_[0].array.dtype(), bound);
    for (const Box& box : boxes_) {
      const auto size = static_cast<std::int64_t>(size_of(whole.dtype()));
      copy_elements(whole.dtype(), box.array.shape(), {box.array.data(), box.array.strides()},
                    whole.mutable_data() + offset_of(box.begin, whole.strides()) * size, whole.strides());
    }
    return whole;
  }

 private:
  struct Box {
    Tensor array;
    std::vector<std::int64_t> begin;
  };
  std::vector<Box> boxes_;
};

FunctionState& state_of(sqlite3_context* context) { return *static_cast<FunctionState*>(sqlite3_user_data(context)); }

/// A function of SQL from one of ours: what it throws becomes the call's error.
template <Tensor (*function)(Values, FunctionState&)>
void scalar_function(sqlite3_context* context, int count, sqlite3_value** values) {
  FunctionState& state = state_of(context);
  try {
    set_array(context, function({values, static_cast<std::size_t>(count)}, state));
  } catch (...) {
    report(context, state, std::current_exception());
  }
}

void extent_function(sqlite3_context* context, int, sqlite3_value** values) {
  FunctionState& state = state_of(context);
  try {
    const Tensor array = array_of(values[0], "einrel_extent");
    sqlite3_result_int64(context, array.shape()[index_of(values[1], array.rank(), "the dimension")].value());
  } catch (...) {
    report(context, state, std::current_exception());
  }
}

/// SQLite keeps this much for each group, zeros at first.
template <class Kept>
struct Slot {
  Kept* kept;
};

template <class Kept>
void aggregate_step(sqlite3_context* context, int count, sqlite3_value** values) {
  FunctionState& state = state_of(context);
  try {
    auto* const slot = static_cast<Slot<Kept>*>(sqlite3_aggregate_context(context, sizeof(Slot<Kept>)));
    if (slot == nullptr) throw RunError("SQLite has no memory for a group");
    if (slot->kept == nullptr) slot->kept = std::make_unique<Kept>().release();
    slot->kept->add({values, static_cast<std::size_t>(count)}, state);
  } catch (...) {
    report(context, state, std::current_exception());
  }
}

/// SQLite calls it once for each group, also where a step has failed.
template <class Kept>
void aggregate_final(sqlite3_context* context) {
  FunctionState& state = state_of(context);
  auto* const slot = static_cast<Slot<Kept>*>(sqlite3_aggregate_context(context, 0));
  if (slot == nullptr || slot->kept == nullptr) return;  // no rows: NULL
  const std::unique_ptr<Kept> kept(slot->kept);
  if (state.error) return;
  try {
    const std::optional<Tensor> array = kept->finish(state);
    if (array) set_array(context, *array);
  } catch (...) {
    report(context, state, std::current_exception());
  }
}

constexpr int any_number = -1;

void must_work(int code) {
  if (code != SQLITE_OK) throw RunError(fmt::format("SQLite takes no functions: {}", sqlite3_errstr(code)));
}

template <Tensor (*function)(Values, FunctionState&)>
void add_scalar(sqlite3* database, FunctionState& state, const char* name) {
  must_work(sqlite3_create_function_v2(database, name, any_number, SQLITE_UTF8 | SQLITE_DETERMINISTIC, &state,
                                       scalar_function<function>, nullptr, nullptr, nullptr));
}

template <class Kept>
void add_aggregate(sqlite3* database, FunctionState& state, const char* name) {
  must_work(sqlite3_create_function_v2(database, name, any_number, SQLITE_UTF8 | SQLITE_DETERMINISTIC, &state, nullptr,
                                       aggregate_step<Kept>, aggregate_final<Kept>, nullptr));
}

}  // namespace

void report(sqlite3_context* context, FunctionState& state, std::exception_ptr error) {
  state.error = error;
  try {
    std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  } catch (const std::exception& what) {
    sqlite3_result_error(context, what.what(), -1);
  }
}

Tensor array_of(sqlite3_value* value, const char* function) {
  if (sqlite3_value_type(value) != SQLITE_BLOB)
    throw UserError(fmt::format("{} got a value that is no array", function));
  const auto* const bytes = static_cast<const std::byte*>(sqlite3_value_blob(value));
  return array_in({bytes, static_cast<std::size_t>(sqlite3_value_bytes(value))});
}

void set_element(sqlite3_context* context, const Tensor& array, std::int64_t offset) {
  with_stored_type(array.dtype(), [&]<class Stored>() {
    const auto value = widen(array.load<Stored>(offset));
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      sqlite3_result_double(context, value);
    } else {
      sqlite3_result_int64(context, value);
    }
  });
}

void register_functions(sqlite3* database, FunctionState& state) {
  add_scalar<kernel>(database, state, "einrel_kernel");
  add_scalar<positions>(database, state, "einrel_positions");
  add_scalar<zeros>(database, state, "einrel_zeros");
  add_scalar<tile>(database, state, "einrel_tile");
  add_scalar<box>(database, state, "einrel_box");
  must_work(sqlite3_create_function_v2(database, "einrel_extent", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, &state,
                                       extent_function, nullptr, nullptr, nullptr));
  add_aggregate<Gather>(database, state, "einrel_gather");
  add_aggregate<Whole>(database, state, "einrel_whole");
  add_aggregate<Fold>(database, state, "einrel_fold");
  add_aggregate<Concatenation>(database, state, "einrel_concat");
  add_aggregate<Placement>(database, state, "einrel_place");
  register_elements(database, state);
}

}  // namespace einrel::sql
