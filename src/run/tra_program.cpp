#include "run/tra_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "run/compile.h"
#include "tra/infer.h"

namespace einrel {
namespace {

void check_binding(const StoredRelation& input, const Span& where, const BoundInput& bound,
                   std::vector<Diagnostic>& errors) {
  const std::string declared = declaration_of(input);
  if (bound.shape != input.bound) {
    errors.push_back({fmt::format("{} has shape {}, but {} has shape {}", declared, to_string(input.bound),
                                  bound.origin, to_string(bound.shape)),
                      {where},
                      fmt::format("declare '{}' with the extents of the data, or bind other data", input.name)});
  }
  if (std::find(bound.readable_as.begin(), bound.readable_as.end(), input.dtype) != bound.readable_as.end()) return;
  errors.push_back({fmt::format("'{}' is declared {}, but {} holds {}", input.name, name_of(input.dtype), bound.origin,
                                bound.stored_type),
                    {where},
                    bound.readable_as.empty()
                        ? "convert the file"
                        : fmt::format("declare it {}, or bind other data", name_of(bound.readable_as.front()))});
}

void check_inputs(const TraExpr& program, const std::map<std::string, BoundInput>& inputs, const SourceText& source) {
  std::vector<Diagnostic> errors;
  std::vector<std::string> names;
  for (const TraNode& node : program.nodes) {
    const auto* const input = std::get_if<StoredRelation>(&node.op);
    if (input == nullptr) continue;
    names.push_back(input->name);
    const auto bound = inputs.find(input->name);
    if (bound != inputs.end()) check_binding(*input, node.where, bound->second, errors);
  }
  for (const auto& [name, bound] : inputs) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = did_you_mean(name, names);
    errors.push_back({fmt::format("the program has no input '{}', which {} is bound to", printable(name), bound.origin),
                      {},
                      !near.empty() ? near : fmt::format("its inputs are: {}", fmt::join(names, ", "))});
  }
  if (!errors.empty()) throw ProgramError(std::move(errors), source);
}

/// Relations asked for by name become the outputs, in place of the program's.
void take_outputs(TraExpr& program, const std::vector<std::string>& wanted) {
  std::map<std::string, TraId> relations;
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const auto* const input = std::get_if<StoredRelation>(&program.nodes[n].op);
    const std::string& name = input == nullptr ? program.nodes[n].name : input->name;
    if (!name.empty()) relations.insert({name, TraId{n}});
  }
  for (const TraOutput& output : program.outputs) relations[output.name] = output.id;
  std::vector<std::string> names;
  for (const auto& [name, id] : relations) names.push_back(name);
  check_output_names(wanted, names);
  if (wanted.empty()) return;
  program.outputs.clear();
  for (const std::string& name : wanted) program.output(name, relations.at(name));
}

}  // namespace

std::vector<StoredRelation> inputs_of(const TraExpr& program) {
  std::vector<bool> is_needed(program.nodes.size(), false);
  for (const TraOutput& output : program.outputs) is_needed[output.id.index] = true;
  for (std::size_t n = program.nodes.size(); n-- > 0;) {
    if (!is_needed[n]) continue;
    for (const TraId input : program.nodes[n].inputs) is_needed[input.index] = true;
  }
  std::vector<StoredRelation> inputs;
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const auto* const input = std::get_if<StoredRelation>(&program.nodes[n].op);
    if (input != nullptr && is_needed[n]) inputs.push_back(*input);
  }
  return inputs;
}

std::string declaration_of(const StoredRelation& input) {
  std::vector<std::int64_t> extents;
  for (const Extent extent : input.bound) extents.push_back(extent.value());
  return fmt::format("{}[{}] : {}", input.name, fmt::join(extents, ","), name_of(input.dtype));
}

void check_outputs_are_tensors(const TraExpr& program, const SourceText& source) {
  const std::vector<RelationType> types = infer(program);
  std::vector<Diagnostic> errors;
  for (const TraOutput& output : program.outputs) {
    const std::optional<NoTensor> wrong = why_no_tensor(types[output.id.index], output.name);
    if (!wrong) continue;
    const Span& where = program[output.id].where;
    errors.push_back({fmt::format("'{}' cannot be put out, since it is no tensor: {}", output.name, wrong->reason),
                      {where},
                      fmt::format("{}; or say what else is put out: output NAME", wrong->help)});
  }
  if (!errors.empty()) throw ProgramError(std::move(errors), source);
}

ParsedTra tra_program(const SourceText& source, const std::map<std::string, BoundInput>& inputs,
                      const std::vector<std::string>& outputs) {
  ParsedTra parsed = parse_tra(source);
  check_inputs(parsed.program, inputs, source);
  take_outputs(parsed.program, outputs);
  check_outputs_are_tensors(parsed.program, source);
  return parsed;
}

}  // namespace einrel
