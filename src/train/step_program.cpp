#include "train/step_program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/file_error.h"
#include "base/suggest.h"
#include "base/text.h"
#include "einsum/graph/training_name.h"
#include "einsum/graph/vertex_facts.h"
#include "kernel/cancel.h"
#include "run/initial_states.h"
#include "run/scalars.h"
#include "run/stored_input.h"
#include "train/collected.h"
#include "train/sample_uses.h"

namespace einrel {

CheckedProgram check_for(const TrainRequest& request, const Feeds& feeds, std::int64_t batch,
                         const std::map<std::string, std::int64_t>& extents) {
  Environment environment{request.dims, {}};
  for (const auto& [label, extent] : extents) environment.dims[label] = extent;
  environment.dims[request.batch_label] = batch;
  for (const auto& [name, file] : request.inputs) environment.inputs[name] = describe(file);
  for (const Feed& feed : feeds.feeds) environment.inputs[feed.name] = describe(feed, batch);
  CheckedProgram checked = parse_and_check(request.source, environment);
  if (checked.graph) return checked;
  throw UserError(fmt::format("{} leaves the extents of these labels open: {}\n  help: give --dim {}=N",
                              printable(request.source.name()), fmt::join(checked.unknown_extents, ", "),
                              fmt::join(checked.unknown_extents, "=N --dim ")));
}

Compiled compiled_for(const TrainRequest& request, const CheckedProgram& checked, const EinGraph& graph,
                      const std::vector<std::string>& outputs) {
  PassOptions passes = request.passes;
  passes.checking = checked.passes;
  return compile(request.source.name(), graph, outputs, checked.initial, passes);
}

InputSources constant_inputs(const TrainRequest& request, const CheckedProgram& program, const Feeds& feeds) {
  InputSources sources;
  std::vector<std::string> names;
  std::vector<std::string> missing;
  for (const DeclaredInput& input : program.inputs) {
    names.push_back(input.name);
    if (std::any_of(feeds.feeds.begin(), feeds.feeds.end(), [&](const Feed& feed) { return feed.name == input.name; }))
      continue;
    const auto file = request.inputs.find(input.name);
    if (file == request.inputs.end())
      missing.push_back(fmt::format("missing {}; bind it with --in {}=FILE", declaration_of(input), input.name));
    else
      sources[input.name] = source_of(file->second, input.dtype);
  }
  if (!missing.empty()) throw UserError(fmt::format("{}", fmt::join(missing, "\n")));
  for (const auto& [name, file] : request.inputs) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = did_you_mean(name, names);
    throw UserError(fmt::format("--in {}=...: the program has no input of that name{}{}", printable(name),
                                near.empty() ? "" : "; ", near));
  }
  return sources;
}

std::vector<std::string> reported(const TrainRequest& request, const EinGraph& graph) {
  std::vector<std::string> names = request.report;
  for (const VertexId output : program_outputs(graph)) {
    const Vertex& vertex = graph[output];
    if (request.report.empty() && vertex.bound.empty()) names.push_back(vertex.name);
  }
  if (names.empty()) {
    throw UserError(
        fmt::format("{} puts out no scalar, so there is nothing to report of its training\n"
                    "  help: name one: --report loss",
                    printable(request.source.name())));
  }
  const std::set<std::string> once(names.begin(), names.end());
  if (once.size() < names.size())
    throw UserError(fmt::format("--report {}: a scalar stands there twice", fmt::join(names, ",")));
  for (const std::string& name : names) {
    const auto found = std::find_if(graph.vertices.begin(), graph.vertices.end(),
                                    [&](const Vertex& vertex) { return vertex.name == name; });
    if (found == graph.vertices.end()) {
      std::vector<std::string> known;
      for (const Vertex& vertex : graph.vertices) {
        if (vertex.bound.empty()) known.push_back(vertex.name);
      }
      const std::string near = did_you_mean(name, known);
      throw UserError(fmt::format("--report {}: the program has no tensor of that name; {}", printable(name),
                                  near.empty() ? fmt::format("its scalars are {}", fmt::join(known, ", ")) : near));
    }
    if (!found->bound.empty()) {
      throw UserError(
          fmt::format("--report {0}: '{0}' has shape {1}; a report is of scalars, such as a mean over the "
                      "batch: m[] = mean[...] {0}[...]",
                      name, to_string(found->bound)));
    }
  }
  return names;
}

std::string written(const TrainRequest& request, const Vertex& vertex) {
  constexpr std::size_t most_shown = 100;
  const LineColumn at = request.source.locate(vertex.where.begin);
  std::string text(request.source.slice(vertex.where));
  std::replace(text.begin(), text.end(), '\n', ' ');
  return fmt::format("`{}` (line {}, column {})", printable(text, most_shown), at.line, at.column);
}

