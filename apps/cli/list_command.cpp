#include <fmt/format.h>

#include "base/error.h"
#include "commands.h"
#include "einsum/functions.h"
#include "einsum/macros.h"
#include "engine/algebra.h"
#include "engine/kernels.h"
#include "output.h"

namespace einrel::cli {
namespace {

void list_functions() {
  for (const FunctionInfo& info : all_functions()) print(fmt::format("{:<28} {}\n", info.usage, info.meaning));
  print(fmt::format("\nbuilt-in macros\n{}", built_in_macro_text()));
}

}  // namespace

void add_list_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "list what Einrel knows");
  command->add_subcommand("functions", "functions, operators, reductions and macros")->callback(list_functions);
  command->add_subcommand("kernels", "what computes one vertex, and by which library")->callback([] {
    print(kernels_text());
  });
  command->add_subcommand("rules", "the equivalence rules of the implementation algebra, with examples")->callback([] {
    print(rules_text());
  });
  command->callback([command] {
    if (command->get_subcommands().empty())
      throw UserError("list what? write: einrel list functions, einrel list kernels, or einrel list rules");
  });
}

}  // namespace einrel::cli
