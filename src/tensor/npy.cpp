#include "tensor/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tensor/bytes.h"

namespace einrel {
namespace {

constexpr std::size_t preamble = 8;  // the magic and two bytes of version
/// Ours need 6 KB for the most dimensions; structured types, which are only refused by name, may need more.
constexpr std::size_t longest_npy_header = std::size_t{1} << 20U;

/// What the dictionary in the header says.
struct NpyHeader {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<Shape> shape;
};

/// Reads the one Python literal that a header may hold: a dictionary of a string (or a list, for structured
/// types), a bool and a tuple of integers. Its loops never recurse and only move forward.
class HeaderParser {
 public:
  HeaderParser(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  NpyHeader parse() {
    NpyHeader header;
    expect('{');
    while (!accept('}')) {
      const std::string key = parse_string();
      expect(':');
      if (key == "descr") {
        set_once(header.descr, key, parse_descr());
      } else if (key == "fortran_order") {
        set_once(header.fortran_order, key, parse_bool());
      } else if (key == "shape") {
        set_once(header.shape, key, parse_shape());
      } else {
        fail(fmt::format("unknown key '{}'", printable(key)));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ < text_.size()) fail("text after the closing '}'");
    if (!header.descr || !header.fortran_order || !header.shape) {
      fail("'descr', 'fortran_order' and 'shape' must all be there");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{}: damaged .npy header: {} (at character {})", name_, what, at_));
  }

  template <class Value>
  void set_once(std::optional<Value>& to, const std::string& key, Value value) const {
    if (to) fail(fmt::format("'{}' is there twice", key));
    to = std::move(value);
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  bool accept(char wanted) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!accept(wanted)) fail(fmt::format("'{}' is missing", wanted));
  }

  std::string parse_string() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail("a string does not end");
    std::string content(text_.substr(at_, end - at_));
    at_ = end + 1;
    return content;
  }

  /// The type's name, or for a structured type the text of its list, which is only ever shown.
  std::string parse_descr() {
    skip_space();
    if (at_ == text_.size() || text_[at_] != '[') return parse_string();
    const std::size_t begin = at_;
    std::size_t depth = 0;
    while (at_ < text_.size()) {
      const char here = text_[at_];
      if (here == '\'' || here == '"') {
        parse_string();
        continue;
      }
      ++at_;
      if (here == '[') ++depth;
      if (here == ']' && --depth == 0) return std::string(text_.substr(begin, at_ - begin));
    }
    fail("a list does not end");
  }

  bool parse_bool() {
    skip_space();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return value;
    }
    fail("'fortran_order' must be True or False");
  }

  Shape parse_shape() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      if (shape.size() == max_rank) fail(fmt::format("more than {} dimensions", max_rank));
      shape.push_back(parse_extent());
      if (accept(',')) continue;
      expect(')');
      if (shape.size() == 1) fail("a tuple of one needs a comma");
      break;
    }
    return shape;
  }

  Extent parse_extent() {
    skip_space();
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) fail("an extent does not fit in 63 bits");
    if (error != std::errc() || value < 0) fail("an extent must be a number, 0 or more");
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long integers so
    return Extent(value);
  }

  const std::string& name_;
  std::string_view text_;
  std::size_t at_ = 0;
};

struct Descr {
  StoredType type;
  std::endian order;
  bool is_complex = false;  ///< then the type is that of the parts
};

/// What stands behind the mark of byte order. Of a type's codes the first is written; the letters are those of C's
/// types.
constexpr std::array<std::pair<std::string_view, StoredType>, 24> npy_codes{
    {{"f4", StoredType::f32}, {"f8", StoredType::f64},     {"f2", StoredType::f16},    {"i4", StoredType::i32},
     {"i8", StoredType::i64}, {"b1", StoredType::boolean}, {"u1", StoredType::u8},     {"i1", StoredType::i8},
     {"u2", StoredType::u16}, {"i2", StoredType::i16},     {"u4", StoredType::u32},    {"V2", StoredType::bf16},
     {"f", StoredType::f32},  {"d", StoredType::f64},      {"e", StoredType::f16},     {"i", StoredType::i32},
     {"l", StoredType::i64},  {"q", StoredType::i64},      {"?", StoredType::boolean}, {"B", StoredType::u8},
     {"b", StoredType::i8},   {"H", StoredType::u16},      {"h", StoredType::i16},     {"I", StoredType::u32}}};

