#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "commands.h"
#include "output.h"

namespace einrel::cli {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// What may follow a command: its own commands and its options.
std::string words_after(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::App* next : commands_of(command)) words.push_back(next->get_name());
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional()) words.push_back(option->get_name());
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string completion(const CLI::App& app) {
  std::string cases;
  for (const CLI::App* command : commands_of(app))
    cases += fmt::format("    {}) words='{}' ;;\n", command->get_name(), words_after(*command));
  return fmt::format(R"(# Completion of {0} for bash; written by: {0} completion
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} words command=${{COMP_WORDS[1]}}
  [ "$COMP_CWORD" -gt 1 ] || command=
  case $command in
{1}    *) words='{2}' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _{0} {0}
)",
                     app.get_name(), cases, words_after(app));
}

/// Text as troff prints it, on one line.
std::string troff(const std::string& text) {
  std::string out = "\\&";  // so that no line begins with a request
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c == '\n' ? ' ' : c;
    }
  }
  return out;
}

std::string manual_of(const CLI::App& command, const std::string& words) {
  std::string synopsis = words;
  std::string options;
  for (const CLI::Option* option : command.get_options()) {
    if (!option->nonpositional()) synopsis += " " + option->get_name();
    options += fmt::format(".TP\n.B {}\n{}\n", troff(option->get_name()), troff(option->get_description()));
  }
  return fmt::format(".SS {}\n{}\n{}", troff(synopsis), troff(command.get_description()), options);
}

std::string manual(const CLI::App& app) {
  std::string text = fmt::format(
      ".TH EINREL 1 \"\" \"{}\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {} COMMAND\n.RI [ OPTIONS ]\n.SH COMMANDS\n",
      troff(app.version()), app.get_name(), troff(app.get_description()), app.get_name());
  for (const CLI::App* command : commands_of(app)) {
    const std::string words = app.get_name() + " " + command->get_name();
    text += manual_of(*command, words);
    for (const CLI::App* next : commands_of(*command)) text += manual_of(*next, words + " " + next->get_name());
  }
  return text +
         ".SH EXIT STATUS\n0: done. 1: the program or its data are wrong. 2: the run failed (memory, disk, a rank). "
         "3: a bug in Einrel.\n";
}

}  // namespace

void add_describe_commands(CLI::App& app) {
  app.add_subcommand("completion", "print what completes einrel's words in bash: source <(einrel completion)")
      ->callback([&app] { print(completion(app)); });
  app.add_subcommand("manual", "print this program's manual page: einrel manual | man -l -")->callback([&app] {
    print(manual(app));
  });
}

}  // namespace einrel::cli
