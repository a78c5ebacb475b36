#include <fmt/format.h>

#include "base/error.h"
#include "commands.h"
#include "einsum/functions.h"
#include "einsum/macros.h"
#include "engine/algebra.h"
#include "engine/kernels.h"
#include "output.h"
#include "plan/planner.h"

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
  command->add_subcommand("planners", "how programs are cut and placed on sites")->callback([] {
    for (const Planner& planner : all_planners()) print(fmt::format("{:<16} {}\n", planner.name, planner.summary));
    print(
        "table-1          of the relations of the TRA: as its paper compiles them (explain only)\n"
        "ia-rules         the same, then searched for what moves least (explain only)\n");
  });
  command->add_subcommand("rules", "the equivalence rules of the implementation algebra, with examples")->callback([] {
    print(rules_text());
  });
  command->callback([command] {
    if (command->get_subcommands().empty())
      throw UserError("list what? write: einrel list functions, kernels, planners, or rules");
  });
}

}  // namespace einrel::cli
