#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "commands.h"
#include "cut_short_input.h"
#include "exec/job/job.h"
#include "execution.h"
#include "interrupt.h"
#include "output.h"

namespace {

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

/// What CLI11 would say of a missing or misspelt command does not name it.
void require_command(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> known = command_names(app);
  if (std::find(known.begin(), known.end(), word) != known.end() || word.starts_with("-")) return;
  const std::string near = einrel::did_you_mean(word, known);
  throw einrel::UserError(
      fmt::format("{} has no command '{}'; {}", app.get_name(), einrel::printable(word),
                  !near.empty() ? near : fmt::format("its commands are {}", fmt::join(known, ", "))));
}

void require_commands(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && !command_names(*at).empty(); ++i) {
    require_command(*at, argv[i]);
    if (argv[i][0] == '-') return;
    at = at->get_subcommand(argv[i]);
  }
}

/// The command that was called, "einrel list functions", and its words.
std::pair<const CLI::App*, std::string> called_command(const CLI::App& app) {
  const CLI::App* at = &app;
  std::string words = app.get_name();
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    words += " " + at->get_name();
  }
  return {at, words};
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional()) names.push_back(option->get_name());
  }
  return names;
}

/// What is to be said of an option that a command has not.
std::string unknown_option(const CLI::App& app, const std::string& word) {
  const auto [command, words] = called_command(app);
  const std::string option = word.substr(0, word.find('='));
  const std::string near = einrel::did_you_mean(option, option_names(*command));
  if (!near.empty()) return fmt::format("{} has no option '{}'; {}", words, einrel::printable(option), near);
  std::vector<std::string> others;
  for (const CLI::App* other : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (other->get_option_no_throw(option) != nullptr) others.push_back("einrel " + other->get_name());
  }
  std::string unknown = fmt::format("{} has no option '{}'", words, einrel::printable(option));
  if (others.empty()) return unknown;
  if (others.size() == 1) return fmt::format("{}; {} has it", unknown, others.front());
  return fmt::format("{}; {} and {} have it", unknown, fmt::join(others.begin(), others.end() - 1, ", "),
                     others.back());
}

/// An option that was given more often than once, though it takes one value.
const CLI::Option* repeated_option(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional() && option->get_expected_max() == 1 && option->count() > 1) return option;
  }
  return nullptr;
}

/// What CLI11 says, but of a word that nothing takes: that first, since an argument that is missing may be missing
/// because of it.
std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> left = app.remaining(true);
  const auto option = std::find_if(left.begin(), left.end(), [](const auto& word) { return word.starts_with("-"); });
  if (option != left.end()) return unknown_option(app, *option);
  if (const CLI::Option* const repeated = repeated_option(*called_command(app).first))
    return fmt::format("{} is given {} times, but takes one value", repeated->get_name(), repeated->count());
  if (left.empty()) return einrel::printable(error.what());
  return fmt::format("{} does not take '{}' besides", called_command(app).second, einrel::printable(left.front()));
}

/// CLI11 would take an empty value as if the option were not given.
void refuse_empty_values(CLI::App& app) {
  const CLI::Validator has_value(
      [](std::string& value) { return value.empty() ? std::string("the value is empty") : ""; }, "");
  for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    for (CLI::Option* option : command->get_options()) {
      if (option->nonpositional()) option->check(has_value);
    }
  }
}

int run_command_line(int argc, char** argv) {
  CLI::App app{"Einrel computes Einstein-summation programs over large tensors.", "einrel"};
  app.set_version_flag("--version", "einrel " EINREL_VERSION);
  einrel::cli::add_run_command(app);
  einrel::cli::add_train_command(app);
  einrel::cli::add_explain_command(app);
  einrel::cli::add_check_command(app);
  einrel::cli::add_einsum_command(app);
  einrel::cli::add_sql_command(app);
  einrel::cli::add_list_command(app);
  einrel::cli::add_calibrate_command(app);
  einrel::cli::add_describe_commands(app);
  refuse_empty_values(app);
  // Under mpirun, only these are work for all ranks; the others would say the same as rank 0.
  const std::optional<std::string> rank = einrel::name_in_job();
  const bool is_quiet = rank.value_or("rank 0") != "rank 0";
  const std::string_view command = argc > 1 ? argv[1] : "";
  const bool is_of_all = command == "run" || command == "train" || command == "einsum" || command == "calibrate";
  if (is_quiet && !is_of_all) return 0;
  require_commands(app, argc, argv);
  std::vector<std::string> words;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 wants them backwards
    const std::string word = argv[i];
    // '->' is a whole einsum, not an option; blanks mean nothing in it.
    words.push_back(word.starts_with("->") ? " " + word : word);
  }
  try {
    app.parse(words);
  } catch (const CLI::Success& asked) {  // --help, --version
    if (!is_quiet) app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::string message = fmt::format("{}\n  help: {} --help", complaint(app, error), called_command(app).second);
    const auto refuse = [&] { throw einrel::UserError(message); };
    if (!rank || !is_of_all) refuse();
    // Other ranks may have been given something else: whoever is wrong says so, once.
    einrel::cli::run_in_job(*called_command(app).first, einrel::cli::default_timeout, refuse, {});
  }
  if (argc == 1)
    throw einrel::UserError(fmt::format("no command given; the commands are {}", fmt::join(command_names(app), ", ")));
  einrel::cli::flush_output();
  return 0;
}

/// An exception that nobody could catch, as out of a thread that finds no memory.
[[noreturn]] void end_at_once() {
  const std::exception_ptr failure = std::current_exception();
  if (!failure) std::abort();
  std::_Exit(einrel::cli::report_failure(failure));
}

}  // namespace

int main(int argc, char** argv) {
  // A file that grows past a limit is then a failed write like any other: reported, and the temporary file removed.
  std::signal(SIGXFSZ, SIG_IGN);
  einrel::cli::name_inputs_that_are_cut_short();
  std::set_terminate(end_at_once);
  try {
    return run_command_line(argc, argv);
  } catch (const einrel::cli::Interrupted& interrupted) {
    einrel::cli::end_interrupted(interrupted.signal);
  } catch (...) {
    return einrel::cli::report_failure(std::current_exception());
  }
}
