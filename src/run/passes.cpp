#include "run/passes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/check/check.h"
#include "einsum/graph/print.h"
#include "einsum/passes/contraction_order.h"
#include "einsum/passes/factor_split.h"
#include "einsum/passes/join_split.h"
#include "einsum/passes/selection_split.h"
#include "run/compile.h"

namespace einrel {

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> all{
      {"gradient", "vertices that compute the gradients that a program asks for, while it is checked"},
      {"minimize", "vertices that compute the next values of what `minimize` changes, while it is checked"},
      {"needed", "leaves out what no output needs", false,
       [](const EinGraph& graph, Compiled&) { return needed_for_outputs(graph); }},
      {"selections", "sums of which equations select few terms become reads and scatters", true,
       [](const EinGraph& graph, Compiled&) { return split_selections(graph); }},
      {"order", "products of several factors become products of two, in a cheap order", true,
       [](const EinGraph& graph, Compiled& compiled) { return order_contractions(graph, compiled.contractions); }},
      {"factors", "what a factor of a sum computes again and again becomes a tensor", true,
       [](const EinGraph& graph, Compiled&) { return split_factors(graph); }},
      {"joins", "vertices over more than 32 tensors become several: databases join no more than 64 tables", false,
       [](const EinGraph& graph, Compiled&) { return split_joins(graph, 32); }},
      {recompute_pass, "computes tensors again that a limit of memory has no room to keep", true},
      {fusion_pass, "kernels whose results stay in the cache between them run together, as one task", true}};
  return all;
}

SkippedPasses skipped_passes(const std::vector<std::string>& names) {
  std::vector<std::string> optional;
  for (const Pass& pass : all_passes()) {
    if (pass.is_optional) optional.emplace_back(pass.name);
  }
  SkippedPasses skipped;
  for (const std::string& name : names) {
    const auto known =
        std::find_if(all_passes().begin(), all_passes().end(), [&](const Pass& pass) { return pass.name == name; });
    if (known == all_passes().end()) {
      const std::string near = did_you_mean(name, optional);
      throw UserError(fmt::format("there is no pass '{}'; {}those that may be left out are {}", printable(name),
                                  near.empty() ? "" : near + " ", fmt::join(optional, ", ")));
    }
    if (!known->is_optional)
      throw UserError(
          fmt::format("the pass '{}' must run; those that may be left out are {}", name, fmt::join(optional, ", ")));
    skipped.insert(name);
  }
  return skipped;
}

std::vector<std::string> changes_between(const EinGraph& before, const EinGraph& after) {
  std::unordered_map<std::string_view, const Vertex*> left;
  for (const Vertex& vertex : before.vertices) left.emplace(vertex.name, &vertex);
  std::vector<std::string> changes;
  for (const Vertex& vertex : after.vertices) {
    const auto known = left.find(vertex.name);
    const std::string text = formula(vertex, after);
    if (known == left.end()) {
      changes.push_back("+ " + text);
      continue;
    }
    if (formula(*known->second, before) != text) changes.push_back("~ " + text);
    left.erase(known);
  }
  for (const Vertex& vertex : before.vertices) {
    if (left.contains(vertex.name)) changes.push_back("- " + vertex.name);
  }
  return changes;
}

}  // namespace einrel
