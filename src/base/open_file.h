#pragma once

#include <string>

namespace einrel {

/// A file or folder that is open for reading, and is closed on every way out.
class OpenFile {
 public:
  /// Throws as throw_file_error does. A pipe is opened at once, whether or not somebody writes into it.
  explicit OpenFile(const std::string& path);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace einrel
