#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "output.h"

namespace einrel::cli {
namespace {

constexpr double quiet_seconds = 0.5;

std::string bar(double share) {
  constexpr int width = 24;
  const int filled = static_cast<int>(share * width);
  return std::string(static_cast<std::size_t>(filled), '#') +
         std::string(static_cast<std::size_t>(width - filled), '.');
}

void show(const RunProgress& progress, bool in_place) {
  const double share = progress.flops_total > 0 ? progress.flops_done / progress.flops_total
                                                : static_cast<double>(progress.done) /
                                                      static_cast<double>(std::max<std::size_t>(progress.total, 1));
  const double rate = progress.seconds > 0 ? progress.flops_done / progress.seconds / 1e9 : 0;
  const double left = share > 0 ? progress.seconds * (1 - share) / share : 0;
  const bool finished = progress.done == progress.total;
  const std::string line = fmt::format(
      "[{}] {:3.0f} %  {}/{}  {:.1f} s  {:.2f} Gflop/s{}", bar(share), 100 * share, progress.done, progress.total,
      progress.seconds, rate, finished ? "" : fmt::format("  {:.0f} s left  {}", left, printable(progress.vertex, 40)));
  print_error(fmt::format("{}{}{}", in_place ? "\r\x1b[K" : "", line, finished || !in_place ? "\n" : ""));
}

}  // namespace

ProgressListener progress_listener(const std::string& when) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (when == "never" || (when == "auto" && !terminal)) return {};
  if (when == "always") return [terminal](const RunProgress& progress) { show(progress, terminal); };
  if (when != "auto") throw UserError(fmt::format("--progress {}: write auto, always or never", printable(when)));
  return [](const RunProgress& progress) {
    if (progress.seconds >= quiet_seconds) show(progress, true);
  };
}

}  // namespace einrel::cli
