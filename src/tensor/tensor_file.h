#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic_file.h"
#include "tensor/file_layout.h"
#include "tensor/inflate.h"
#include "tensor/stored_tensor.h"
#include "tensor/tensor.h"

namespace einrel {

/// FILE of the command line: "x.npy", "w.npz:W1", "w.safetensors:layer.0.weight", "images.idx.gz".
struct FileRef {
  std::string path;
  std::string member;  ///< empty: none was named
  /// What is written is complex numbers: the last dimension of a tensor is that of their parts.
  bool is_complex = false;
  bool operator==(const FileRef&) const = default;
};

/// Splits after the first ".npz:" or ".safetensors:"; a ':' anywhere else belongs to the path or to the
/// member. Throws UserError when the path is empty or nothing follows that ':'.
FileRef parse_file_ref(std::string_view text);
/// The notation again, printable.
std::string to_string(const FileRef& file);

/// The tensor's type and shape; `read` gives its elements, decompressed into `folder` if they have to be. The format
/// follows from the extension (.npy, .npz, .safetensors, .idx, .idx.gz), else from the file's first bytes (so MNIST's
/// own names work). Without a member, a file of one tensor gives that one. Throws UserError when the file cannot be
/// read or is damaged, when the member is missing (the error lists what is there), or when one must be named.
StoredTensor open_tensor(const FileRef& file, const InflateFolder& folder = {});

/// Whether `text` names a file that may hold several tensors, and none in it: "w.npz", "w.safetensors". With '=' it is
/// NAME=FILE.
bool is_archive(std::string_view text);

/// Of an archive, the tensors of the `wanted` names, and the names of all others.
struct ArchiveContents {
  std::map<std::string, StoredTensor> tensors;
  std::vector<std::string> others;
};
/// Throws as open_tensor does.
ArchiveContents open_archive(const std::string& path, const std::set<std::string>& wanted,
                             const InflateFolder& folder = {});

/// One path for a file however it is spelled, so that two outputs to one file are noticed.
std::string identity_of(const std::string& path);

/// Throws UserError for the first output that `write_tensors` would refuse, so that it can be refused before
/// any work is done: unknown extension, dtype that the format has no place for, a missing or superfluous
/// member, two outputs of one name, a folder that is not there, an archive with other tensors in it.
void check_writable(const std::vector<std::pair<FileRef, DType>>& outputs);

/// A tensor that will be written to a file.
struct PlannedTensor {
  FileRef file;
  DType dtype = DType::f32;
  Shape shape;
};
/// How the file of these is laid out, all of one path, in a format in which that is known before their elements are and
/// elements stand as they do in memory: .npy and .safetensors. Nothing for others.
std::optional<FileLayout> layout_of(const std::vector<PlannedTensor>& planned);

/// Files that only hold room on the disk for the elements of such tensors, so that there is room left when these are
/// written: give it back just before. None for .idx.gz, whose size nobody knows. Throws UserError when a shape does not
/// fit the format, and as AtomicFile does: NoRoom where there is none.
std::vector<AtomicFile> take_room(const std::vector<PlannedTensor>& planned);

/// What goes into files, and adds to it what is known when the rest is there.
using FileTensors = std::vector<std::pair<FileRef, Tensor>>;
using AddTensors = std::function<void(FileTensors&)>;

/// The same, where types and shapes of what is added are known before: they stand here in its order.
struct AddedTensors {
  std::vector<PlannedTensor> planned;
  AddTensors add;
};

/// All tensors in files that wait to appear under their names, those of one .npz or .safetensors in one file; an
/// archive that was there will be replaced. Throws as check_writable does, UserError when a shape does not fit the
/// format, RunError when the disk refuses; then no file has changed.
std::vector<AtomicFile> complete_files(const FileTensors& outputs);

/// Makes those files, and lets them appear. Throws as that does; then no file has changed (but for a rename that fails
/// after another has succeeded).
void write_tensors(const FileTensors& outputs);

}  // namespace einrel