/// The names that NumPy has besides for the same types; numpy.dtype takes them in a header, too.
constexpr std::array<std::pair<std::string_view, StoredType>, 11> numpy_names{{{"float32", StoredType::f32},
                                                                               {"float64", StoredType::f64},
                                                                               {"float16", StoredType::f16},
                                                                               {"int32", StoredType::i32},
                                                                               {"int64", StoredType::i64},
                                                                               {"bool", StoredType::boolean},
                                                                               {"uint8", StoredType::u8},
                                                                               {"int8", StoredType::i8},
                                                                               {"uint16", StoredType::u16},
                                                                               {"int16", StoredType::i16},
                                                                               {"uint32", StoredType::u32}}};

/// Complex numbers, by the type of their parts; the first of a type is written.
constexpr std::array<std::pair<std::string_view, StoredType>, 6> complex_codes{{{"c8", StoredType::f32},
                                                                                {"c16", StoredType::f64},
                                                                                {"F", StoredType::f32},
                                                                                {"D", StoredType::f64},
                                                                                {"complex64", StoredType::f32},
                                                                                {"complex128", StoredType::f64}}};

std::optional<StoredType> type_called(std::string_view name,
                                      std::span<const std::pair<std::string_view, StoredType>> in) {
  const auto found = std::find_if(in.begin(), in.end(), [&](const auto& entry) { return entry.first == name; });
  return found == in.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Descr> parse_descr(std::string_view descr) {
  // Two bytes without meaning: NumPy has no name of its own for bfloat16, and writes it in little-endian order.
  if (descr == "bfloat16" || descr == "<V2" || descr == "|V2") return Descr{StoredType::bf16, std::endian::little};
  if (const auto named = type_called(descr, numpy_names)) return Descr{*named, std::endian::native};
  // Without a mark, or with one that says that order does not matter, it is this machine's, as in NumPy.
  const bool marked = !descr.empty() && std::string_view("<>=|").find(descr.front()) != std::string_view::npos;
  const std::string_view code = marked ? descr.substr(1) : descr;
  const auto parts = type_called(code, complex_codes);
  const auto type = parts ? parts : type_called(code, npy_codes);
  if (!type || *type == StoredType::bf16) return std::nullopt;
  const char mark = marked ? descr.front() : '=';
  if (mark == '<') return Descr{*type, std::endian::little, parts.has_value()};
  return Descr{*type, mark == '>' ? std::endian::big : std::endian::native, parts.has_value()};
}

std::string_view npy_code(DType dtype, bool is_complex) {
  const std::span<const std::pair<std::string_view, StoredType>> codes =
      is_complex ? std::span<const std::pair<std::string_view, StoredType>>(complex_codes) : npy_codes;
  const auto found =
      std::find_if(codes.begin(), codes.end(), [&](const auto& code) { return code.second == stored_type(dtype); });
  invariant(found != codes.end(), "every dtype has a code in .npy");
  return found->first;
}

UserError not_npy(const std::string& name) {
  return UserError(fmt::format("{}: not an .npy file: it does not begin with \\x93NUMPY", name));
}

/// What stands before the elements.
struct NpyFront {
  std::uint64_t size = 0;
  std::uint64_t elements = 0;  ///< the bytes that they take
  Descr descr;
  Shape shape;
  ElementOrder layout;
};

/// The dictionary, and in `size` how many bytes end with it.
std::string read_header_text(const std::string& name, const ByteSource& source, std::uint64_t& size) {
  std::array<std::byte, preamble> first{};
  source(first);
  if (!begins_as_npy(first)) throw not_npy(name);
  const auto version = std::to_integer<int>(first[npy_magic.size()]);
  if (version < 1 || version > 3) {
    throw UserError(fmt::format("{}: .npy version {} is unknown; versions 1, 2 and 3 are read", name, version));
  }
  std::array<std::byte, sizeof(std::uint32_t)> length{};
  const auto length_bytes = std::span(length).first(version == 1 ? sizeof(std::uint16_t) : sizeof(std::uint32_t));
  source(length_bytes);
  const std::size_t text_size = load_number<std::uint32_t>(length.data(), std::endian::little);
  if (text_size > longest_npy_header) {
    throw UserError(fmt::format("{}: damaged .npy header: {} bytes long, which is more than {}", name, text_size,
                                longest_npy_header));
  }
  std::string text(text_size, '\0');
  source(std::as_writable_bytes(std::span(text)));
  size = preamble + length_bytes.size() + text_size;
  return text;
}

NpyFront read_front(const std::string& name, const ByteSource& source) {
  std::uint64_t size = 0;
  const std::string text = read_header_text(name, source, size);
  NpyHeader header = HeaderParser(name, text).parse();
  const std::optional<Descr> descr = parse_descr(*header.descr);
  if (!descr) {
    throw UserError(
        fmt::format("{}: elements of type '{}' are not supported; save the array as float32 or int64, for example",
                    name, printable(*header.descr)));
  }
  Shape with_parts = *header.shape;
  if (descr->is_complex) with_parts.emplace_back(2);
  return {.size = size,
          .elements = stored_bytes(name, descr->type, with_parts),
          .descr = *descr,
          .shape = std::move(*header.shape),
          .layout = *header.fortran_order ? ElementOrder::column_major : ElementOrder::row_major};
}

}  // namespace

