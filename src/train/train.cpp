#include "train/train.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/digest.h"
#include "base/error.h"
#include "base/text.h"
#include "einsum/graph/training_name.h"
#include "run/input_facts.h"
#include "train/course.h"

namespace einrel {
namespace {

std::vector<std::int64_t> all_of(std::int64_t samples) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(samples));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

/// Throws UserError where samples to test on are of another shape than those to train on.
void check_test_feeds(const Feeds& training, const Feeds& test, const std::string& batch_label) {
  for (const Feed& feed : test.feeds) {
    for (const Feed& other : training.feeds) {
      if (other.name != feed.name) continue;
      Shape wanted = other.file.shape;
      wanted[feed.batch] = feed.file.shape[feed.batch];
      if (feed.file.shape == wanted) continue;
      throw UserError(
          fmt::format("--test {}=...: {} has shape {}, but {}, which is trained on, has {}; all but '{}' have "
                      "to be the same",
                      feed.name, feed.file.name, to_string(feed.file.shape), other.file.name,
                      to_string(other.file.shape), printable(batch_label)));
    }
  }
}

/// Throws UserError where an input is given twice.
void check_given_once(const TrainRequest& request) {
  for (const auto& [name, source] : request.feeds) {
    if (request.inputs.count(name) == 0) continue;
    throw UserError(fmt::format(
        "--in {0}=... and --feed {0}=... both bind '{0}': --feed brings samples, --in what is the same for all "
        "of them; leave one out",
        printable(name)));
  }
}

TrainData open_data(const TrainRequest& request, const std::vector<DeclaredInput>& inputs) {
  check_given_once(request);
  TrainData data;
  data.feeds = open_feeds(request.feeds, inputs, request.batch_label, "--feed", request.header, request.inflate);
  data.notes = data.feeds.notes;
  data.training = all_of(data.feeds.samples);
  if (!request.test.empty()) {
    data.test_feeds = open_feeds(request.test, inputs, request.batch_label, "--test", request.header, request.inflate);
    for (const std::string& note : data.test_feeds->notes) data.notes.push_back(note);
    check_test_feeds(data.feeds, *data.test_feeds, request.batch_label);
    data.test = all_of(data.test_feeds->samples);
  }
  if (request.hold_out) {
    const auto held =
        static_cast<std::int64_t>(std::llround(*request.hold_out * static_cast<double>(data.feeds.samples)));
    if (held == 0 || held == data.feeds.samples)
      throw UserError(fmt::format("--hold-out {} of {} leaves no sample to {}", *request.hold_out,
                                  counted(static_cast<std::size_t>(data.feeds.samples), "sample"),
                                  held == 0 ? "test on" : "train on"));
    std::vector<std::int64_t> order = shuffled(data.feeds.samples, request.seed, 0, "hold-out");
    data.test.assign(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(held));
    data.training.assign(order.begin() + static_cast<std::ptrdiff_t>(held), order.end());
    std::sort(data.test.begin(), data.test.end());
    std::sort(data.training.begin(), data.training.end());
  }
  if (request.calibrate_with && data.test.empty())
    throw UserError(fmt::format("--calibrate-with {} is for tests: give samples with --hold-out, or with --test",
                                *request.calibrate_with));
  const auto samples = static_cast<std::int64_t>(data.training.size());
  if (request.calibrate_with.value_or(0) > samples)
    throw UserError(fmt::format("--calibrate-with {} is more than the {} to train on; take {} or fewer",
                                *request.calibrate_with, counted(data.training.size(), "sample"), samples));
  if (samples < request.batch && !request.keep_last)
    throw UserError(fmt::format("--batch {}={} is more than the {} to train on; take a smaller batch, or --keep-last",
                                printable(request.batch_label), request.batch,
                                counted(static_cast<std::size_t>(samples), "sample")));
  return data;
}

void check_program(const TrainRequest& request, const CheckedProgram& checked) {
  const std::vector<State>& states = checked.graph->steps.states;
  if (std::any_of(states.begin(), states.end(), [](const State& state) { return state.next.has_value(); })) return;
  throw UserError(
      fmt::format("{} learns nothing: it has no state that changes\n"
                  "  help: say what is learnt: state W[i,j] = ... and minimize loss over W by adam(0.001)",
                  printable(request.source.name())));
}

template <class Value>
std::string text_of(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : "";
}

void add_facts(const std::string& what, const Feeds& feeds, std::vector<Fact>& facts) {
  for (const Feed& feed : feeds.feeds) add_facts(what + " " + feed.name, feed.file, facts);
}

/// What all ranks have to have alike. Their machines may differ, as long as their plans do not (Session).
std::vector<Fact> facts_of(const TrainRequest& request, const TrainData& data) {
  std::vector<Fact> facts{{"another program", "", digest_of(request.source.text())},
                          {"the batch", fmt::format("{}={}", printable(request.batch_label), request.batch)},
                          {"the number of epochs", fmt::format("{}", request.epochs)},
                          {"the choice to keep the last batch", request.keep_last ? "yes" : "no"},
                          {"the share to hold out", text_of(request.hold_out)},
                          {"the seed", fmt::format("{}", request.seed)},
                          {"what is reported", fmt::format("{}", fmt::join(request.report, ","))},
                          {"the number of samples to calibrate with", text_of(request.calibrate_with)},
                          {"the folder for checkpoints", request.save ? "given" : ""},
                          {"the number of steps between checkpoints", text_of(request.save_every)},
                          {"the folder to resume from", request.resume ? "given" : ""},
                          {"the folder for chunks", request.run.spill ? "given" : ""},
                          {"the number of local steps", request.local ? fmt::format("{}", request.local->steps) : ""}};
  if (request.local)
    facts.push_back({"what subnets divide", fmt::format("{}", fmt::join(request.local->subnets, ","))});
  for (const auto& [label, extent] : request.dims)
    facts.push_back({"the extent of " + label, fmt::format("{}", extent)});
  add_facts(request.scalars, facts);
  for (const auto& [name, file] : request.inputs) add_facts("input " + name, file, facts);
  add_facts("the samples of", data.feeds, facts);
  if (data.test_feeds) add_facts("the samples to test on, of", *data.test_feeds, facts);
  return facts;
}

/// Noise that is for learning only makes tests look worse than the network is.
std::optional<std::string> note_of_noise(const TrainRequest& request, const TrainData& data,
                                         const CheckedProgram& checked) {
  const std::vector<std::string>& scalars = checked.scalars;
  const bool says_where = std::find(scalars.begin(), scalars.end(), training_name) != scalars.end();
  if (says_where && request.scalars.count(training_name) != 0)
    throw UserError(fmt::format(
        "--scalar {0}=...: training says it itself: '{0}' is 1 in its steps, and 0 in its tests", training_name));
  if (says_where || data.test.empty()) return std::nullopt;
  const std::optional<Vertex> noise = noise_in_tests(*checked.graph, reported(request, *checked.graph));
  if (!noise) return std::nullopt;
  return fmt::format(
      "the tests have the random numbers of {0}, too; if they are for learning only, say so with `scalar {1}`, which "
      "is 1 in steps and 0 in tests: where({1}, ..., ...)",
      written(request, *noise), training_name);
}

}  // namespace

TrainReport train(TrainRequest request, const TrainListener& listener, const Job& job) {
  if (asks_for_plan(request.run, job) && !request.run.given) request.run.batch = request.batch_label;
  TrainData data;
  std::optional<CheckedProgram> checked;
  agree(job, [&] {
    Environment environment{request.dims, {}};
    const CheckedProgram declared = parse_and_check(request.source, environment);
    data = open_data(request, declared.inputs);
    request.batch = std::min(request.batch, static_cast<std::int64_t>(data.training.size()));  // with keep_last
    checked = check_for(request, data.feeds, request.batch);
    check_program(request, *checked);
    if (std::optional<std::string> note = note_of_noise(request, data, *checked))
      data.notes.push_back(*std::move(note));
    data.losses = checked->losses;
  });
  if (job.ranks > 1) check_alike(job, facts_of(request, data));
  return (request.local ? train_local_sgd : train_data_parallel)(request, listener, data, *checked, job);
}

}  // namespace einrel
