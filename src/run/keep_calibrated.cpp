#include "run/keep_calibrated.h"

#include <fmt/format.h>

#include <optional>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/text.h"
#include "machine/machines.h"
#include "run/calibrate.h"

namespace einrel {
namespace {

/// Makes sure, before anything is measured, that figures for so many ranks can be kept; returns where.
std::string prepare_file(const Job& job) {
  std::string path = prepare_settings(calibrated_file);
  try {
    const std::optional<MachineSets> kept = calibrated_machine();
    if (kept) with_figures(*kept, {.about = "", .ranks = job.ranks});
  } catch (const UserError& error) {
    throw UserError(
        fmt::format("{}\n  help: calibrate keeps what was measured on other numbers of ranks; mend {}, or "
                    "delete it to begin anew",
                    error.what(), printable(path)));
  }
  return path;
}

/// "2, 3 and 8 ranks"
std::string ranks_text(const MachineSets& machine) {
  std::string text;
  for (std::size_t n = 0; n + 1 < machine.sets.size(); ++n)
    text += fmt::format("{}{}", n == 0 ? "" : ", ", machine.sets[n].ranks);
  const auto last = static_cast<std::size_t>(machine.sets.back().ranks);
  return text.empty() ? counted(last, "rank") : fmt::format("{} and {}", text, counted(last, "rank"));
}

std::string sharing_text(const Machine& machine) {
  if (machine.sites_per_node == 1) return "";
  return fmt::format(
      "  alone      {:.2g} times the flop/s, {:.2g} times the memory and {:.2g} times the network of {} ranks at "
      "once\n",
      machine.flops_alone, machine.memory_alone, machine.network_alone, machine.sites_per_node);
}

}  // namespace

std::string keep_calibrated(std::size_t own_threads, const Job& job) {
  std::string path;
  agree(job, [&] {
    if (job.rank == 0) path = prepare_file(job);
  });
  const Machine machine = calibrate(own_threads, job);
  std::string text;
  agree(job, [&] {
    if (job.rank != 0) return;
    const std::optional<MachineSets> before =
        calibrated_machine();  // now: another calibration may have ended meanwhile
    const MachineSets all = before ? with_figures(*before, machine) : MachineSets{{machine}};
    write_text(path, to_json(all));
    text = fmt::format(
        "{}\n  one core   {:.3g} flop/s on f32\n  memory     {}/s, {} of it\n  a task     {}\n"
        "  network    {}/s after {}{}\n{}wrote {}: plans use it where no machine is named; it has figures of {}{}",
        machine.about, machine.processor.flops_per_core, bytes_text(machine.memory_bandwidth),
        bytes_text(machine.memory), seconds_text(machine.task_seconds), bytes_text(machine.network_bandwidth),
        seconds_text(machine.network_latency), job.ranks > 1 ? "" : " (assumed; measured under mpirun -n 2)",
        sharing_text(machine), printable(path), ranks_text(all),
        before && before->sets.front().ranks == 0 ? ", in place of those for any number" : "");
  });
  return text;
}

}  // namespace einrel
