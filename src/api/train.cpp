#include "train/train.h"

#include <einrel/error.h>
#include <einrel/train.h>

#include "api/border.h"
#include "api/plan_options.h"
#include "api/tensor_data.h"

namespace einrel::api {
namespace {

FeedSources sources_of(const std::map<std::string, Samples>& feeds) {
  FeedSources sources;
  for (const auto& [name, samples] : feeds) {
    if (const auto* const tensor = std::get_if<Tensor>(&samples))
      sources.emplace_back(name, TensorAccess::inside(*tensor));
    else
      sources.emplace_back(name, std::get<std::string>(samples));
  }
  return sources;
}

std::map<std::string, double> by_name(const std::vector<std::string>& names, const std::vector<double>& means) {
  std::map<std::string, double> values;
  for (std::size_t i = 0; i < means.size(); ++i) values[names[i]] = means[i];
  return values;
}

Epoch outside(const std::vector<std::string>& names, const EpochReport& epoch) {
  return {
      epoch.epoch, epoch.steps, epoch.seconds, epoch.bytes, by_name(names, epoch.training), by_name(names, epoch.test)};
}

std::optional<std::string> text_of(const std::optional<std::filesystem::path>& path) {
  return path ? std::optional(path->string()) : std::nullopt;
}

TrainRequest request_of(const Program& program, const std::map<std::string, Samples>& feeds,
                        const TrainOptions& options) {
  if (options.batch_label.empty()) throw UserError("TrainOptions::batch_label says which label stands for samples");
  if (options.batch < 1 || options.epochs < 1 || options.save_every.value_or(1) < 1 ||
      options.local_steps.value_or(1) < 1 || options.calibrate_with.value_or(1) < 1)
    throw UserError("batch, epochs, save_every, local_steps and calibrate_with of TrainOptions are 1 or more");
  if (options.hold_out && !options.test.empty())
    throw UserError("TrainOptions::test brings samples, and hold_out takes some of the feeds; leave one out");
  if (!options.subnets.empty() && !options.local_steps) throw UserError("TrainOptions::subnets needs local_steps");
  TrainRequest request{SourceText("<program>", program.text())};
  request.scalars = options.scalars;
  request.batch_label = options.batch_label;
  request.batch = options.batch;
  request.feeds = sources_of(feeds);
  request.test = sources_of(options.test);
  request.hold_out = options.hold_out;
  for (const auto& [name, tensor] : options.inputs) request.inputs[name] = stored(name, TensorAccess::inside(tensor));
  request.epochs = options.epochs;
  request.keep_last = options.keep_last;
  request.seed = options.seed;
  request.report = options.report;
  request.calibrate_with = options.calibrate_with;
  request.save = text_of(options.save);
  request.save_every = options.save_every;
  request.resume = text_of(options.resume);
  request.log = text_of(options.log);
  request.stop = options.stop;
  request.run.threads = threads_of(options.threads);
  request.run.plan = request_of(PlanOptions{options.sites, options.cost, options.machine, {}});
  request.run.plan.batch = options.batch_label;
  request.run.planner = options.planner.value_or("eindecomp");
  check_planner(request.run.planner);
  if (options.local_steps)
    request.local = LocalTraining{*options.local_steps, options.subnets, options.sites.value_or(1)};
  request.by_plan = !request.local && (options.sites || options.planner || options.cost || options.machine);
  return request;
}

}  // namespace

TrainResult train(const Program& program, const std::map<std::string, Samples>& feeds, const TrainOptions& options) {
  return at_border([&] {
    const TrainRequest request = request_of(program, feeds, options);
    std::vector<std::string> names;
    TrainListener listener;
    listener.begin = [&](const std::vector<std::string>& reported) { names = reported; };
    listener.note = options.on_note;
    if (options.on_epoch) listener.epoch = [&](const EpochReport& epoch) { options.on_epoch(outside(names, epoch)); };
    const TrainReport report = einrel::train(request, listener, {});
    TrainResult result{{}, report.is_held, report.saved, {{}, report.steps}};
    for (const EpochReport& epoch : report.epochs) result.epochs.push_back(outside(report.names, epoch));
    for (const auto& [name, tensor] : report.states) result.state.tensors.insert({name, TensorAccess::outside(tensor)});
    return result;
  });
}

}  // namespace einrel::api
