#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "commands.h"
#include "einsum/expr/functions.h"
#include "einsum/front/text/macros.h"
#include "machine/machines.h"
#include "output.h"
#include "plan/planners/planner.h"
#include "report/lists.h"
#include "report/passes_text.h"
#include "tra/formats.h"

namespace einrel::cli {
namespace {

void list_functions() {
  for (const FunctionInfo& info : all_functions()) print(fmt::format("{:<28} {}\n", info.usage, info.meaning));
  print(fmt::format("\nbuilt-in macros\n{}", built_in_macro_text()));
}

/// "4 groups of 32 sites: spine 100 GB/s after 10 us; in each 4 groups of 8 sites: ethernet 50 GB/s after 10 us"
std::string links_text(const Machine& machine) {
  std::vector<std::string> levels;
  std::int64_t outer = machine.sites;
  for (const Link& link : machine.links) {
    levels.push_back(fmt::format("{}{} groups of {}: {}, {}/s to each group after {}", levels.empty() ? "" : "in each ",
                                 outer / link.sites, counted(static_cast<std::size_t>(link.sites), "site"), link.name,
                                 bytes_text(link.bandwidth), seconds_text(link.latency)));
    outer = link.sites;
  }
  return levels.empty() ? "" : fmt::format("    links: {}\n", fmt::join(levels, "; "));
}

/// "5e+10 flop/s on f32, 3.12e+14 on bf16"
std::string rates_text(const Machine& machine) {
  std::string text = fmt::format("{:.3g} flop/s on f32", machine.cores * machine.processor.flops_per_core);
  for (const auto& [dtype, rate] : machine.flops_of)
    text += fmt::format(", {:.3g} on {}", machine.cores * rate, name_of(dtype));
  return text;
}

std::string price_text(const Machine& machine) {
  return machine.dollars_per_hour > 0 ? fmt::format("; ${:.3g} an hour", machine.dollars_per_hour) : "";
}

void list_machines() {
  for (const MachineSets& sets : all_machines()) {
    const Machine machine = figures_for(sets, std::nullopt);
    print(fmt::format("{:<14} {}; a site: {}, {} of memory at {}/s; network {}/s after {}{}\n{}    {}\n", machine.name,
                      counted(static_cast<std::size_t>(machine.sites), "site"), rates_text(machine),
                      bytes_text(machine.memory), bytes_text(machine.memory_bandwidth),
                      bytes_text(machine.network_bandwidth), seconds_text(machine.network_latency), price_text(machine),
                      links_text(machine), machine.about));
  }
}

void list_formats() {
  for (const Format& format : all_formats())
    print(fmt::format("{:<18} a chunk is {}\n", format.name, chunk_text(format)));
  print(
      "\nWith other numbers, too: row-strip-250. A vector's rows are its one dimension; a tensor of more dimensions "
      "has\n"
      "rows and columns in its last two.\n"
      "\ndirect transformations: chunks are cut, or put together\n");
  for (const Format& format : all_formats()) {
    const DirectTransformations direct = direct_transformations(format);
    for (const auto& [how, to] : {std::pair("cut", direct.cut), std::pair("put together", direct.put_together)}) {
      if (to.empty()) continue;
      const bool are_all = to.size() + 1 == all_formats().size();
      const std::string names = are_all ? "all others" : fmt::format("{}", fmt::join(to, ", "));
      print(fmt::format("{:<17} -> {}: {}\n", format.name, names, how));
    }
  }
  print(
      "\nFrom each other format to each other one, chunks are cut into pieces, and these are put together, in one "
      "query,\n"
      "too; so it is where sizes do not divide each other. What has the same chunks is not transformed: a matrix of "
      "10\n"
      "rows is the same in row-strip-10 as in single.\n");
}

}  // namespace

void add_list_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("list", "list what Einrel knows");
  command->add_subcommand("functions", "functions, operators, reductions and macros")->callback(list_functions);
  command->add_subcommand("kernels", "what computes one vertex, and by which library")->callback([] {
    print(kernels_text());
  });
  command->add_subcommand("passes", "what is done to a program before it runs, in order")->callback([] {
    print(passes_list());
  });
  command->add_subcommand("planners", "how programs are cut and placed on sites")->callback([] {
    for (const Planner& planner : all_planners()) print(fmt::format("{:<16} {}\n", planner.name, planner.summary));
    print(
        "table-1          of the relations of the TRA: as its paper compiles them\n"
        "ia-rules         the same, then searched for what moves least\n"
        "formats          of programs in databases, formats of least cost: einrel sql --explain\n"
        "hybrid:4x2       data among 4 groups, model among the 2 sites of each; and other products, as data:4 x "
        "tensor:2\n");
  });
  command->add_subcommand("rules", "the equivalence rules of the implementation algebra, with examples")->callback([] {
    print(rules_text());
  });
  command->add_subcommand("formats", "how databases store matrices in chunks")->callback(list_formats);
  command->add_subcommand("machines", "what explain --machine plans for, and where the figures come from")
      ->callback(list_machines);
  command->callback([command] {
    if (command->get_subcommands().empty())
      throw UserError(
          "list what? write: einrel list formats, functions, kernels, machines, passes, planners, or rules");
  });
}

}  // namespace einrel::cli
