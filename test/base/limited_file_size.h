#pragma once

#include <sys/resource.h>

#include <csignal>

namespace einrel::test {

/// While it lives, no file of this process can grow beyond `bytes`: a disk that is full, for tests.
class LimitedFileSize {
 public:
  explicit LimitedFileSize(rlim_t bytes) : previous_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &previous_);
    const rlimit limit{bytes, previous_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  LimitedFileSize(const LimitedFileSize&) = delete;
  LimitedFileSize& operator=(const LimitedFileSize&) = delete;
  ~LimitedFileSize() {
    setrlimit(RLIMIT_FSIZE, &previous_);
    std::signal(SIGXFSZ, previous_handler_);
  }

 private:
  rlimit previous_{};
  void (*previous_handler_)(int);
};

}  // namespace einrel::test
