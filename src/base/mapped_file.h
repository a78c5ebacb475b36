#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace einrel {

/// The bytes of a whole file (or of one member of an archive) in memory, and what keeps them there.
struct FileBytes {
  std::string name;  ///< what messages call it, printable
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// Maps an ordinary file for reading, at no cost per byte: a page is read when it is first touched.
/// Replacing the file by a rename does no harm, but it must not shrink while its bytes are in use
/// (cut_files.h).
/// Throws UserError when it is missing, not readable or not an ordinary file (a folder, a pipe, a device),
/// RunError when the system has no resources left for it.
FileBytes map_file(const std::string& path);

}  // namespace einrel
