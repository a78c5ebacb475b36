#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lang/corpus.h"
#include "lang/expectations.h"

/// Whether programs keep what their documents promise, whatever runs them.
namespace einrel::test {

/// One way to execute a program.
struct Configuration {
  std::string name;
  /// Of a program with state, a step.
  std::function<std::optional<Outputs>(const EinGraph&, const TensorBindings&, const ScalarBindings&)> run;
  /// All steps of a program with state, in place of one `run` after the other.
  std::function<Outputs(const Runnable&)> run_steps = {};
};

/// A configuration of programs with state alone.
Configuration of_states(std::string name, std::function<Outputs(const Runnable&)> run_steps);

/// Everything that is not as the document says, in any of these configurations; all must agree with the first one.
std::vector<std::string> broken_promises(const Document& document, const std::vector<Configuration>& configurations);
/// `document` with the given extents; values are compared with it only where it holds for these.
std::vector<std::string> broken_run(const Document& document, const Dims& dims, bool compare_values,
                                    const std::vector<Configuration>& configurations);

}  // namespace einrel::test
