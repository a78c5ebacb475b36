#include "tensor/inflate.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <new>

#include "base/error.h"
#include "base/text.h"
#include "base/unnamed_file.h"

namespace einrel {
namespace {

constexpr std::uint64_t most_expansion = 1032;  // 258 bytes for 2 bits
/// zlib counts in 32 bits, so longer pieces are filled bit by bit.
constexpr std::size_t most_at_once = std::size_t{1} << 30U;
/// Blocks and gzip's members may be empty, its header may hold a name and a comment of any length, and zeros may
/// follow. Compressors write a few such bytes; a file of gigabytes of them is not read through.
constexpr std::size_t most_in_vain = std::size_t{1} << 20U;
constexpr std::array gzip_magic{std::byte{0x1f}, std::byte{0x8b}};

UserError damaged(const std::string& name) {
  return UserError(fmt::format("{}: the compressed data are damaged or cut short", name));
}

std::shared_ptr<std::byte[]> room_on_disk(const std::string& name, std::uint64_t size, const std::string& folder) {
  const auto with_reason = [&](const std::exception& refused) {
    return fmt::format("{}; {} is decompressed there, to {}: free as much, or name another folder", refused.what(),
                       name, bytes_text(static_cast<std::int64_t>(size)));
  };
  try {
    return UnnamedFile(folder).map(static_cast<std::int64_t>(size));
  } catch (const UserError& refused) {
    throw UserError(with_reason(refused));
  } catch (const RunError& refused) {
    throw RunError(with_reason(refused));
  }
}

}  // namespace

void check_expansion(const std::string& name, std::uint64_t size, std::size_t compressed) {
  if (size / most_expansion > compressed) {
    throw UserError(
        fmt::format("{}: {} bytes cannot hold {} compressed ones; the file is damaged", name, compressed, size));
  }
}

std::shared_ptr<std::byte[]> room_to_inflate(const std::string& name, std::uint64_t size, std::size_t compressed,
                                             const InflateFolder& folder) {
  check_expansion(name, size, compressed);
  if (folder && size > 0) return room_on_disk(name, size, *folder);
  try {
    return std::make_shared_for_overwrite<std::byte[]>(size);
  } catch (const std::bad_alloc&) {
    throw RunError(fmt::format("no memory to decompress {}: it needs {} bytes", name, size));
  }
}

struct Inflater::State {
  z_stream stream{};
};

Inflater::Inflater(const std::string& name, std::span<const std::byte> compressed, Wrapper wrapper)
    : name_(name), rest_(compressed), wrapper_(wrapper), state_(std::make_unique<State>()) {
  const int window_bits = wrapper == Wrapper::gzip ? 15 + 16 : -15;  // as inflateInit2 wants it said
  if (inflateInit2(&state_->stream, window_bits) != Z_OK) throw RunError("no memory to decompress " + name);
}

Inflater::~Inflater() { inflateEnd(&state_->stream); }

std::size_t Inflater::step(std::span<std::byte> out) {
  z_stream& stream = state_->stream;
  const auto in = rest_.first(std::min(rest_.size(), most_in_vain));
  const auto room = out.first(std::min(out.size(), most_at_once));
  // zlib only reads through next_in; its type predates const.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(in.data()));
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(room.data());
  stream.avail_out = static_cast<uInt>(room.size());
  const int result = inflate(&stream, Z_NO_FLUSH);
  if (result == Z_MEM_ERROR) throw RunError("no memory to decompress " + name_);
  if (result != Z_OK && result != Z_STREAM_END) throw damaged(name_);  // Z_BUF_ERROR: no input left
  const std::size_t taken = in.size() - stream.avail_in;
  const std::size_t given = room.size() - stream.avail_out;
  rest_ = rest_.subspan(taken);
  in_vain_ = given == 0 ? in_vain_ + taken : 0;
  if (result == Z_STREAM_END) end_stream();
  if (!ended_ && in_vain_ >= most_in_vain) throw damaged(name_);
  return given;
}

void Inflater::end_stream() {
  ended_ = true;
  if (wrapper_ != Wrapper::gzip) return;
  if (rest_.size() >= gzip_magic.size() && std::equal(gzip_magic.begin(), gzip_magic.end(), rest_.begin())) {
    inflateReset(&state_->stream);
    ended_ = false;
  } else if (rest_.size() <= most_in_vain &&
             std::all_of(rest_.begin(), rest_.end(), [](std::byte byte) { return byte == std::byte{0}; })) {
    rest_ = {};
  }
}

void Inflater::read(std::span<std::byte> out) {
  while (!out.empty()) {
    if (ended_) throw damaged(name_);
    out = out.subspan(step(out));
  }
}

void Inflater::finish() {
  std::byte beyond{};
  while (!ended_) {
    if (step({&beyond, 1}) != 0) throw UserError(fmt::format("{}: more data than its header says", name_));
  }
  if (!rest_.empty()) throw UserError(fmt::format("{}: {} bytes after the compressed data", name_, rest_.size()));
}

}  // namespace einrel
