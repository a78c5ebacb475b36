#include "tensor/tensor_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/file_error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "tensor/bytes.h"
#include "tensor/idx.h"
#include "tensor/npy.h"
#include "tensor/npz.h"
#include "tensor/safetensors.h"

namespace einrel {
namespace {

enum class FileFormat : std::uint8_t { npy, npz, safetensors, idx, idx_gz };

constexpr std::array<std::pair<std::string_view, FileFormat>, 5> extensions{{{".npy", FileFormat::npy},
                                                                             {".npz", FileFormat::npz},
                                                                             {".safetensors", FileFormat::safetensors},
                                                                             {".idx", FileFormat::idx},
                                                                             {".idx.gz", FileFormat::idx_gz}}};
constexpr std::string_view known_extensions = ".npy, .npz, .safetensors, .idx and .idx.gz";

bool is_archive(FileFormat format) { return format == FileFormat::npz || format == FileFormat::safetensors; }

std::optional<FileFormat> format_by_extension(const std::string& path) {
  for (const auto& [extension, format] : extensions) {
    if (path.ends_with(extension)) return format;
  }
  return std::nullopt;
}

std::optional<FileFormat> format_by_content(std::span<const std::byte> bytes) {
  const std::string_view text = as_text(bytes.first(std::min<std::size_t>(bytes.size(), 9)));
  if (text.starts_with("\x93NUMPY")) return FileFormat::npy;
  if (text.starts_with("PK")) return FileFormat::npz;
  if (text.starts_with("\x1f\x8b")) return FileFormat::idx_gz;
  if (text.starts_with(std::string_view("\0\0", 2))) return FileFormat::idx;
  if (text.size() == 9 && text.back() == '{') return FileFormat::safetensors;
  return std::nullopt;
}

FileFormat format_to_read(const std::string& path, const FileBytes& file) {
  if (const auto format = format_by_extension(path)) return *format;
  if (const auto format = format_by_content(file.bytes)) return *format;
  throw UserError(fmt::format("{}: neither its name nor its contents are those of a tensor file; {} are read",
                              file.name, known_extensions));
}

FileFormat format_to_write(const FileRef& file) {
  if (const auto format = format_by_extension(file.path)) return *format;
  throw UserError(fmt::format("cannot write '{}': the extension tells the format; use one of {}", to_string(file),
                              known_extensions));
}

/// "A, B, C and 7 more".
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 10;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) shown.push_back(printable(names[i]));
  const std::string list = fmt::format("{}", fmt::join(shown, ", "));
  return names.size() > most ? fmt::format("{} and {} more", list, names.size() - most) : list;
}

std::size_t find_member(const FileRef& file, const std::vector<std::string>& names) {
  const std::string path = printable(file.path);
  if (names.empty()) throw UserError(fmt::format("{} holds no tensor", path));
  if (file.member.empty()) {
    if (names.size() == 1) return 0;
    const bool named = format_by_extension(file.path).has_value();
    throw UserError(fmt::format("{} holds {} tensors; name one{}, as in {}:{} (it holds {})", path, names.size(),
                                named ? "" : " after giving the file its extension", named ? path : "w.npz",
                                printable(names.front()), some_of(names)));
  }
  const auto found = std::find(names.begin(), names.end(), file.member);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::string near = nearest_name(file.member, names);
  throw UserError(fmt::format("{} holds no tensor '{}'{}; it holds {}", path, printable(file.member),
                              near.empty() ? "" : fmt::format(" (did you mean '{}'?)", printable(near)),
                              some_of(names)));
}

template <class Archive>
StoredTensor open_in(const FileRef& file, const Archive& archive) {
  return open_tensor(archive, find_member(file, archive.names));
}

template <class Archive>
ArchiveContents contents_of(const Archive& archive, const std::set<std::string>& wanted) {
  ArchiveContents contents;
  for (std::size_t i = 0; i < archive.names.size(); ++i) {
    if (wanted.contains(archive.names[i]))
      contents.tensors[archive.names[i]] = open_tensor(archive, i);
    else
      contents.others.push_back(printable(archive.names[i]));
  }
  return contents;
}

void check_member(const FileRef& file, FileFormat format) {
  if (!is_archive(format)) {
    if (file.member.empty()) return;
    throw UserError(fmt::format("cannot write '{}': such a file holds one tensor, without a name", to_string(file)));
  }
  if (file.member.empty()) {
    throw UserError(fmt::format("cannot write '{0}': name the tensor in it, as in {0}:NAME", printable(file.path)));
  }
  if (format == FileFormat::npz) check_npz_name(file.member);
  if (format == FileFormat::safetensors) check_safetensors_name(file.member);
}

