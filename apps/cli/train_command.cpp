#include <fmt/format.h>

#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "arguments.h"
#include "base/error.h"
#include "base/guard.h"
#include "base/text.h"
#include "commands.h"
#include "execution.h"
#include "interrupt.h"
#include "output.h"
#include "plan_arguments.h"
#include "program_input.h"
#include "progress.h"
#include "report/passes_text.h"
#include "tensor/tensor_file.h"
#include "train/train.h"

namespace einrel::cli {
namespace {

struct TrainArguments {
  std::string program;
  std::vector<std::string> feeds;
  std::vector<std::string> test;
  std::vector<std::string> inputs;
  std::vector<std::string> dims;
  std::vector<std::string> scalars;
  std::string batch;
  std::string epochs;
  std::optional<std::string> header;
  std::optional<std::string> hold_out;
  bool keep_last = false;
  std::string seed = "0";
  std::vector<std::string> report;
  std::optional<std::string> calibrate_with;
  std::optional<std::string> save;
  std::optional<std::string> save_every;
  std::optional<std::string> resume;
  std::optional<std::string> log;
  std::optional<std::string> local_steps;
  std::vector<std::string> subnets;
  PlanArguments plan;
  std::string timeout = default_timeout;
  std::string progress = "auto";
  bool json = false;
};

FeedSources parse_feeds(const std::string& option, const std::vector<std::string>& given) {
  FeedSources sources;
  for (auto& [name, file] : parse_assignments(option, given)) sources.emplace_back(name, file);
  return sources;
}

/// --local-steps and --subnets.
std::optional<LocalTraining> parse_local(const TrainArguments& arguments, const Job& job) {
  if (!arguments.local_steps) {
    if (!arguments.subnets.empty())
      throw UserError("--subnets needs --local-steps J: how many steps sites do between two exchanges");
    return std::nullopt;
  }
  const PlanArguments& plan = arguments.plan;
  if (plan.planner || plan.cost || plan.machine || plan.memory || plan.plan_file)
    throw UserError(
        "with --local-steps every site runs the program whole; leave out --planner, --cost, --machine, --memory and "
        "--plan");
  if (arguments.keep_last) throw UserError("--keep-last: with --local-steps all sites take as many whole batches");
  const std::int64_t sites = arguments.plan.sites ? parse_sites(*arguments.plan.sites) : job.ranks;
  if (job.is_started && sites != job.ranks)
    throw UserError(fmt::format("--sites {}, but the job has {}; a site is a rank", sites,
                                counted(static_cast<std::size_t>(job.ranks), "rank")));
  return LocalTraining{parse_times("--local-steps", *arguments.local_steps),
                       parse_names("--subnets", arguments.subnets), sites};
}

TrainRequest request_of(const TrainArguments& arguments, SourceText source, const Job& job) {
  TrainRequest request{std::move(source)};
  const std::vector<std::pair<std::string, std::string>> batch = parse_assignments("--batch", {arguments.batch});
  request.batch_label = batch.front().first;
  request.batch = parse_times("--batch " + request.batch_label + "=", batch.front().second);
  request.dims = parse_dims(arguments.dims);
  if (request.dims.count(request.batch_label) != 0)
    throw UserError(fmt::format("--dim {0}=...: --batch {0}=N gives the extent of '{0}'", request.batch_label));
  request.scalars = parse_scalars(arguments.scalars);
  request.inflate = inflate_folder(arguments.plan);
  request.feeds = parse_feeds("--feed", arguments.feeds);
  request.test = parse_feeds("--test", arguments.test);
  if (arguments.header) request.header = parse_yes("--header", *arguments.header);
  if (arguments.hold_out) request.hold_out = parse_share("--hold-out", *arguments.hold_out);
  if (request.hold_out && !request.test.empty())
    throw UserError("--test brings samples to test on, and --hold-out takes some of those to train on; leave one out");
  for (const auto& [name, file] : parse_assignments("--in", arguments.inputs)) {
    if (is_table(file))
      throw UserError(
          fmt::format("--in {}={}: tables are read by --feed only; save it as .npy", printable(name), printable(file)));
    request.inputs[name] = open_tensor(parse_file_ref(file), request.inflate);
    request.files.push_back(parse_file_ref(file).path);
  }
  request.files.push_back(arguments.program);
  for (const std::optional<std::string>& file : {arguments.plan.plan_file, arguments.plan.machine}) {
    if (file) request.files.push_back(*file);
  }
  request.epochs = parse_times("--epochs", arguments.epochs);
  request.keep_last = arguments.keep_last;
  request.seed = parse_seed_number("--seed", arguments.seed);
  request.report = parse_names("--report", arguments.report);
  if (arguments.calibrate_with) request.calibrate_with = parse_times("--calibrate-with", *arguments.calibrate_with);
  request.save = arguments.save;
  if (arguments.save_every) {
    if (!arguments.save) throw UserError("--save-every needs --save FOLDER");
    request.save_every = parse_times("--save-every", *arguments.save_every);
  }
  request.resume = arguments.resume;
  request.log = arguments.log;
  request.local = parse_local(arguments, job);
  request.run = request_of(arguments.plan, job);
  request.passes = pass_options(arguments.plan);
  if (request.local) request.run = {.threads = request.run.threads};
  return request;
}

nlohmann::json json_of(const std::vector<std::string>& names, const std::vector<double>& means) {
  nlohmann::json object = nlohmann::json::object();
  for (std::size_t i = 0; i < means.size(); ++i) object[names[i]] = means[i];
  return object;
}

std::string json_text(const TrainReport& report) {
  nlohmann::json epochs = nlohmann::json::array();
  for (const EpochReport& epoch : report.epochs) {
    epochs.push_back({{"epoch", epoch.epoch},
                      {"steps", epoch.steps},
                      {"seconds", epoch.seconds},
                      {"samples_per_second", epoch.samples_per_second},
                      {"bytes_moved", epoch.bytes},
                      {"training", json_of(report.names, epoch.training)},
                      {"test", json_of(report.names, epoch.test)}});
  }
  nlohmann::json all{{"epochs", epochs}, {"steps", report.steps}, {"until", report.is_held}};
  all["checkpoint"] = report.saved ? nlohmann::json(printable(*report.saved)) : nlohmann::json();
  return all.dump(2) + "\n";
}

void print_end(const TrainReport& report, const TrainArguments& arguments) {
  const std::string steps = counted(static_cast<std::size_t>(report.steps), "step");
  const bool is_over = report.epochs.empty() && !report.is_interrupted;
  if (is_over && report.is_held) {
    print(fmt::format(
        "nothing is left to do: after {} the condition of `until` held, which ended this training for good\n", steps));
  } else if (is_over) {
    print(fmt::format("nothing is left to do: --epochs {} were done before, in {}; give more\n", arguments.epochs,
                      steps));
  } else if (report.is_held) {
    print(fmt::format("the condition of `until` holds after {}\n", steps));
  }
  if (report.saved && !report.unwritten) print(fmt::format("saved {}\n", printable(*report.saved)));
}

/// What Ctrl-C, or another signal, has left, once the report is out.
void say_interrupted(const TrainReport& report, const TrainArguments& arguments) {
  if (!report.is_interrupted) return;
  std::string rest = "nothing is kept of it; --save FOLDER keeps what was learnt";
  if (arguments.save && !report.unwritten)
    rest = fmt::format("--resume {} goes on from step {}", printable(*arguments.save), report.steps);
  print_error(fmt::format("interrupted at step {}; {}\n", report.steps, rest));
}

void train_on(const Job& job, const TrainArguments& arguments) {
  const SourceText source = program_of_job(arguments.program, job);
  std::optional<TrainRequest> request;
  TrainListener listener;
  agree(job, [&] {
    if (is_tra(arguments.program)) throw UserError("train takes a .ein program: one in the algebra has no state");
    request.emplace(request_of(arguments, source, job));
    listener = train_listener(arguments.progress, arguments.hold_out || !arguments.test.empty(), arguments.json);
    listener.passes = [](const Compiled& program, const PlannedTasks& tasks) { print(passes_text(program, tasks)); };
  });
  std::optional<NotedInterrupt> interrupt;  // from the first step on, when it is asked first
  int signal = 0;
  request->is_interrupted = [&] {
    if (!interrupt) interrupt.emplace(job.rank == 0);
    signal = largest(job, interrupt->signal());
    return signal != 0;
  };
  const TrainReport report = train(*request, listener, job);
  if (job.rank == 0 && arguments.json) print(json_text(report));
  if (job.rank == 0 && !arguments.json) print_end(report, arguments);
  if (job.rank == 0) say_interrupted(report, arguments);
  if (report.unwritten) std::rethrow_exception(report.unwritten);
  agree(job, [&] {
    if (report.is_interrupted) throw Interrupted(signal);
  });
}

void add_options(CLI::App& command, TrainArguments& arguments) {
  command.add_option("PROGRAM", arguments.program, "a .ein file, or - for one on standard input")->required();
  command
      .add_option("--feed", arguments.feeds,
                  "NAME=FILE: the samples of an input (.npy, .npz:NAME, .safetensors:NAME, .idx.gz, .csv, "
                  ".csv:COLUMN, .csv:FIRST..LAST, .tsv)")
      ->required()
      ->allow_extra_args(false);
  command
      .add_option("--batch", arguments.batch, "LABEL=N: the label that stands for samples, and how many a step takes")
      ->required();
  command.add_option("--epochs", arguments.epochs, "N: go over all samples N times")->required();
  command.add_option("--test", arguments.test, "NAME=FILE: samples to evaluate after each epoch")
      ->allow_extra_args(false);
  command.add_option("--hold-out", arguments.hold_out, "SHARE: instead of --test, this share of the samples");
  command.add_option(
      "--header", arguments.header,
      "yes or no: the first line of each table names its columns, or is a sample (default: as it looks)");
  command.add_option("--in", arguments.inputs, "NAME=FILE: bind an input that is the same for all samples")
      ->allow_extra_args(false);
  command.add_option("--dim", arguments.dims, "LABEL=N: set the extent of a label")->allow_extra_args(false);
  command.add_option("--scalar", arguments.scalars, "NAME=X: set a scalar")->allow_extra_args(false);
  command.add_flag("--keep-last", arguments.keep_last,
                   "let an epoch's last batch be smaller instead of leaving it out");
  command.add_option("--seed", arguments.seed, "N: another order of samples (default 0)");
  command.add_option("--report", arguments.report, "NAME,...: scalars to report (default: all among the outputs)");
  command.add_option("--calibrate-with", arguments.calibrate_with,
                     "N: evaluate with the statistics of N samples of training instead of each batch's own");
  command.add_option("--save", arguments.save, "FOLDER: write checkpoints, of which the last two are kept");
  command.add_option("--save-every", arguments.save_every, "N: after each N steps (default: after each epoch)");
  command.add_option("--resume", arguments.resume, "FOLDER: go on from the last checkpoint in it");
  command.add_option("--log", arguments.log, "FILE.csv: a row for each epoch, and the curves in FILE.svg");
  command.add_option("--local-steps", arguments.local_steps,
                     "J: each site trains on its own, and what they learnt is averaged every J steps");
  command.add_option("--subnets", arguments.subnets,
                     "LABEL,...: with --local-steps, labels whose extents are divided among the sites");
  command.add_option("--threads", arguments.plan.threads,
                     "N: compute on N threads; without it, on all cores this process may use");
  add_machine_options(command, arguments.plan);
  command.add_option("--planner", arguments.plan.planner, "how to plan (default eindecomp; see einrel list planners)");
  command.add_option("--spill", arguments.plan.spill,
                     "FOLDER: with --memory, where chunks go that it has no room for, and decompressed files "
                     "(default: the system's temporary folder)");
  command.add_option("--timeout", arguments.timeout,
                     "SECONDS: a rank that is stopped for longer ends the job (default 60)");
  command.add_flag("--json", arguments.json, "print one JSON object instead of text");
  command.add_option("--progress", arguments.progress, "auto, always or never");
}

}  // namespace

void add_train_command(CLI::App& app) {
  auto arguments = std::make_shared<TrainArguments>();
  CLI::App* command = app.add_subcommand("train", "train a program with state on samples from files");
  add_options(*command, *arguments);
  command->callback([arguments, command] {
    run_in_job(
        *command, arguments->timeout,
        [&] {
          check_plan_options(arguments->plan);
          check_pass_options(arguments->plan, false, arguments->json);
          const std::optional<std::string>& planner = arguments->plan.planner;
          if (planner && plans_relations(*planner))
            throw UserError(fmt::format("--planner {}: it does not keep states; use another one", *planner));
        },
        [&](const Job& job) { train_on(job, *arguments); });
  });
}

}  // namespace einrel::cli
