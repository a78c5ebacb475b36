#include "report/passes_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/text.h"

namespace einrel {
namespace {

constexpr std::size_t most_shown = 12;

std::string pass_line(const PassRecord& record) {
  std::string text =
      fmt::format("  {:<11} {:>5} -> {:<5} {:>8}{}\n", record.pass, record.vertices_before, record.vertices_after,
                  seconds_text(record.seconds), record.changes.empty() ? "   nothing changed" : "");
  const std::size_t shown = std::min(record.changes.size(), most_shown);
  for (std::size_t c = 0; c < shown; ++c) text += fmt::format("      {}\n", printable(record.changes[c]));
  if (record.changes.size() > shown) text += fmt::format("      and {} more\n", record.changes.size() - shown);
  return text;
}

/// The tensors whose kernels each task calls together, where there are several.
PassRecord fusion_record(const PlannedTasks& tasks) {
  std::set<std::size_t> computed;
  for (const Task& task : tasks.graph.tasks) {
    if (!std::holds_alternative<CallKernel>(task.op)) continue;
    for (const IaId node : nodes_of(tasks.graph, task)) {
      if (const auto vertex = tasks.vertices[node.index]) computed.insert(*vertex);
    }
  }
  PassRecord record{fusion_pass, computed.size(), computed.size(), tasks.fusion_seconds};
  for (const auto& [last, nodes] : tasks.graph.together) {
    std::set<std::size_t> vertices;
    for (const IaId node : nodes) {
      if (const auto vertex = tasks.vertices[node.index]) vertices.insert(*vertex);
    }
    if (vertices.size() < 2) continue;
    std::vector<std::string> names;
    for (const std::size_t vertex : vertices) names.push_back(tasks.names[vertex]);
    record.vertices_after -= std::min(record.vertices_after, vertices.size() - 1);
    record.changes.push_back(fmt::format("together: {}", fmt::join(names, ", ")));
  }
  return record;
}

/// What is said of one program, until it becomes tasks.
std::string records_text(const Compiled& compiled) {
  std::string text;
  for (const Pass& pass : all_passes()) {
    const auto record = std::find_if(compiled.passes.begin(), compiled.passes.end(),
                                     [&](const PassRecord& each) { return each.pass == pass.name; });
    if (record != compiled.passes.end()) {
      text += pass_line(*record);
    } else if (skips(compiled, pass.name)) {
      text += fmt::format("  {:<11} left out\n", pass.name);
    }
  }
  return text;
}

}  // namespace

std::string passes_text(const Compiled& compiled, const PlannedTasks& tasks) {
  std::string text = "\npasses (vertices before and after; time; + made, ~ changed, - left out)\n";
  if (compiled.initial)
    text += fmt::format(" of the values before the first step\n{} of a step\n", records_text(*compiled.initial));
  text += records_text(compiled);
  if (!skips(compiled, fusion_pass) && !tasks.names.empty()) text += pass_line(fusion_record(tasks));
  return text;
}

std::string passes_list() {
  std::string text;
  for (const Pass& pass : all_passes())
    text += fmt::format("{:<11} {}{}\n", pass.name, pass.summary, pass.is_optional ? "" : "; must run");
  return text;
}

}  // namespace einrel