/// The tensors in an archive that is there; none when it is absent or no sound archive.
std::vector<std::string> names_in(const std::string& path, FileFormat format) {
  try {
    std::error_code unseen;
    if (!std::filesystem::exists(path, unseen)) return {};
    const FileBytes bytes = map_file(path);
    return format == FileFormat::npz ? parse_npz(bytes).names : parse_safetensors(bytes).names;
  } catch (const UserError&) {
    return {};
  }
}

/// Writing replaces the whole archive: refuse to drop tensors that the user has not named.
void check_keeps_members(const std::string& path, FileFormat format, const std::set<std::string>& written) {
  std::vector<std::string> lost;
  for (const std::string& name : names_in(path, format)) {
    if (written.count(name) == 0) lost.push_back(name);
  }
  if (lost.empty()) return;
  throw UserError(
      fmt::format("cannot write '{}': it holds other tensors, which would be lost ({}); choose another file",
                  printable(path), some_of(lost)));
}

bool is_idx(FileFormat format) { return format == FileFormat::idx || format == FileFormat::idx_gz; }

void check_dtype(const FileRef& file, FileFormat format, DType dtype) {
  const bool has_complex = format == FileFormat::npy || format == FileFormat::npz ||
                           (format == FileFormat::safetensors && dtype == DType::f32);
  if (file.is_complex && !has_complex) {
    throw UserError(fmt::format("cannot write '{}': {} files hold no {}; write .npy instead", to_string(file),
                                is_idx(format) ? "idx" : ".safetensors", dtype == DType::f32 ? "c64" : "c128"));
  }
  if (!is_idx(format) || idx_can_hold(dtype)) return;
  throw UserError(fmt::format("cannot write '{}': idx files hold f32, f64, i32 and bool, not {}; write .npy instead",
                              to_string(file), name_of(dtype)));
}

void check_shape(const FileRef& file, FileFormat format, DType dtype, const Shape& shape) {
  stored_bytes(to_string(file), stored_type(dtype), shape);
  if (!is_idx(format) || idx_can_hold(shape)) return;
  throw UserError(
      fmt::format("cannot write '{}': extents in idx files have 31 bits, shape {} needs more; write .npy instead",
                  to_string(file), to_string(shape)));
}

/// What becomes one file.
struct OutputFile {
  std::string path;
  FileFormat format;
  std::vector<NamedTensor> tensors;
};

std::vector<OutputFile> group_by_file(const FileTensors& outputs) {
  std::vector<OutputFile> files;
  std::vector<std::string> identities;
  for (const auto& [file, tensor] : outputs) {
    const std::string identity = identity_of(file.path);
    const auto known = std::find(identities.begin(), identities.end(), identity);
    const auto index = static_cast<std::size_t>(known - identities.begin());
    if (known == identities.end()) {
      identities.push_back(identity);
      files.push_back({file.path, format_to_write(file), {}});
    }
    files[index].tensors.push_back({file.member, tensor, file.is_complex});
  }
  return files;
}

void write_one(const OutputFile& output, AtomicFile& file) {
  const ByteSink sink = [&](std::span<const std::byte> bytes) { file.write(bytes); };
  switch (output.format) {
    case FileFormat::npy: return write_npy(output.tensors.front().tensor, sink, output.tensors.front().is_complex);
    case FileFormat::npz: return write_npz(output.tensors, file);
    case FileFormat::safetensors: return write_safetensors(output.tensors, sink);
    case FileFormat::idx: return write_idx(output.tensors.front().tensor, sink);
    case FileFormat::idx_gz: return write_idx_gz(output.tensors.front().tensor, sink);
  }
}

}  // namespace

std::string identity_of(const std::string& path) {
  std::error_code unresolved;
  const auto canonical = std::filesystem::weakly_canonical(absolute_path(through_links(path)), unresolved);
  return unresolved ? path : canonical.string();
}

FileRef parse_file_ref(std::string_view text) {
  FileRef file{std::string(text), ""};
  std::size_t split = std::string_view::npos;
  for (const std::string_view extension : {".npz:", ".safetensors:"}) {
    const std::size_t at = text.find(extension);
    if (at != std::string_view::npos) split = std::min(split, at + extension.size());
  }
  if (split != std::string_view::npos) file = {std::string(text.substr(0, split - 1)), std::string(text.substr(split))};
  if (file.path.empty()) throw UserError("a file name is missing");
  if (split == text.size())
    throw UserError(fmt::format("'{}': the name of a tensor is missing after ':'", printable(text)));
  return file;
}

