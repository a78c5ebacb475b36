#include "base/open_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_error.h"

namespace einrel {

OpenFile::OpenFile(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) throw_file_error("read", path, errno);
}

OpenFile::~OpenFile() { ::close(descriptor_); }

}  // namespace einrel
