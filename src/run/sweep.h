#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/source.h"
#include "run/compare_plans.h"
#include "run/run_request.h"

namespace einrel {

/// What a program is planned for, several times.
struct SweepRequest {
  RunRequest request;                                ///< all but sites, machine and planner
  std::vector<std::optional<std::int64_t>> sites;    ///< of the machine where nobody says how many
  std::vector<std::optional<std::string>> machines;  ///< as RunRequest::machine
  std::vector<std::string> planners;
};

/// A plan, or why there is none, for one of them.
struct SweptPlan {
  std::string machine;
  std::int64_t sites = 1;
  double dollars_per_hour = 0;  ///< of all these sites; 0 where the machine has no price
  std::variant<PlanReport, PlanRefusal> plan;
  const std::string& planner() const;
  /// Of one run on these sites, or of one step but the first; nullopt where there is no price or no plan.
  std::optional<double> dollars() const;
};

/// Machines in order, for each the numbers of sites, and for each of these the planners. Throws UserError as
/// plans_side_by_side does. `source` is what reasons quote.
std::vector<SweptPlan> sweep(const Compiled& compiled, const SweepRequest& wanted, const SourceText& source);

/// Where fewer sites are about as fast as the most asked for: of each machine and planner the fewest that are within 5
/// % of the fastest.
struct EnoughSites {
  std::string machine;
  std::string planner;
  std::int64_t sites = 1;
  std::int64_t asked = 1;  ///< the most
};
std::vector<EnoughSites> enough_sites(const std::vector<SweptPlan>& plans);

}  // namespace einrel
