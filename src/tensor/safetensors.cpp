#include "tensor/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tensor/bytes.h"

namespace einrel {
namespace {

using nlohmann::json;

constexpr std::size_t length_size = sizeof(std::uint64_t);
constexpr std::uint64_t longest_header = 100'000'000;  // the format's own limit
constexpr std::string_view metadata_name = "__metadata__";

constexpr std::array<std::pair<std::string_view, StoredType>, 12> safetensors_codes{{{"F32", StoredType::f32},
                                                                                     {"F64", StoredType::f64},
                                                                                     {"BF16", StoredType::bf16},
                                                                                     {"F16", StoredType::f16},
                                                                                     {"I32", StoredType::i32},
                                                                                     {"I64", StoredType::i64},
                                                                                     {"BOOL", StoredType::boolean},
                                                                                     {"U8", StoredType::u8},
                                                                                     {"I8", StoredType::i8},
                                                                                     {"U16", StoredType::u16},
                                                                                     {"I16", StoredType::i16},
                                                                                     {"U32", StoredType::u32}}};

/// Of complex numbers of two f32, the only ones of the format.
constexpr std::string_view complex_code = "C64";

std::optional<StoredType> type_named(std::string_view code) {
  const auto* const found = std::find_if(safetensors_codes.begin(), safetensors_codes.end(),
                                         [&](const auto& entry) { return entry.first == code; });
  if (found == safetensors_codes.end()) return std::nullopt;
  return found->second;
}

std::string_view safetensors_code(DType dtype) {
  const auto* const found = std::find_if(safetensors_codes.begin(), safetensors_codes.end(),
                                         [&](const auto& entry) { return entry.second == stored_type(dtype); });
  invariant(found != safetensors_codes.end(), "every dtype has a code in .safetensors");
  return found->first;
}

/// Takes the header's JSON event by event, so that no tree of it is ever built and nothing nests deeper than
/// the format does. Each handler returns whether to go on; `problem` says why not.
class HeaderHandler final : public json::json_sax_t {
 public:
  explicit HeaderHandler(SafetensorsFile& result) : result_(result) {}

  const std::string& problem() const { return problem_; }

  bool start_object(std::size_t) override {
    switch (state_) {
      case State::start: state_ = State::names; return true;
      case State::tensor: state_ = State::fields; return true;
      case State::metadata: state_ = State::strings; return true;
      default: return unexpected("an object");
    }
  }

  bool end_object() override {
    if (state_ == State::fields) {
      if (seen_ != (has_dtype | has_shape | has_offsets)) {
        return fail(fmt::format("tensor '{}' needs dtype, shape and data_offsets", printable(result_.names.back())));
      }
      state_ = State::names;
      return true;
    }
    state_ = state_ == State::strings ? State::names : State::end;
    return true;
  }

  bool key(std::string& name) override {
    switch (state_) {
      case State::names: return start_tensor(name);
      case State::fields: return start_field(name);
      default: return true;  // a key of the metadata
    }
  }

  bool start_array(std::size_t) override {
    switch (state_) {
      case State::shape: state_ = State::extents; return true;
      case State::offsets: state_ = State::begin; return true;
      default: return unexpected("a list");
    }
  }

  bool end_array() override {
    if (state_ == State::begin || state_ == State::end_offset) return fail("data_offsets must be two numbers");
    state_ = State::fields;
    return true;
  }

