// iopddl SECONDS < PROBLEM.json: solves a problem of the contest on intra-operator parallelism within so many seconds,
// reading included. Prints one JSON object: what was found, and what every solution costs at least. Ends with 1 where
// no strategies within the limit were found.
#include <chrono>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "problem.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

int solve(double seconds, Clock::time_point begin) {
  const einrel::iopddl::Problem problem = einrel::iopddl::read_problem(std::cin);
  double found_after = 0;
  const einrel::LimitedFound found = einrel::least_within_limit(
      problem.network, [&] { return seconds_since(begin) < seconds; },
      [&](const einrel::LimitedFound& better) {
        found_after = seconds_since(begin);
        std::cerr << found_after << " s: " << better.best->cost << ", at least " << better.at_least << "\n";
      });
  nlohmann::ordered_json said{{"problem", problem.name}, {"cost", nullptr}, {"at_least", found.at_least}};
  if (found.best) {
    said["cost"] = found.best->cost;
    said["used"] = einrel::most_used(problem.network, found.best->values);
    said["limit"] = problem.network.limit;
    said["found_after_seconds"] = found_after;
    said["strategies"] = found.best->values;
  }
  said["seconds"] = seconds_since(begin);
  std::cout << said.dump() << "\n";
  return found.best ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  const Clock::time_point begin = Clock::now();
  try {
    if (count != 2) throw std::invalid_argument("usage: iopddl SECONDS < PROBLEM.json");
    return solve(std::stod(arguments[1]), begin);
  } catch (const std::exception& error) {
    std::cerr << "iopddl: " << error.what() << "\n";
    return 2;
  }
}
