#pragma once

#include <CLI/CLI.hpp>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/source.h"
#include "exec/job/job.h"
#include "plan_arguments.h"
#include "program_input.h"
#include "run/compile.h"
#include "run/saved_states.h"
#include "tensor/tensor_file.h"

namespace einrel::cli {

/// Seconds.
inline constexpr const char* default_timeout = "60";

/// What is said of a program with state.
struct StepArguments {
  std::optional<std::string> steps;
  std::optional<std::string> save;
  std::optional<std::string> load;
  bool any() const { return steps || save || load; }
};

/// How something is to be computed and shown, as given: the same for a program and for one einsum.
struct ExecutionArguments {
  PlanArguments plan;
  std::optional<std::string> trace;
  std::optional<std::string> html;
  std::optional<std::string> repeats;
  StepArguments steps;
  std::string timeout = default_timeout;
  bool overwrite = false;
  bool explain = false;
  bool analyze = false;
  bool json = false;
  std::string progress = "auto";
};

/// What fails on one rank while others compute: says so and ends them all.
void end_all(std::exception_ptr error, const Job& job);

/// Adds --threads to --progress.
void add_execution_options(CLI::App& command, ExecutionArguments& arguments);

/// Outputs and the files that they are to be written to, as given.
using OutputFiles = std::vector<std::pair<std::string, FileRef>>;

/// What is computed and what it runs on, all checked.
struct Prepared {
  OpenInputs files;
  std::vector<std::string> paths;  ///< of all files that are read
  OutputFiles outputs;
  std::optional<std::uint64_t> seed;
  AnyProgram program;
  ScalarBindings scalars;
  std::optional<LoadedStates> loaded = {};
};

/// What a command brings to an execution, in the order in which it is asked for.
struct Execution {
  const CLI::App& command;
  std::function<void()> check_options;  ///< throws UserError for an option that is wrong whatever the program says
  std::function<SourceText(const Job&)> source;
  std::function<Prepared(const SourceText&)> prepare;
};

/// Does what all ranks do together, or this process alone, once `check` has found options right, and all ranks the same
/// ones but for those that say where a rank has its files and what it computes on. `timeout` is that of --timeout.
/// Throws as the parts do.
void run_in_job(const CLI::App& command, const std::string& timeout, const std::function<void()>& check,
                const std::function<void(const Job&)>& action);

/// How often all is computed. Throws UserError for what is no number.
std::size_t times_of(const ExecutionArguments& arguments);

/// Computes, writes outputs and prints. Options that are wrong are
/// said before anything is read, and outputs that could not be written before anything is computed. Throws as the
/// parts do.
void execute(const ExecutionArguments& arguments, const Execution& execution);

}  // namespace einrel::cli