  bool string(std::string& value) override {
    if (state_ == State::strings) return true;
    if (state_ != State::dtype) return unexpected("a string");
    result_.entries.back().dtype = value;
    state_ = State::fields;
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (state_ == State::begin || state_ == State::end_offset) {
      SafetensorsEntry& entry = result_.entries.back();
      (state_ == State::begin ? entry.begin : entry.end) = value;
      state_ = state_ == State::begin ? State::end_offset : State::after_offsets;
      return true;
    }
    if (state_ != State::extents) return unexpected("a number");
    Shape& shape = result_.entries.back().shape;
    if (shape.size() == max_rank) return fail(fmt::format("more than {} dimensions", max_rank));
    if (!std::in_range<std::int64_t>(value)) return fail(fmt::format("extent {} does not fit in 63 bits", value));
    shape.emplace_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool number_integer(std::int64_t value) override { return fail(fmt::format("a negative number, {}", value)); }
  bool number_float(double, const std::string&) override { return fail("a number that is no integer of 64 bits"); }
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a bool"); }
  bool binary(json::binary_t&) override { return unexpected("binary data"); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    return fail(fmt::format("no valid JSON at byte {}", position));
  }

 private:
  /// What the next value is: the whole header, a tensor, the metadata, a field of a tensor, a number in a list;
  /// or whose next key it is: `names` (of the header), `fields` (of a tensor), `strings` (of the metadata).
  enum class State : std::uint8_t {
    start,
    names,
    metadata,
    strings,
    tensor,
    fields,
    dtype,
    shape,
    extents,
    offsets,
    begin,
    end_offset,
    after_offsets,
    end
  };
  static constexpr unsigned has_dtype = 1;
  static constexpr unsigned has_shape = 2;
  static constexpr unsigned has_offsets = 4;

  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  bool unexpected(std::string_view what) { return fail(fmt::format("{} where it does not belong", what)); }

  bool start_tensor(const std::string& name) {
    if (name == metadata_name) {
      if (std::exchange(has_metadata_, true)) return fail("'__metadata__' is there twice");
      state_ = State::metadata;
      return true;
    }
    result_.names.push_back(name);
    result_.entries.emplace_back();
    seen_ = 0;
    state_ = State::tensor;
    return true;
  }

  bool start_field(const std::string& name) {
    unsigned field = 0;
    if (name == "dtype") {
      field = has_dtype;
      state_ = State::dtype;
    } else if (name == "shape") {
      field = has_shape;
      state_ = State::shape;
    } else if (name == "data_offsets") {
      field = has_offsets;
      state_ = State::offsets;
    } else {
      return fail(fmt::format("unknown field '{}'", printable(name)));
    }
    if ((seen_ & field) != 0) return fail(fmt::format("'{}' twice in one tensor", printable(name)));
    seen_ |= field;
    return true;
  }

  SafetensorsFile& result_;
  State state_ = State::start;
  unsigned seen_ = 0;  // the fields of the tensor at hand
  bool has_metadata_ = false;
  std::string problem_;
};

UserError damaged(const FileBytes& file, const std::string& what) {
  return UserError(fmt::format("{}: damaged .safetensors header: {}", file.name, what));
}

std::string_view safetensors_header_text(const FileBytes& file) {
  if (file.bytes.size() < length_size) throw damaged(file, "the file is shorter than 8 bytes");
  const auto length = load_number<std::uint64_t>(file.bytes.data(), std::endian::little);
  if (length > longest_header || length > file.bytes.size() - length_size) {
    throw damaged(file, fmt::format("it says it is {} bytes long, in a file of {}", length, file.bytes.size()));
  }
  return as_text(file.bytes.subspan(length_size, length));
}

void check_names_differ(const SafetensorsFile& result) {
  std::vector<std::string_view> names(result.names.begin(), result.names.end());
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) {
    throw damaged(result.file, fmt::format("two tensors are named '{}'", printable(*twice)));
  }
}

/// The tensors' bytes must follow each other without gaps up to the end of the file.
void check_offsets(const SafetensorsFile& result) {
  std::vector<std::size_t> order(result.entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto place = [&](std::size_t i) { return std::pair(result.entries[i].begin, result.entries[i].end); };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return place(a) < place(b); });
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    const SafetensorsEntry& entry = result.entries[i];
    if (entry.begin != end || entry.end < entry.begin) {
      throw damaged(result.file, fmt::format("data_offsets [{}, {}] of '{}' overlap another tensor or leave a gap",
                                             entry.begin, entry.end, printable(result.names[i])));
    }
    end = entry.end;
  }
  const std::uint64_t there = result.file.bytes.size() - result.data_begin;
  if (end != there) {
    throw UserError(
        fmt::format("{}: its header describes {} bytes of tensors, but {} are there; the file is damaged or "
                    "cut short",
                    result.file.name, end, there));
  }
}

