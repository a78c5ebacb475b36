#include "base/thread.h"

#include <fmt/format.h>

#include "base/error.h"

namespace einrel {

void throw_no_threads(std::size_t threads, const std::system_error& error) {
  throw RunError(
      fmt::format("the system gives no {} ({}): give fewer (--threads), or let this process have more (ulimit -u, "
                  "ulimit -v)",
                  threads == 1 ? "further thread" : fmt::format("{} threads", threads), error.what()));
}

}  // namespace einrel
