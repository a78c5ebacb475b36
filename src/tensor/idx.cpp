#include "tensor/idx.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "tensor/bytes.h"
#include "tensor/inflate.h"

namespace einrel {
namespace {

constexpr std::size_t magic_size = 4;

constexpr std::array<std::pair<std::uint8_t, StoredType>, 6> idx_codes{{{0x08, StoredType::u8},
                                                                        {0x09, StoredType::i8},
                                                                        {0x0B, StoredType::i16},
                                                                        {0x0C, StoredType::i32},
                                                                        {0x0D, StoredType::f32},
                                                                        {0x0E, StoredType::f64}}};

/// What a tensor of ours is written as.
std::optional<std::uint8_t> idx_code(DType dtype) {
  const StoredType wanted = dtype == DType::boolean ? StoredType::u8 : stored_type(dtype);
  const auto* const found =
      std::find_if(idx_codes.begin(), idx_codes.end(), [&](const auto& code) { return code.second == wanted; });
  if (found == idx_codes.end()) return std::nullopt;
  return found->first;
}

struct Magic {
  StoredType type;
  std::size_t rank;
};

Magic parse_magic(const std::string& name, std::span<const std::byte, magic_size> bytes) {
  const auto code = std::to_integer<std::uint8_t>(bytes[2]);
  const auto* const found =
      std::find_if(idx_codes.begin(), idx_codes.end(), [&](const auto& entry) { return entry.first == code; });
  if (bytes[0] != std::byte{0} || bytes[1] != std::byte{0} || found == idx_codes.end()) {
    throw UserError(fmt::format("{}: not an idx file: it does not begin with 0, 0 and an element type", name));
  }
  return {found->second, std::to_integer<std::size_t>(bytes[3])};
}

Shape parse_extents(std::span<const std::byte> bytes) {
  Shape shape;
  for (; !bytes.empty(); bytes = bytes.subspan(sizeof(std::uint32_t))) {
    shape.emplace_back(static_cast<std::int64_t>(load_number<std::uint32_t>(bytes.data(), std::endian::big)));
  }
  return shape;
}

std::string header_of(const Tensor& tensor) {
  const std::optional<std::uint8_t> code = idx_code(tensor.dtype());
  invariant(code && tensor.rank() <= max_rank && idx_can_hold(tensor.shape()), "checked before idx is written");
  std::string header{'\0', '\0', static_cast<char>(*code), static_cast<char>(tensor.rank())};
  for (const Extent extent : tensor.shape()) {
    append_number(header, static_cast<std::uint32_t>(extent.value()), std::endian::big);
  }
  return header;
}

/// A gzip stream on its way to `sink`.
class GzipWriter {
 public:
  explicit GzipWriter(const ByteSink& sink) : sink_(sink) {
    constexpr int window_bits = 15 + 16;  // the largest window, and gzip's header
    constexpr int memory_level = 8;
    const int result =
        deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits, memory_level, Z_DEFAULT_STRATEGY);
    if (result != Z_OK) throw RunError("no memory to compress an idx file");
  }
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;
  ~GzipWriter() { deflateEnd(&stream_); }

  void write(std::span<const std::byte> bytes) { deflate_all(bytes, Z_NO_FLUSH); }
  void finish() { deflate_all({}, Z_FINISH); }

 private:
  /// `bytes` is at most a piece of stream_elements, so it fits zlib's 32-bit counters.
  void deflate_all(std::span<const std::byte> bytes, int flush) {
    // zlib only reads through next_in; its type predates const.
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      const int result = deflate(&stream_, flush);
      invariant(result != Z_STREAM_ERROR, "the deflate stream is consistent");
      sink_(std::span(out_).first(out_.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
  }

  const ByteSink& sink_;
  z_stream stream_{};
  std::array<std::byte, 1U << 16U> out_{};
};

}  // namespace

StoredTensor parse_idx(const FileBytes& file) {
  const auto cut_short = [&] { return UserError(fmt::format("{}: the idx header is cut short", file.name)); };
  if (file.bytes.size() < magic_size) throw cut_short();
  const Magic magic = parse_magic(file.name, file.bytes.first<magic_size>());
  const std::size_t extents = magic.rank * sizeof(std::uint32_t);
  if (file.bytes.size() - magic_size < extents) throw cut_short();
  Shape shape = parse_extents(file.bytes.subspan(magic_size, extents));
  const FileBytes data{file.name, file.bytes.subspan(magic_size + extents), file.owner};
  return stored_tensor(data, magic.type, std::endian::big, std::move(shape), ElementOrder::row_major);
}

StoredTensor parse_idx_gz(const FileBytes& file, const InflateFolder& folder) {
  Inflater inflater(file.name, file.bytes, Inflater::Wrapper::gzip);
  std::array<std::byte, magic_size> start{};
  inflater.read(start);
  const Magic magic = parse_magic(file.name, start);
  std::vector<std::byte> extents(magic.rank * sizeof(std::uint32_t));
  inflater.read(extents);
  Shape shape = parse_extents(extents);

  const std::uint64_t size = stored_bytes(file.name, magic.type, shape);
  auto room = room_to_inflate(file.name, size, file.bytes.size(), folder);
  const std::span<std::byte> bytes(room.get(), size);
  inflater.read(bytes);
  inflater.finish();
  return stored_tensor({file.name, bytes, std::move(room)}, magic.type, std::endian::big, std::move(shape),
                       ElementOrder::row_major);
}

bool idx_can_hold(DType dtype) { return idx_code(dtype).has_value(); }

bool idx_can_hold(const Shape& shape) {
  return std::all_of(shape.begin(), shape.end(),
                     [](Extent extent) { return std::in_range<std::int32_t>(extent.value()); });
}

void write_idx(const Tensor& tensor, const ByteSink& sink) {
  sink(as_byte_span(header_of(tensor)));
  stream_elements(tensor, std::endian::big, sink);
}

void write_idx_gz(const Tensor& tensor, const ByteSink& sink) {
  GzipWriter gzip(sink);
  write_idx(tensor, [&](std::span<const std::byte> bytes) { gzip.write(bytes); });
  gzip.finish();
}

}  // namespace einrel