/// Bytes of the elements that a header describes.
std::int64_t bytes_of(const SafetensorsHead& head) {
  return checked_multiply(element_count(head.shape), static_cast<std::int64_t>(size_of(head.dtype)));
}

}  // namespace

SafetensorsFile parse_safetensors(const FileBytes& file) {
  const std::string_view text = safetensors_header_text(file);
  SafetensorsFile result{file, {}, {}, length_size + text.size()};
  if (text.empty() || text.front() != '{') throw damaged(file, "it does not begin with '{'");
  HeaderHandler handler(result);
  if (!json::sax_parse(text.begin(), text.end(), &handler)) throw damaged(file, handler.problem());
  check_names_differ(result);
  check_offsets(result);
  return result;
}

StoredTensor open_tensor(const SafetensorsFile& file, std::size_t index) {
  const SafetensorsEntry& entry = file.entries[index];
  const std::string name = fmt::format("{}:{}", file.file.name, printable(file.names[index]));
  const auto bytes = file.file.bytes.subspan(file.data_begin + entry.begin, entry.end - entry.begin);
  const FileBytes elements{name, bytes, file.file.owner};
  if (entry.dtype == complex_code)
    return stored_complex(elements, StoredType::f32, std::endian::little, entry.shape, ElementOrder::row_major);
  const std::optional<StoredType> type = type_named(entry.dtype);
  if (!type) {
    throw UserError(
        fmt::format("{}: elements of type '{}' are not supported; save the tensor as F32 or I64, for example", name,
                    printable(entry.dtype)));
  }
  return stored_tensor(elements, *type, std::endian::little, entry.shape, ElementOrder::row_major);
}

void check_safetensors_name(const std::string& name) {
  if (!name.empty() && name != metadata_name && is_utf8(name)) return;
  throw UserError(fmt::format("'{}' cannot be a tensor's name in a .safetensors file", printable(name)));
}

FileLayout safetensors_layout(const std::vector<SafetensorsHead>& heads) {
  std::vector<std::size_t> order(heads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto width = [&](std::size_t i) { return size_of(heads[i].dtype) * (heads[i].is_complex ? 2 : 1); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return width(a) > width(b); });
  FileLayout layout{"", std::vector<std::uint64_t>(heads.size()), 0};
  std::string header = "{";
  std::int64_t offset = 0;
  for (const std::size_t i : order) {
    const SafetensorsHead& head = heads[i];
    std::vector<std::int64_t> extents;
    for (const Extent extent : head.shape) extents.push_back(extent.value());
    if (head.is_complex) extents.pop_back();
    if (header.size() > 1) header += ',';
    const std::int64_t end = checked_add(offset, bytes_of(head));
    header +=
        fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":{},\"data_offsets\":[{},{}]}}", json(head.name).dump(),
                    head.is_complex ? complex_code : safetensors_code(head.dtype), json(extents).dump(), offset, end);
    layout.begins[i] = static_cast<std::uint64_t>(offset);
    offset = end;
  }
  header += '}';
  header.append((length_size - header.size() % length_size) % length_size, ' ');
  append_number(layout.front, static_cast<std::uint64_t>(header.size()), std::endian::little);
  layout.front += header;
  for (std::uint64_t& begin : layout.begins) begin += layout.front.size();
  layout.bytes = layout.front.size() + static_cast<std::uint64_t>(offset);
  return layout;
}

void write_safetensors(const std::vector<NamedTensor>& tensors, const ByteSink& sink) {
  std::vector<SafetensorsHead> heads;
  for (const auto& [name, tensor, is_complex] : tensors)
    heads.push_back({name, tensor.dtype(), tensor.shape(), is_complex});
  const FileLayout layout = safetensors_layout(heads);
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return layout.begins[a] < layout.begins[b]; });
  sink(as_byte_span(layout.front));
  for (const std::size_t i : order) stream_elements(tensors[i].tensor, std::endian::little, sink);
}

}  // namespace einrel
