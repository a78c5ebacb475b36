#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

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

namespace {

constexpr const char* clear_line = "\r\x1b[K";

/// How far an epoch is, in place on a terminal.
class EpochProgress {
 public:
  EpochProgress(bool is_shown, bool in_place) : is_shown_(is_shown), in_place_(in_place) {}

  void show(const TrainProgress& progress, const std::vector<std::string>& names) {
    const auto now = std::chrono::steady_clock::now();
    const auto pause = in_place_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(1000);
    if (!is_shown_ || now - last_ < pause) return;
    last_ = now;
    std::string means;
    for (std::size_t i = 0; i < names.size(); ++i)
      means += fmt::format("  {} {:.4g}", printable(names[i], 20), progress.means[i]);
    const double share = static_cast<double>(progress.step) / static_cast<double>(progress.steps);
    print_error(fmt::format("{}[{}] epoch {}/{}  step {}/{}{}  {:.0f} samples/s  {:.0f} s left{}",
                            in_place_ ? clear_line : "", bar(share), progress.epoch, progress.epochs, progress.step,
                            progress.steps, means, progress.samples_per_second, progress.seconds_left,
                            in_place_ ? "" : "\n"));
    is_there_ = in_place_;
  }
  void clear() {
    if (std::exchange(is_there_, false)) print_error(clear_line);
  }

 private:
  bool is_shown_;
  bool in_place_;
  bool is_there_ = false;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

TrainListener train_listener(const std::string& when, bool has_test, bool is_quiet) {
  if (when != "auto" && when != "always" && when != "never")
    throw UserError(fmt::format("--progress {}: write auto, always or never", printable(when)));
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const auto progress = std::make_shared<EpochProgress>(when == "always" || (when == "auto" && terminal), terminal);
  const auto names = std::make_shared<std::vector<std::string>>();
  TrainListener listener;
  listener.begin = [=](const std::vector<std::string>& reported) {
    *names = reported;
    if (is_quiet) return;
    std::string heading = fmt::format("{:>6} {:>8} {:>10}", "epoch", "steps", "samples/s");
    for (const std::string& name : reported) heading += fmt::format(" {:>12}", printable(name, 12));
    for (const std::string& name : reported)
      heading += has_test ? fmt::format(" {:>12}", "test " + printable(name, 12)) : "";
    print(heading + "\n");
    flush_output();
  };
  listener.progress = [=](const TrainProgress& now) { progress->show(now, *names); };
  listener.note = [=](const std::string& text) {
    progress->clear();
    print_error("note: " + text + "\n");
  };
  listener.epoch = [=](const EpochReport& epoch) {
    progress->clear();
    if (is_quiet) return;
    std::string line = fmt::format("{:>6} {:>8} {:>10.0f}", epoch.epoch, epoch.steps, epoch.samples_per_second);
    for (const double mean : epoch.training) line += fmt::format(" {:>12.5g}", mean);
    for (const double mean : epoch.test) line += fmt::format(" {:>12.5g}", mean);
    print(line + "\n");
    flush_output();
  };
  return listener;
}

}  // namespace einrel::cli
