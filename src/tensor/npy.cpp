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
  const auto type = type_called(marked ? descr.substr(1) : descr, npy_codes);
  if (!type || *type == StoredType::bf16) return std::nullopt;
  const char mark = marked ? descr.front() : '=';
  if (mark == '<') return Descr{*type, std::endian::little};
  return Descr{*type, mark == '>' ? std::endian::big : std::endian::native};
}

std::string_view npy_code(DType dtype) {
  const auto* const found = std::find_if(npy_codes.begin(), npy_codes.end(),
                                         [&](const auto& code) { return code.second == stored_type(dtype); });
  invariant(found != npy_codes.end(), "every dtype has a code in .npy");
  return found->first;
}

/// The part of the file that holds the dictionary.
std::string_view npy_header_text(const FileBytes& file) {
  const std::string_view all = as_text(file.bytes);
  if (!begins_as_npy(file.bytes)) {
    throw UserError(fmt::format("{}: not an .npy file: it does not begin with \\x93NUMPY", file.name));
  }
  const auto cut_short = [&] { return UserError(fmt::format("{}: the .npy header is cut short", file.name)); };
  if (all.size() < preamble) throw cut_short();
  const int version = static_cast<unsigned char>(all[npy_magic.size()]);
  if (version < 1 || version > 3) {
    throw UserError(fmt::format("{}: .npy version {} is unknown; versions 1, 2 and 3 are read", file.name, version));
  }
  const std::size_t begin = preamble + (version == 1 ? 2 : 4);
  if (all.size() < begin) throw cut_short();
  const std::byte* const length = file.bytes.data() + preamble;
  const std::size_t size = version == 1 ? load_number<std::uint16_t>(length, std::endian::little)
                                        : load_number<std::uint32_t>(length, std::endian::little);
  if (size > all.size() - begin) throw cut_short();
  return all.substr(begin, size);
}

}  // namespace

bool begins_as_npy(std::span<const std::byte> bytes) { return as_text(bytes).starts_with(npy_magic); }

StoredTensor parse_npy(const FileBytes& file) {
  const std::string_view text = npy_header_text(file);
  NpyHeader header = HeaderParser(file.name, text).parse();
  const std::optional<Descr> descr = parse_descr(*header.descr);
  if (!descr) {
    throw UserError(
        fmt::format("{}: elements of type '{}' are not supported; save the array as float32 or int64, for example",
                    file.name, printable(*header.descr)));
  }
  const auto begin = static_cast<std::size_t>(text.data() + text.size() - as_text(file.bytes).data());
  auto elements = file.bytes.subspan(begin);
  // Arrays saved one after the other into one file: the first one is read, as numpy.load does.
  const std::uint64_t needed = stored_bytes(file.name, descr->type, *header.shape);
  if (needed < elements.size()) elements = elements.first(needed);
  const FileBytes data{file.name, elements, file.owner};
  const auto layout = *header.fortran_order ? ElementOrder::column_major : ElementOrder::row_major;
  return stored_tensor(data, descr->type, descr->order, std::move(*header.shape), layout);
}

std::string npy_header(DType dtype, const Shape& shape) {
  const std::string_view code = npy_code(dtype);
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

void write_npy(const Tensor& tensor, const ByteSink& sink) {
  sink(as_byte_span(npy_header(tensor.dtype(), tensor.shape())));
  stream_elements(tensor, std::endian::little, sink);
}

}  // namespace einrel
