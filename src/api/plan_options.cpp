#include "api/plan_options.h"

#include <einrel/error.h>
#include <fmt/format.h>

#include <algorithm>

#include "ia/from_tra.h"
#include "kernel/workers.h"
#include "machine/machines.h"

namespace einrel::api {
namespace {

CostKind inside(Cost cost) {
  switch (cost) {
    case Cost::bound: return CostKind::bound;
    case Cost::floats: return CostKind::floats;
    case Cost::bytes: return CostKind::bytes;
    case Cost::seconds: return CostKind::seconds;
  }
  throw UserError("a cost that there is not: see einrel::Cost");
}

}  // namespace

PlanRequest request_of(const PlanOptions& options) {
  if (options.sites && (*options.sites < 1 || *options.sites > most_sites))
    throw UserError(fmt::format("{} sites: plans are made for 1 to {}", *options.sites, most_sites));
  if (options.memory && *options.memory < 1)
    throw UserError(fmt::format("a limit of {} bytes of memory: nothing fits there", *options.memory));
  const Machine machine =
      options.machine ? machine_of(*options.machine, options.sites) : default_machine(options.sites);
  const std::optional<std::int64_t> own = options.machine ? std::optional(machine.memory) : std::nullopt;
  return {options.sites.value_or(machine.sites), machine, inside(options.cost.value_or(Cost::seconds)), std::nullopt,
          options.memory ? options.memory : own};
}

void check_planner(const std::string& name) {
  if (name == "table-1" || name == "ia-rules") {
    throw UserError(
        fmt::format("{} plans relations, which the command shows: einrel explain PROGRAM --planner {}", name, name));
  }
  planner_named(name);
}

std::size_t threads_of(std::optional<std::size_t> given, std::optional<double> share) {
  static const std::size_t cores = std::min(available_cores(), most_threads);  // asking takes as long as a small run
  constexpr double rounding = 1e-6;                                            // of thirds that make a whole
  if (!given && share) return std::clamp<std::size_t>(static_cast<std::size_t>(*share + rounding), 1, cores);
  if (!given) return cores;
  if (*given < 1 || *given > most_threads)
    throw UserError(fmt::format("{} threads: a run takes 1 to {}", *given, most_threads));
  return *given;
}

}  // namespace einrel::api
