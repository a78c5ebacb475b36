#pragma once

#include <dlfcn.h>

namespace einrel::test {

/// Whether a sanitizer looks at this process. It may be that of code below only: tests are compiled without.
inline bool is_sanitized() {
  return ::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr || ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

}  // namespace einrel::test