bool begins_as_npy(std::span<const std::byte> bytes) { return as_text(bytes).starts_with(npy_magic); }

StoredTensor parse_npy(const FileBytes& file) {
  if (!begins_as_npy(file.bytes)) throw not_npy(file.name);
  auto rest = file.bytes;
  NpyFront front = read_front(file.name, [&](std::span<std::byte> piece) {
    if (piece.size() > rest.size()) throw UserError(fmt::format("{}: the .npy header is cut short", file.name));
    std::copy_n(rest.begin(), piece.size(), piece.begin());
    rest = rest.subspan(piece.size());
  });
  // Arrays saved one after the other into one file: the first one is read, as numpy.load does.
  if (front.elements < rest.size()) rest = rest.first(front.elements);
  const auto stored = front.descr.is_complex ? stored_complex : stored_tensor;
  return stored({file.name, rest, file.owner}, front.descr.type, front.descr.order, std::move(front.shape),
                front.layout);
}

std::uint64_t npy_file_size(const std::string& name, const ByteSource& front) {
  const NpyFront read = read_front(name, front);
  return read.size + read.elements;
}

std::string npy_header(DType dtype, const Shape& with_parts, bool is_complex) {
  const std::string_view code = npy_code(dtype, is_complex);
  Shape shape = with_parts;
  if (is_complex) shape.pop_back();
  const char order = size_of(dtype) == 1 ? '|' : '<';
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}", order, code, to_string(shape));
  constexpr std::size_t alignment = 64;  // so that the elements are aligned where the file is mapped
  const std::size_t before = preamble + sizeof(std::uint16_t);
  text.append((alignment - (before + text.size() + 1) % alignment) % alignment, ' ');
  text += '\n';
  invariant(text.size() <= 0xFFFF, "max_rank extents fit in a header of version 1");

  std::string header(npy_magic);
  header += {'\1', '\0'};
  append_number(header, static_cast<std::uint16_t>(text.size()), std::endian::little);
  return header + text;
}

FileLayout npy_layout(DType dtype, const Shape& shape, bool is_complex) {
  const std::string header = npy_header(dtype, shape, is_complex);
  return {header, {header.size()}, header.size() + stored_bytes("a .npy", stored_type(dtype), shape)};
}

void write_npy(const Tensor& tensor, const ByteSink& sink, bool is_complex) {
  sink(as_byte_span(npy_header(tensor.dtype(), tensor.shape(), is_complex)));
  stream_elements(tensor, std::endian::little, sink);
}

}  // namespace einrel