void make_ready(const OtherBatches& batches, const std::function<void()>& make) {
  const auto said = [&](std::string what) {
    while (what.ends_with('\n')) what.pop_back();
    return fmt::format("{}\n  help: this is of {}; {}", what, batches.which, batches.remedy);
  };
  try {
    make();
  } catch (const UserError& error) {
    throw UserError(said(error.what()));
  } catch (const Stopped&) {
    throw;  // it is of nothing in particular
  } catch (const NoRoom& error) {
    throw NoRoom(said(error.what()));
  } catch (const RunError& error) {
    throw RunError(said(error.what()));
  }
}

void check_states_fit(const TrainRequest& request, const EinGraph& step, const EinGraph& other) {
  for (const State& state : step.steps.states) {
    const Vertex& vertex = step[state.now];
    const auto found = std::find_if(other.vertices.begin(), other.vertices.end(),
                                    [&](const Vertex& each) { return is_input(each) && each.name == vertex.name; });
    if (found == other.vertices.end() || found->bound == vertex.bound) continue;
    throw UserError(
        fmt::format("the state '{}', {}, depends on the number of samples: its shape is {} in a step, but {} would be "
                    "needed",
                    vertex.name, written(request, vertex), to_string(vertex.bound), to_string(found->bound)));
  }
}

StepProgram::StepProgram(Compiled compiled, const TrainRequest& request, const StepProgram* beside, const Job& job)
    : request_(request), job_(job), compiled_(std::make_unique<const Compiled>(std::move(compiled))) {
  if (job.on_failure) {
    job_.on_failure = [doing = doing_, end = job.on_failure](const std::exception_ptr& error, const Job& ended) {
      end(doing->named(error), ended);
    };
  }
  const EinGraph& graph = compiled_->graph;
  scalars_ = bind_scalars(graph.scalars, request.scalars);
  if (const auto training = scalars_.find(training_name); training != scalars_.end())
    training->second = graph.steps.states.empty() ? 0 : 1;
  Chosen chosen = beside == nullptr ? choose(*compiled_, request.run, request.source, job_)
                                    : choose_beside({beside->compiled_.get(), request.run, *beside->chosen_},
                                                    *compiled_, request.source, job_);
  check_room(
      chosen, job, {}, [](const StoredRelation&) { return false; }, "--memory SIZE");
  chosen_ = std::make_unique<const Chosen>(std::move(chosen));
  doing_->graph = &this->compiled().graph;
  session_ = std::make_unique<Session>(chosen_->tasks, chosen_->resources(), job_);
}

void StepProgram::tell_passes(const TrainListener& listener) const {
  if (job_.rank == 0 && listener.passes && request_.passes.are_told) listener.passes(compiled(), chosen_->tasks);
}

std::exception_ptr StepProgram::Doing::named(const std::exception_ptr& error) const {
  return batch != nullptr ? naming_sample(error, *graph, *feeds, *batch) : error;
}

PlanRunReport StepProgram::step(const InputSources& sources, std::vector<OutputWriter> writers,
                                const ScalarBindings& scalars, const StepsAsked& asked, const Feeds& feeds,
                                const Batch& batch) {
  doing_->feeds = &feeds;
  doing_->batch = &batch;
  try {
    PlanRunReport report = session_->step(sources, std::move(writers), scalars, asked);
    doing_->batch = nullptr;
    return report;
  } catch (...) {
    const std::exception_ptr named = doing_->named(std::current_exception());
    doing_->batch = nullptr;
    std::rethrow_exception(named);
  }
}

PlanRunReport StepProgram::step(const InputSources& constants, BatchReader& reader,
                                const std::vector<std::string>& names, const ScalarBindings& scalars, StepsAsked asked,
                                const std::function<bool(const std::vector<double>&)>& told) {
  Collected collected(scalars_named(names));
  asked.feed = [&] {
    InputSources batch;
    agree(job_, [&] { batch = reader.next(); });
    return batch;
  };
  asked.after = [&] {
    std::vector<double> values;
    for (const std::vector<double>& value : collected.take(job_)) values.push_back(value.empty() ? 0 : value.front());
    return told(values);
  };
  return step(constants, writers_for(tasks(), names, collected), scalars, asked, reader.feeds(), reader.taken());
}

KeptStates StepProgram::states(const std::optional<GivenStates>& given, const InputSources& inputs) const {
  return begun_states({compiled_.get(), request_.run, *chosen_}, given, inputs, scalars_, request_.source, job_);
}

}  // namespace einrel
