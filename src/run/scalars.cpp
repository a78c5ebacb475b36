#include "run/scalars.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/training_name.h"

namespace einrel {

std::vector<std::string> unknown_scalars(const ScalarBindings& given, const std::vector<std::string>& known) {
  std::vector<std::string> problems;
  for (const auto& [name, value] : given) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const std::string near = did_you_mean(name, known);
    problems.push_back(fmt::format("--scalar {}={}: the program has no scalar '{}'{}{}", printable(name), value,
                                   printable(name), near.empty() ? "" : "; ", near));
  }
  return problems;
}

ScalarBindings bind_scalars(const std::vector<ScalarDeclaration>& scalars, const ScalarBindings& given) {
  ScalarBindings bound;
  std::vector<std::string> problems;
  std::vector<std::string> known;
  for (const ScalarDeclaration& scalar : scalars) {
    known.push_back(scalar.name);
    const auto found = given.find(scalar.name);
    if (scalar.is_iteration && found != given.end()) {
      problems.push_back(fmt::format("scalar '{}' cannot be given: it counts the steps of the program", scalar.name));
      continue;
    }
    if (found == given.end() && !scalar.value) {
      problems.push_back(
          fmt::format("scalar '{}' has no value: give it with --scalar {}=...", scalar.name, scalar.name));
      continue;
    }
    const double value = found == given.end() ? *scalar.value : found->second;
    if (scalar.integer_type && !is_exact(value, *scalar.integer_type)) {
      problems.push_back(
          fmt::format("scalar '{}' meets integers: {} is no {}", scalar.name, value, name_of(*scalar.integer_type)));
    }
    if (scalar.name == training_name && value != 0 && value != 1)
      problems.push_back(fmt::format("scalar '{}' is 1 or 0: as in a step of training, or not", scalar.name));
    bound[scalar.name] = value;
  }
  for (std::string& unknown : unknown_scalars(given, known)) problems.push_back(std::move(unknown));
  if (!problems.empty()) throw UserError(fmt::format("{}", fmt::join(problems, "\n")));
  return bound;
}

}  // namespace einrel
