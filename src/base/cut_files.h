#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace einrel {

// Bytes of a mapped file are gone when others cut it short, and who touches them is ended by the system (SIGBUS). Here
// is what a process that must go on can do about it.

/// From now on bytes that are gone read as 0 on every thread while a CutWatch lives. Signals of other causes, or at
/// other times, go where they went before.
void outlive_cut_files();

/// Watches over something that reads mapped files, which asks afterwards whether they were whole.
class CutWatch {
 public:
  CutWatch();
  ~CutWatch();
  CutWatch(const CutWatch&) = delete;
  CutWatch& operator=(const CutWatch&) = delete;

  /// Throws RunError, which names the file, if bytes of one were gone in the meantime.
  void check() const;

 private:
  std::size_t cuts_;
};

/// The file that these bytes are mapped from, as messages show it; nothing where they are no file's.
std::optional<std::string> file_mapped_at(std::span<const std::byte> bytes);
/// The same, if the file has become shorter since it was mapped. Bytes that have been read as 0 stay so.
std::optional<std::string> cut_file_mapped_at(std::span<const std::byte> bytes);

/// For map_file: remembers what is mapped until the owner is gone, which then unmaps it.
std::shared_ptr<const void> remember_mapped(const std::string& path, std::span<const std::byte> bytes,
                                            std::shared_ptr<const void> owner);

}  // namespace einrel
