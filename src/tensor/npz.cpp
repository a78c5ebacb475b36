#include "tensor/npz.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "tensor/bytes.h"
#include "tensor/npy.h"

namespace einrel {
namespace {

constexpr std::string_view suffix = ".npy";

bool is_npy(const FileBytes& archive, const ZipMember& member) {
  try {
    std::array<std::byte, npy_magic.size()> first{};
    return read_zip_member_front(archive, member, first) && begins_as_npy(first);
  } catch (const UserError&) {
    return false;  // nothing that we could read
  }
}

}  // namespace

NpzFile parse_npz(const FileBytes& file, const InflateFolder& folder) {
  NpzFile npz{file, {}, {}, folder};
  std::vector<ZipMember> members = parse_zip_directory(file);
  std::set<std::string> bare;  // tensors by their members' own names
  for (const ZipMember& member : members) {
    if (!member.name.ends_with(suffix) && is_npy(file, member)) bare.insert(member.name);
  }
  for (ZipMember& member : members) {
    std::string name = member.name;
    if (name.ends_with(suffix)) {
      name.resize(name.size() - suffix.size());
      if (bare.contains(name)) name += suffix;
    } else if (!bare.contains(name)) {
      continue;
    }
    npz.names.push_back(std::move(name));
    npz.members.push_back(std::move(member));
  }
  return npz;
}

StoredTensor open_tensor(const NpzFile& npz, std::size_t index) {
  const std::string name = fmt::format("{}:{}", npz.file.name, printable(npz.names[index]));
  return parse_npy(open_zip_member(
      npz.file, npz.members[index], name, [&](const ByteSource& front) { return npy_file_size(name, front); },
      npz.folder));
}

void check_npz_name(const std::string& name) {
  if (!name.empty() && is_safe_member_name(name + std::string(suffix))) return;
  throw UserError(fmt::format(
      "'{}' cannot be a tensor's name in an .npz file; use letters, digits, '_', '.' or '/' inside", printable(name)));
}

void write_npz(const std::vector<NamedTensor>& tensors, AtomicFile& file) {
  std::vector<ZipMember> members;
  std::uint64_t offset = 0;
  for (const NamedTensor& named : tensors) {
    const std::size_t header_size = npy_header(named.tensor.dtype(), named.tensor.shape(), named.is_complex).size();
    ZipMember member{.name = named.name + std::string(suffix), .offset = offset};
    member.size = header_size + static_cast<std::uint64_t>(named.tensor.byte_count());
    member.compressed_size = member.size;
    const std::string header = zip_local_header(member);
    file.write(as_byte_span(header));

    uLong crc = 0;
    const auto write = [&](std::span<const std::byte> bytes) {
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
      file.write(bytes);
    };
    write_npy(named.tensor, write, named.is_complex);
    member.crc = static_cast<std::uint32_t>(crc);
    std::string crc_bytes;
    append_number(crc_bytes, member.crc, std::endian::little);
    file.rewrite(offset + zip_crc_offset, as_byte_span(crc_bytes));

    offset += header.size() + member.size;
    members.push_back(std::move(member));
  }
  file.write(as_byte_span(zip_directory(members, offset)));
}

}  // namespace einrel