std::string to_string(const FileRef& file) {
  const std::string path = printable(file.path);
  return file.member.empty() ? path : fmt::format("{}:{}", path, printable(file.member));
}

StoredTensor open_tensor(const FileRef& file, const InflateFolder& folder) {
  const FileBytes bytes = map_file(file.path);
  switch (format_to_read(file.path, bytes)) {
    case FileFormat::npy: return parse_npy(bytes);
    case FileFormat::npz: return open_in(file, parse_npz(bytes, folder));
    case FileFormat::safetensors: return open_in(file, parse_safetensors(bytes));
    case FileFormat::idx: return parse_idx(bytes);
    case FileFormat::idx_gz: return parse_idx_gz(bytes, folder);
  }
  throw Bug("a file format outside its enumeration");
}

bool is_archive(std::string_view text) {
  if (text.find('=') != std::string_view::npos) return false;
  const auto format = format_by_extension(std::string(text));
  return format && is_archive(*format);
}

ArchiveContents open_archive(const std::string& path, const std::set<std::string>& wanted,
                             const InflateFolder& folder) {
  const FileBytes bytes = map_file(path);
  if (format_to_read(path, bytes) == FileFormat::npz) return contents_of(parse_npz(bytes, folder), wanted);
  return contents_of(parse_safetensors(bytes), wanted);
}

void check_writable(const std::vector<std::pair<FileRef, DType>>& outputs) {
  std::set<std::pair<std::string, std::string>> seen;
  std::map<std::string, std::set<std::string>> archives;
  for (const auto& [file, dtype] : outputs) {
    const FileFormat format = format_to_write(file);
    check_member(file, format);
    check_dtype(file, format, dtype);
    check_replaceable(file.path);
    if (!seen.emplace(identity_of(file.path), file.member).second) {
      throw UserError(fmt::format("two outputs would be written to '{}'; give each its own name", to_string(file)));
    }
    if (is_archive(format)) archives[file.path].insert(file.member);
  }
  for (const auto& [path, members] : archives) check_keeps_members(path, format_to_write({path, ""}), members);
}

std::optional<FileLayout> layout_of(const std::vector<PlannedTensor>& planned) {
  const FileFormat format = format_to_write(planned.front().file);
  for (const auto& [file, dtype, shape] : planned) check_shape(file, format, dtype, shape);
  if (format == FileFormat::npy) {
    const PlannedTensor& only = planned.front();
    return npy_layout(only.dtype, only.shape, only.file.is_complex);
  }
  if (format != FileFormat::safetensors) return std::nullopt;
  std::vector<SafetensorsHead> heads;
  for (const auto& [file, dtype, shape] : planned) heads.push_back({file.member, dtype, shape, file.is_complex});
  return safetensors_layout(heads);
}

std::vector<AtomicFile> take_room(const std::vector<PlannedTensor>& planned) {
  std::map<std::string, std::uint64_t> bytes;  // by path
  for (const PlannedTensor& tensor : planned) {
    const FileFormat format = format_to_write(tensor.file);
    check_shape(tensor.file, format, tensor.dtype, tensor.shape);
    if (format == FileFormat::idx_gz) continue;
    bytes[tensor.file.path] += stored_bytes(to_string(tensor.file), stored_type(tensor.dtype), tensor.shape);
  }
  std::vector<AtomicFile> room;
  for (const auto& [path, size] : bytes) {
    AtomicFile file(path);
    file.extend(size);
    room.push_back(std::move(file));
  }
  return room;
}

std::vector<AtomicFile> complete_files(const FileTensors& outputs) {
  std::vector<std::pair<FileRef, DType>> dtypes;
  for (const auto& [file, tensor] : outputs) dtypes.emplace_back(file, tensor.dtype());
  check_writable(dtypes);
  for (const auto& [file, tensor] : outputs) check_shape(file, format_to_write(file), tensor.dtype(), tensor.shape());

  std::vector<AtomicFile> complete;
  for (const OutputFile& output : group_by_file(outputs)) {
    AtomicFile file(output.path);
    write_one(output, file);
    file.close();
    complete.push_back(std::move(file));
  }
  return complete;
}

void write_tensors(const FileTensors& outputs) {
  for (AtomicFile& file : complete_files(outputs)) file.commit();
}

}  // namespace einrel
