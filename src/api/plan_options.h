#pragma once

#include <einrel/program.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "plan/planner.h"

namespace einrel::api {

/// What options say of plans, for both that run and those that are explained.
struct PlanOptions {
  std::optional<std::int64_t> sites;
  std::optional<Cost> cost;
  std::optional<std::string> machine;
  std::optional<std::int64_t> memory;
};

/// Throws UserError for numbers that make no sense and a machine that there is not.
PlanRequest request_of(const PlanOptions& options);

/// Throws UserError, naming the nearest, when there is no planner of vertices of this name.
void check_planner(const std::string& name);

/// All cores of this process, or as many as its share of them is, unless a number is given. Throws UserError for one
/// that makes no sense.
std::size_t threads_of(std::optional<std::size_t> given, std::optional<double> share = {});

}  // namespace einrel::api
