#include <memory>
#include <optional>

#include "arguments.h"
#include "base/error.h"
#include "commands.h"
#include "execution.h"
#include "output.h"
#include "run/calibrate_database.h"
#include "run/keep_calibrated.h"

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

void calibrate_database(const std::string& url, bool has_threads) {
  if (has_threads) throw UserError("--threads does not go with --database, which computes as it does in a run");
  if (name_in_job()) throw UserError("--database is measured by one process; start it without mpirun");
  print(keep_calibrated_database(url) + "\n");
}

}  // namespace

void add_calibrate_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "calibrate", "measure this machine on this number of ranks, or a database, so that plans predict its seconds");
  auto threads = std::make_shared<std::string>();
  command->add_option("--threads", *threads, "N: those of a site; without it, all cores this process may use");
  auto database = std::make_shared<std::optional<std::string>>();
  command->add_option("--database", *database,
                      "sqlite:FILE or postgresql://HOST/DATABASE: measure that instead, so that formats suit it; it is "
                      "left as it was");
  command->callback([threads, database, command] {
    if (*database) return calibrate_database(**database, !threads->empty());
    run_in_job(
        *command, default_timeout, [&] { parse_threads(*threads); },
        [&](const Job& job) { calibrate_on(job, *threads); });
  });
}

}  // namespace einrel::cli
