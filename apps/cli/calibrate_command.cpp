#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "arguments.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/text.h"
#include "commands.h"
#include "engine/calibrate.h"
#include "execution.h"
#include "machine/machines.h"
#include "output.h"

namespace einrel::cli {
namespace {

void save(const Machine& machine, const std::string& path) {
  if (path.empty()) throw UserError("there is no folder for settings: set HOME or XDG_CONFIG_HOME");
  std::error_code failed;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), failed);
  if (failed) throw UserError(fmt::format("cannot make the folder of '{}': {}", printable(path), failed.message()));
  write_text(path, to_json(machine));
}

std::string sharing_text(const Machine& machine) {
  if (machine.sites_per_node == 1) return "";
  return fmt::format(
      "  alone      {:.2g} times the flop/s, {:.2g} times the memory and {:.2g} times the network of {} ranks at "
      "once\n",
      machine.flops_alone, machine.memory_alone, machine.network_alone, machine.sites_per_node);
}

void calibrate_on(const Job& job, const std::string& given_threads) {
  std::size_t threads = 1;
  agree(job, [&] { threads = threads_of(given_threads, job); });
  const Machine machine = calibrate(threads, job);
  agree(job, [&] {
    if (job.rank != 0) return;
    const std::string path = calibrated_path();
    save(machine, path);
    print(fmt::format(
        "{}\n  one core   {:.3g} flop/s on f32\n  memory     {}/s, {} of it\n  a task     {}\n"
        "  network    {}/s after {}{}\n{}wrote {}: plans use it where no --machine is named\n",
        machine.about, machine.flops_per_core, bytes_text(machine.memory_bandwidth), bytes_text(machine.memory),
        seconds_text(machine.task_seconds), bytes_text(machine.network_bandwidth),
        seconds_text(machine.network_latency), job.ranks > 1 ? "" : " (assumed; measured under mpirun -n 2)",
        sharing_text(machine), printable(path)));
  });
}

void calibrate_here(const std::string& given_threads) {
  if (const std::optional<std::string> name = name_in_job()) run_guarded(*name, 60);
  const MpiJob mpi(end_all);
  mpi.run([&](const Job& job) { calibrate_on(job, given_threads); });
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("calibrate", "measure this machine, so that plans predict its seconds");
  auto threads = std::make_shared<std::string>();
  command->add_option("--threads", *threads, "N: those of a site; without it, all cores this process may use");
  command->callback([threads] { calibrate_here(*threads); });
}

}  // namespace einrel::cli
