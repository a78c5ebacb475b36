#include "tensor/npz.h"

#include <fmt/format.h>
#include <zlib.h>

#include "base/error.h"
#include "base/text.h"
#include "tensor/bytes.h"
#include "tensor/npy.h"

namespace einrel {
namespace {

constexpr std::string_view suffix = ".npy";

}  // namespace

NpzFile parse_npz(const FileBytes& file) {
  NpzFile npz{file, {}, {}};
  for (ZipMember& member : parse_zip_directory(file)) {
    if (!member.name.ends_with(suffix)) continue;
    npz.names.push_back(member.name.substr(0, member.name.size() - suffix.size()));
    npz.members.push_back(std::move(member));
  }
  return npz;
}

StoredTensor open_tensor(const NpzFile& npz, std::size_t index) {
  const std::string name = fmt::format("{}:{}", npz.file.name, printable(npz.names[index]));
  return parse_npy(open_zip_member(npz.file, npz.members[index], name));
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
    const std::size_t header_size = npy_header(named.tensor.dtype(), named.tensor.shape()).size();
    ZipMember member{.name = named.name + std::string(suffix), .offset = offset};
    member.size = header_size + static_cast<std::uint64_t>(named.tensor.byte_count());
    member.compressed_size = member.size;
    const std::string header = zip_local_header(member);
    file.write(as_byte_span(header));

    uLong crc = 0;
    write_npy(named.tensor, [&](std::span<const std::byte> bytes) {
      crc = crc32_z(crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
      file.write(bytes);
    });
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
