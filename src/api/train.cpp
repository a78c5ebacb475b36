#include "train/train.h"

#include <einrel/error.h>
#include <einrel/train.h>
#include <fmt/format.h>

#include <exception>

#include "api/border.h"
#include "api/plan_options.h"
#include "api/program_data.h"
#include "api/ranks_data.h"
#include "api/tensor_data.h"
#include "base/digest.h"
#include "base/ids.h"
#include "base/unnamed_file.h"

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

void check(const TrainOptions& options) {
  if (options.batch_label.empty()) throw UserError("the option 'batch_label' says which label stands for samples");
  if (options.batch < 1 || options.epochs < 1 || options.save_every.value_or(1) < 1 ||
      options.local_steps.value_or(1) < 1 || options.calibrate_with.value_or(1) < 1)
    throw UserError("the options 'batch', 'epochs', 'save_every', 'local_steps' and 'calibrate_with' are 1 or more");
  if (options.hold_out && !(*options.hold_out > 0 && *options.hold_out < 1))
    throw UserError("the option 'hold_out' is a share between 0 and 1");
  if (options.hold_out && !options.test.empty())
    throw UserError("the option 'test' brings samples, and 'hold_out' takes some of the feeds; leave one out");
  if (!options.subnets.empty() && !options.local_steps)
    throw UserError("the option 'subnets' needs the option 'local_steps'");
  if (options.local_steps && options.keep_last)
    throw UserError("the option 'keep_last': with 'local_steps' all sites take as many whole batches");
  if (options.save_every && !options.save) throw UserError("the option 'save_every' needs the option 'save'");
}

/// Those that `run` takes, too.
RunOptions run_options_of(const TrainOptions& options) {
  return {.threads = options.threads,
          .sites = options.sites,
          .planner = options.planner,
          .cost = options.cost,
          .plan = options.plan,
          .machine = options.machine,
          .memory = options.memory,
          .spill = options.spill};
}

/// How steps run together, or each site on its own.
void add_sites(const TrainOptions& options, const Job& job, TrainRequest& request) {
  request.run = request_of(run_options_of(options), job);
  if (!options.local_steps) {
    if (options.memory) request.inflate = request.run.spill.value_or(temporary_folder());
    return;
  }
  if (options.planner || options.cost || options.machine || options.memory || options.plan)
    throw UserError(
        "the option 'local_steps' lets every site run the program whole: leave out planner, cost, machine, memory "
        "and plan");
  const std::int64_t sites = job.ranks > 1 ? job.ranks : options.sites.value_or(1);
  request.local = LocalTraining{*options.local_steps, options.subnets, sites};
  request.run = {.threads = request.run.threads};
}

TrainRequest request_of(const Program& program, const std::map<std::string, Samples>& feeds,
                        const TrainOptions& options, const Job& job) {
  check(options);
  const GivenProgram& given = ProgramAccess::given(program);
  TrainRequest request{given.source};
  request.dims = given.dims;
  request.scalars = options.scalars;
  request.batch_label = options.batch_label;
  request.batch = options.batch;
  request.feeds = sources_of(feeds);
  request.test = sources_of(options.test);
  request.header = options.header;
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
  add_sites(options, job, request);
  return request;
}

}  // namespace

TrainResult train(const Program& program, const std::map<std::string, Samples>& feeds, const TrainOptions& options) {
  return at_border([&] {
    const Job& job = RanksAccess::job(options.ranks);
    const TrainRequest request = request_of(program, feeds, options, job);
    std::vector<std::string> names;
    TrainListener listener;
    listener.begin = [&](const std::vector<std::string>& reported) { names = reported; };
    if (options.on_note) listener.note = [&](const std::string& text) { options.on_note(as_options(text)); };
    if (options.on_epoch) listener.epoch = [&](const EpochReport& epoch) { options.on_epoch(outside(names, epoch)); };
    TrainReport report;
    const auto facts = [&] {
      return std::vector<Fact>{{"what it does", "a training"}, {"another program", "", digest_of(program.text())}};
    };
    on_all_ranks(job, facts, [&] {
      report = einrel::train(request, listener, job);
      if (report.unwritten) std::rethrow_exception(report.unwritten);
    });
    TrainResult result{{}, report.is_held, report.saved, {{}, report.steps}};
    for (const EpochReport& epoch : report.epochs) result.epochs.push_back(outside(report.names, epoch));
    for (const auto& [name, tensor] : report.states) result.state.tensors.insert({name, TensorAccess::outside(tensor)});
    return result;
  });
}

}  // namespace einrel::api
