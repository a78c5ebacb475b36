#include "tensor/zip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "tensor/bytes.h"
#include "tensor/inflate.h"

namespace einrel {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t member_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator64_signature = 0x07064b50;
constexpr std::size_t local_size = 30;
constexpr std::size_t member_size = 46;
constexpr std::size_t end_size = 22;
constexpr std::size_t end64_size = 56;
constexpr std::size_t locator64_size = 20;
constexpr std::size_t longest_comment = 0xFFFF;
/// A field that holds this has its value in the zip64 record instead.
constexpr std::uint32_t elsewhere = 0xFFFFFFFF;
constexpr std::uint16_t elsewhere16 = 0xFFFF;
constexpr std::uint16_t zip64_extra = 0x0001;
constexpr std::uint16_t stored_method = 0;
constexpr std::uint16_t deflated_method = 8;
constexpr std::uint16_t encrypted_flag = 0x0001;
constexpr std::uint16_t utf8_flag = 0x0800;

UserError damaged(const std::string& name, const std::string& what) {
  return UserError(fmt::format("{}: damaged zip archive: {}", name, what));
}

template <class Number>
Number load(std::span<const std::byte> from, std::size_t at) {
  invariant(at + sizeof(Number) <= from.size(), "a field of a record that was measured before");
  return load_number<Number>(from.data() + at, std::endian::little);
}

/// The `size` bytes at `offset`, or nullopt when they are not all there.
std::optional<std::span<const std::byte>> piece(std::span<const std::byte> of, std::uint64_t offset,
                                                std::uint64_t size) {
  if (offset > of.size() || size > of.size() - offset) return std::nullopt;
  return of.subspan(offset, size);
}

/// Where the central directory lies and how many members it lists.
struct Directory {
  std::uint64_t count;
  std::uint64_t size;
  std::uint64_t offset;
};

/// The end record stands last, but for a comment of up to 64 KiB.
std::uint64_t find_end_record(const FileBytes& archive) {
  const auto bytes = archive.bytes;
  for (std::size_t comment = 0; comment <= longest_comment && comment + end_size <= bytes.size(); ++comment) {
    const std::size_t at = bytes.size() - end_size - comment;
    if (load<std::uint32_t>(bytes, at) == end_signature && load<std::uint16_t>(bytes, at + 20) == comment) return at;
  }
  throw UserError(fmt::format("{}: not a zip archive (.npz), or cut short: it has no end record", archive.name));
}

Directory parse_end64(const FileBytes& archive, std::uint64_t end) {
  if (end < locator64_size) throw damaged(archive.name, "it has no zip64 end record");
  const auto locator = archive.bytes.subspan(end - locator64_size, locator64_size);
  const auto record = piece(archive.bytes, load<std::uint64_t>(locator, 8), end64_size);
  if (load<std::uint32_t>(locator, 0) != locator64_signature || !record ||
      load<std::uint32_t>(*record, 0) != end64_signature) {
    throw damaged(archive.name, "it has no zip64 end record");
  }
  const bool split = load<std::uint32_t>(*record, 16) != 0 || load<std::uint32_t>(*record, 20) != 0;
  if (split) throw UserError(fmt::format("{}: zip archives in several parts are not supported", archive.name));
  return {load<std::uint64_t>(*record, 32), load<std::uint64_t>(*record, 40), load<std::uint64_t>(*record, 48)};
}

Directory find_directory(const FileBytes& archive) {
  const std::uint64_t end = find_end_record(archive);
  const auto record = archive.bytes.subspan(end, end_size);
  Directory directory{load<std::uint16_t>(record, 10), load<std::uint32_t>(record, 12),
                      load<std::uint32_t>(record, 16)};
  if (directory.count == elsewhere16 || directory.size == elsewhere || directory.offset == elsewhere) {
    directory = parse_end64(archive, end);
  } else if (load<std::uint16_t>(record, 4) != 0 || load<std::uint16_t>(record, 6) != 0) {
    throw UserError(fmt::format("{}: zip archives in several parts are not supported", archive.name));
  }
  if (directory.offset > end || directory.size > end - directory.offset) {
    throw damaged(archive.name, "its directory lies outside the file");
  }
  return directory;
}

/// Replaces sizes and offset by those of the zip64 extra field, which lists only what does not fit.
void apply_zip64(const FileBytes& archive, ZipMember& member, std::span<const std::byte> extra) {
  std::vector<std::uint64_t*> wanted;
  for (std::uint64_t* const field : {&member.size, &member.compressed_size, &member.offset}) {
    if (*field == elsewhere) wanted.push_back(field);
  }
  if (wanted.empty()) return;
  while (extra.size() >= 4) {
    const auto id = load<std::uint16_t>(extra, 0);
    const auto content = piece(extra, 4, load<std::uint16_t>(extra, 2));
    if (!content) break;
    if (id == zip64_extra && content->size() >= wanted.size() * sizeof(std::uint64_t)) {
      for (std::size_t i = 0; i < wanted.size(); ++i) *wanted[i] = load<std::uint64_t>(*content, 8 * i);
      return;
    }
    extra = extra.subspan(4 + content->size());
  }
  throw damaged(archive.name, fmt::format("the 64-bit sizes of '{}' are missing", printable(member.name)));
}

/// Reads one entry and moves `rest` past it.
ZipMember parse_member(const FileBytes& archive, std::span<const std::byte>& rest) {
  const auto cut_short = [&] { return damaged(archive.name, "its directory is cut short"); };
  if (rest.size() < member_size || load<std::uint32_t>(rest, 0) != member_signature) throw cut_short();
  const std::size_t name_size = load<std::uint16_t>(rest, 28);
  const std::size_t extra_size = load<std::uint16_t>(rest, 30);
  const std::size_t comment_size = load<std::uint16_t>(rest, 32);
  const auto name = piece(rest, member_size, name_size);
  const auto extra = piece(rest, member_size + name_size, extra_size);
  const auto comment = piece(rest, member_size + name_size + extra_size, comment_size);
  if (!name || !extra || !comment) throw cut_short();

  ZipMember member{.name = std::string(as_text(*name)),
                   .flags = load<std::uint16_t>(rest, 8),
                   .method = load<std::uint16_t>(rest, 10),
                   .crc = load<std::uint32_t>(rest, 16),
                   .compressed_size = load<std::uint32_t>(rest, 20),
                   .size = load<std::uint32_t>(rest, 24),
                   .offset = load<std::uint32_t>(rest, 42)};
  if (!is_safe_member_name(member.name)) {
    throw damaged(archive.name, fmt::format("'{}' is no name for a member", printable(member.name)));
  }
  apply_zip64(archive, member, *extra);
  rest = rest.subspan(member_size + name_size + extra_size + comment_size);
  return member;
}

void check_names_differ(const FileBytes& archive, const std::vector<ZipMember>& members) {
  std::vector<std::string_view> names;
  for (const ZipMember& member : members) names.push_back(member.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) throw damaged(archive.name, fmt::format("two members are named '{}'", printable(*twice)));
}

/// Members that share bytes are how small archives pretend to be huge.
void check_disjoint(const FileBytes& archive, const std::vector<ZipMember>& members, std::uint64_t directory) {
  std::vector<const ZipMember*> by_offset;
  for (const ZipMember& member : members) by_offset.push_back(&member);
  std::sort(by_offset.begin(), by_offset.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  for (std::size_t i = 0; i < by_offset.size(); ++i) {
    const ZipMember& member = *by_offset[i];
    const std::uint64_t end = i + 1 < by_offset.size() ? by_offset[i + 1]->offset : directory;
    const bool inside = member.offset <= end && end <= directory && end - member.offset >= local_size &&
                        member.compressed_size <= end - member.offset - local_size;
    if (!inside) {
      throw damaged(archive.name, fmt::format("'{}' does not lie where the directory says", printable(member.name)));
    }
  }
}

/// The member's bytes as they are in the archive, compressed or not.
std::span<const std::byte> raw_bytes(const FileBytes& archive, const ZipMember& member, const std::string& name) {
  const auto header = piece(archive.bytes, member.offset, local_size);
  if (!header || load<std::uint32_t>(*header, 0) != local_signature) {
    throw UserError(fmt::format("{}: damaged zip archive: no header where the directory says", name));
  }
  const std::size_t name_size = load<std::uint16_t>(*header, 26);
  const std::size_t extra_size = load<std::uint16_t>(*header, 28);
  const auto local_name = piece(archive.bytes, member.offset + local_size, name_size);
  const auto bytes = piece(archive.bytes, member.offset + local_size + name_size + extra_size, member.compressed_size);
  if (!local_name || !bytes || as_text(*local_name) != member.name) {
    throw UserError(fmt::format("{}: damaged zip archive: its header and the directory differ", name));
  }
  return *bytes;
}

std::uint32_t checksum(std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// Whether the sizes of a member, or its place, need 64 bits.
bool has_long_sizes(const ZipMember& member) { return std::max(member.size, member.compressed_size) >= elsewhere; }
bool has_long_offset(const ZipMember& member) { return member.offset >= elsewhere; }

template <class Number, class Value>
void put(std::string& to, Value value) {
  append_number(to, static_cast<Number>(value), std::endian::little);
}

/// The fields that the local header and the directory share, from "version needed" to "length of the name".
void put_common(std::string& to, const ZipMember& member, bool zip64) {
  const bool ascii = std::all_of(member.name.begin(), member.name.end(), [](char byte) { return byte >= 0; });
  put<std::uint16_t>(to, zip64 ? 45 : 20);
  put<std::uint16_t>(to, ascii ? 0 : utf8_flag);
  put<std::uint16_t>(to, stored_method);
  put<std::uint16_t>(to, 0);     // time: midnight
  put<std::uint16_t>(to, 0x21);  // date: 1980-01-01, the same in every run
  put<std::uint32_t>(to, member.crc);
  put<std::uint32_t>(to, has_long_sizes(member) ? elsewhere : member.size);
  put<std::uint32_t>(to, has_long_sizes(member) ? elsewhere : member.size);
  put<std::uint16_t>(to, member.name.size());
}

void put_end64(std::string& to, std::uint64_t count, std::uint64_t size, std::uint64_t offset) {
  put<std::uint32_t>(to, end64_signature);
  put<std::uint64_t>(to, end64_size - 12);  // what follows this field
  put<std::uint16_t>(to, 45);
  put<std::uint16_t>(to, 45);
  put<std::uint32_t>(to, 0);
  put<std::uint32_t>(to, 0);
  put<std::uint64_t>(to, count);
  put<std::uint64_t>(to, count);
  put<std::uint64_t>(to, size);
  put<std::uint64_t>(to, offset);
  put<std::uint32_t>(to, locator64_signature);
  put<std::uint32_t>(to, 0);
  put<std::uint64_t>(to, offset + size);
  put<std::uint32_t>(to, 1);
}

void put_directory_entry(std::string& to, const ZipMember& member) {
  std::string zip64;
  if (has_long_sizes(member)) {
    put<std::uint64_t>(zip64, member.size);
    put<std::uint64_t>(zip64, member.size);
  }
  if (has_long_offset(member)) put<std::uint64_t>(zip64, member.offset);
  put<std::uint32_t>(to, member_signature);
  put<std::uint16_t>(to, 3U << 8U | 45U);  // made on Unix, so that the permissions below count
  put_common(to, member, !zip64.empty());
  put<std::uint16_t>(to, zip64.empty() ? 0 : 4 + zip64.size());
  put<std::uint16_t>(to, 0);  // no comment
  put<std::uint16_t>(to, 0);  // part 0
  put<std::uint16_t>(to, 0);
  put<std::uint32_t>(to, 0100644U << 16U);  // an ordinary file, rw-r--r--
  put<std::uint32_t>(to, has_long_offset(member) ? elsewhere : member.offset);
  to += member.name;
  if (zip64.empty()) return;
  put<std::uint16_t>(to, zip64_extra);
  put<std::uint16_t>(to, zip64.size());
  to += zip64;
}

/// The same of a member that open_zip_member can read, and a stored one as long as it says.
std::span<const std::byte> readable_bytes(const FileBytes& archive, const ZipMember& member, const std::string& name) {
  if ((member.flags & encrypted_flag) != 0) throw UserError(fmt::format("{}: encrypted members are not read", name));
  const auto bytes = raw_bytes(archive, member, name);
  if (member.method != stored_method && member.method != deflated_method) {
    throw UserError(
        fmt::format("{}: compression method {} is not supported; numpy.savez and savez_compressed use 0 and 8", name,
                    member.method));
  }
  if (member.method == stored_method && member.size != member.compressed_size) {
    throw UserError(fmt::format("{}: damaged zip archive: a stored member with two sizes", name));
  }
  return bytes;
}

FileBytes inflated(const ZipMember& member, const std::string& name, std::span<const std::byte> compressed,
                   const WantedBytes& wanted, const InflateFolder& folder) {
  check_expansion(name, member.size, compressed.size());
  Inflater inflater(name, compressed, Inflater::Wrapper::none);
  const auto at_most = [&](std::uint64_t size) {
    if (size <= member.size) return;
    throw UserError(
        fmt::format("{}: its header asks for {} bytes, but the directory of the archive gives it {}; "
                    "the file is damaged or cut short",
                    name, size, member.size));
  };
  std::vector<std::byte> front;
  const std::uint64_t size = wanted([&](std::span<std::byte> piece) {
    at_most(front.size() + piece.size());
    inflater.read(piece);
    front.insert(front.end(), piece.begin(), piece.end());
  });
  invariant(size >= front.size(), "a header is part of what it describes");
  at_most(size);
  auto room = room_to_inflate(name, size, compressed.size(), folder);
  const std::span<std::byte> bytes(room.get(), size);
  std::copy(front.begin(), front.end(), bytes.begin());
  inflater.read(bytes.subspan(front.size()));
  if (size < member.size) {  // what is behind is not read, but there must be some
    std::byte behind{};
    inflater.read({&behind, 1});
    return {name, bytes, std::move(room)};
  }
  inflater.finish();
  if (checksum(bytes) != member.crc) {
    throw UserError(fmt::format("{}: its checksum (CRC) is wrong; the file is damaged", name));
  }
  return {name, bytes, std::move(room)};
}

}  // namespace

bool is_safe_member_name(const std::string& name) {
  const auto is_control = [](char byte) { return static_cast<unsigned char>(byte) < 0x20 || byte == 0x7F; };
  if (name.empty() || name.size() > 0xFFFF || name.front() == '/' || !is_utf8(name)) return false;
  if (std::any_of(name.begin(), name.end(), is_control)) return false;
  const std::string framed = "/" + name + "/";
  return framed.find("/../") == std::string::npos && framed.find('\\') == std::string::npos;
}

std::vector<ZipMember> parse_zip_directory(const FileBytes& archive) {
  const Directory directory = find_directory(archive);
  auto rest = archive.bytes.subspan(directory.offset, directory.size);
  std::vector<ZipMember> members;
  while (!rest.empty()) members.push_back(parse_member(archive, rest));
  if (members.size() != directory.count) {
    throw damaged(archive.name, fmt::format("its directory lists {} members, not {}", members.size(), directory.count));
  }
  check_names_differ(archive, members);
  check_disjoint(archive, members, directory.offset);
  return members;
}

FileBytes open_zip_member(const FileBytes& archive, const ZipMember& member, const std::string& name,
                          const WantedBytes& wanted, const InflateFolder& folder) {
  const auto bytes = readable_bytes(archive, member, name);
  if (member.method == deflated_method) return inflated(member, name, bytes, wanted, folder);
  return {name, bytes, archive.owner};
}

bool read_zip_member_front(const FileBytes& archive, const ZipMember& member, std::span<std::byte> front) {
  const auto bytes = readable_bytes(archive, member, member.name);
  if (member.size < front.size()) return false;
  if (member.method == deflated_method)
    Inflater(member.name, bytes, Inflater::Wrapper::none).read(front);
  else
    std::copy_n(bytes.begin(), front.size(), front.begin());
  return true;
}

std::string zip_local_header(const ZipMember& member) {
  const bool zip64 = has_long_sizes(member);
  std::string header;
  put<std::uint32_t>(header, local_signature);
  put_common(header, member, zip64);
  put<std::uint16_t>(header, zip64 ? 20 : 0);
  header += member.name;
  if (zip64) {
    put<std::uint16_t>(header, zip64_extra);
    put<std::uint16_t>(header, 16);
    put<std::uint64_t>(header, member.size);
    put<std::uint64_t>(header, member.size);
  }
  return header;
}

std::string zip_directory(const std::vector<ZipMember>& members, std::uint64_t offset) {
  std::string directory;
  for (const ZipMember& member : members) put_directory_entry(directory, member);
  const std::uint64_t size = directory.size();
  const bool zip64 = members.size() >= elsewhere16 || size >= elsewhere || offset >= elsewhere;
  if (zip64) put_end64(directory, members.size(), size, offset);
  put<std::uint32_t>(directory, end_signature);
  put<std::uint16_t>(directory, 0);
  put<std::uint16_t>(directory, 0);
  put<std::uint16_t>(directory, zip64 ? elsewhere16 : members.size());
  put<std::uint16_t>(directory, zip64 ? elsewhere16 : members.size());
  put<std::uint32_t>(directory, zip64 ? elsewhere : size);
  put<std::uint32_t>(directory, zip64 ? elsewhere : offset);
  put<std::uint16_t>(directory, 0);
  return directory;
}

}  // namespace einrel
