#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "tensor/inflate.h"
#include "tensor/stream.h"

namespace einrel {

/// One member of a zip archive as the central directory describes it (PKWARE's APPNOTE, 4.3.12 and 4.5.3).
struct ZipMember {
  std::string name;
  std::uint16_t flags = 0;
  std::uint16_t method = 0;
  std::uint32_t crc = 0;
  std::uint64_t compressed_size = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;  ///< of its local header in the archive
};

/// The central directory, with 64-bit sizes where the archive has them. Every member starts inside the
/// archive and its compressed bytes end before the next member and before the directory. Throws UserError,
/// naming the archive, when the directory is damaged, when two members have one name or overlap, or when a
/// name leads outside a folder ("/a", "../a"). O(n log n).
std::vector<ZipMember> parse_zip_directory(const FileBytes& archive);

/// How many of a member's bytes are wanted, as its first ones say.
using WantedBytes = std::function<std::uint64_t(const ByteSource&)>;

/// The contents of a member, called `name` in messages. Stored: a view of the archive, which is not
/// read here (that would spoil mapping), so its checksum is not verified. Deflated: decompressed, as room_to_inflate
/// gives room, as far as `wanted`, whatever the directory says, and the checksum verified where that is all. Throws
/// UserError when damaged, encrypted, compressed in another way, or when the directory gives it less than is wanted,
/// and as `wanted` does; RunError when there is no room for it.
FileBytes open_zip_member(const FileBytes& archive, const ZipMember& member, const std::string& name,
                          const WantedBytes& wanted, const InflateFolder& folder = {});

/// Fills `front` with the first bytes of a member, without reading the others. False where it has fewer. Throws as
/// open_zip_member does, but for the checksum, which is not looked at.
bool read_zip_member_front(const FileBytes& archive, const ZipMember& member, std::span<std::byte> front);

/// Whether `name` may be a member: UTF-8 without control characters, at most 65535 bytes, not leading outside
/// a folder ("/a", "../a").
bool is_safe_member_name(const std::string& name);

/// What stands before a stored member's bytes. With sizes of 2^32-1 or more: in zip64 form.
std::string zip_local_header(const ZipMember& member);
/// Where in zip_local_header the checksum stands, to fill it in when the bytes have gone by.
inline constexpr std::uint64_t zip_crc_offset = 14;
/// What stands after the last member: the directory, which will start at `offset`, and its end record.
std::string zip_directory(const std::vector<ZipMember>& members, std::uint64_t offset);

}  // namespace einrel
