#include <memory>
#include <optional>

#include "arguments.h"
#include "base/guard.h"
#include "commands.h"
#include "engine/keep_calibrated.h"
#include "execution.h"
#include "output.h"

namespace einrel::cli {
namespace {

void calibrate_on(const Job& job, const std::string& given_threads) {
  std::size_t threads = 1;
  agree(job, [&] { threads = threads_of(given_threads, job); });
  const std::string text = keep_calibrated(threads, job);
  agree(job, [&] {
    if (job.rank == 0) print(text + "\n");
  });
}

void calibrate_here(const std::string& given_threads) {
  if (const std::optional<std::string> name = name_in_job()) run_guarded(*name, 60);
  const MpiJob mpi(end_all);
  mpi.run([&](const Job& job) { calibrate_on(job, given_threads); });
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "measure this machine on this number of ranks, so that plans predict its seconds");
  auto threads = std::make_shared<std::string>();
  command->add_option("--threads", *threads, "N: those of a site; without it, all cores this process may use");
  command->callback([threads] { calibrate_here(*threads); });
}

}  // namespace einrel::cli
