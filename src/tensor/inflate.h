#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace einrel {

/// Throws UserError where deflate cannot have shrunk `size` bytes to `compressed` (it never does more than 1032 times).
void check_expansion(const std::string& name, std::uint64_t size, std::size_t compressed);

/// Where decompressed bytes go: into a file without a name in this folder, which is mapped; without a folder, into
/// memory.
using InflateFolder = std::optional<std::string>;

/// Room for `size` bytes that a file says it holds, compressed to `compressed` bytes. Throws as check_expansion, so
/// that no header makes us allocate what its file cannot fill; RunError when there is no memory, or no room in the
/// folder; as UnnamedFile where it takes no file.
std::shared_ptr<std::byte[]> room_to_inflate(const std::string& name, std::uint64_t size, std::size_t compressed,
                                             const InflateFolder& folder);

/// Takes a deflate stream in memory apart, piece by piece. `name` is for messages and must outlive this. It reads no
/// further than what it is asked for needs: a stream that would go on for gigabytes is refused after a MiB that gives
/// nothing. In gzip's wrapper it may be several streams, one after the other, which together hold what one would, and
/// zeros after the last, as on tapes.
class Inflater {
 public:
  enum class Wrapper : std::uint8_t { none, gzip };

  Inflater(const std::string& name, std::span<const std::byte> compressed, Wrapper wrapper);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills `out`. Throws UserError when the stream is damaged or ends before.
  void read(std::span<std::byte> out);
  /// Throws UserError unless the stream (the last one) ends here, with right checksums (gzip) and no bytes after it.
  void finish();

 private:
  struct State;
  /// One step of zlib's inflate; how many bytes it put into `out`.
  std::size_t step(std::span<std::byte> out);
  /// After a stream's end: goes on to the next one, or past the zeros after the last.
  void end_stream();

  const std::string& name_;
  std::span<const std::byte> rest_;
  Wrapper wrapper_;
  std::size_t in_vain_ = 0;  ///< bytes read since the last that gave something
  std::unique_ptr<State> state_;
  bool ended_ = false;
};

}  // namespace einrel
