#pragma once

#include <string>
#include <vector>

#include "base/atomic_file.h"
#include "tensor/stored_tensor.h"
#include "tensor/stream.h"
#include "tensor/zip.h"

namespace einrel {

/// NumPy's .npz: a zip archive whose members NAME.npy are tensors called NAME, and so are members NAME that begin as an
/// .npy file does (with both, the first is called NAME.npy, as it is by numpy.load); other members are passed over.
struct NpzFile {
  FileBytes file;
  std::vector<std::string> names;
  std::vector<ZipMember> members;  ///< of the same tensors
  InflateFolder folder;            ///< where they are decompressed
};

/// Reads the directory, and the first bytes of members not called NAME.npy. Throws UserError as parse_zip_directory
/// does.
NpzFile parse_npz(const FileBytes& file, const InflateFolder& folder = {});

/// Tensor number `index`, called file:NAME in messages. Members that numpy.savez made are mapped, those of
/// savez_compressed are decompressed here, as far as the tensor reaches. Throws as open_zip_member and parse_npy do.
StoredTensor open_tensor(const NpzFile& npz, std::size_t index);

/// Throws UserError unless `name` can be a tensor's name in an .npz (see is_safe_member_name).
void check_npz_name(const std::string& name);

/// The tensors as numpy.savez writes them: stored, not deflated, so that readers can map them and that
/// nothing needs to be known in advance but the sizes; 64-bit sizes where needed. Names must pass check_npz_name.
void write_npz(const std::vector<NamedTensor>& tensors, AtomicFile& file);

}  // namespace einrel
