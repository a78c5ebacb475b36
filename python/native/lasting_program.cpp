#include "lasting_program.h"

#include <einrel/error.h>
#include <einrel/mapped_files.h>
#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <list>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "made_input.h"

namespace einrel::python {
namespace {

/// What runs in this process, under Python's lock.
struct Runs {
  std::int64_t forks = 0;               ///< between the first process and this one
  std::atomic<std::size_t> count = 0;   ///< of all threads; also without the lock
  bool have_ended = false;              ///< the interpreter is about to
  std::list<std::stop_source> watched;  ///< of those that can be stopped
  std::optional<api::Ranks> ranks;      ///< if MPI has started
};

Runs& runs() {
  static Runs& of_process = *new Runs;  // owned by nobody: runs that were left may end later than all else
  return of_process;
}

/// Counts a run while it lives.
class Counted {
 public:
  Counted() { ++runs().count; }
  ~Counted() { --runs().count; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
};

/// Marks, while it lives, that something happens; under Python's lock.
class Marked {
 public:
  explicit Marked(bool& mark) : mark_(mark) { mark_ = true; }
  ~Marked() { mark_ = false; }
  Marked(const Marked&) = delete;
  Marked& operator=(const Marked&) = delete;

 private:
  bool& mark_;
};

/// What stops a run while it lives.
class Stop {
 public:
  Stop() : place_(runs().watched.emplace(runs().watched.end())) {
    if (runs().have_ended) place_->request_stop();
  }
  ~Stop() { runs().watched.erase(place_); }
  Stop(const Stop&) = delete;
  Stop& operator=(const Stop&) = delete;
  std::stop_source& operator*() const { return *place_; }

 private:
  std::list<std::stop_source>::iterator place_;
};

/// Something that takes long on a thread of its own, with all that it needs: who waits for it may leave.
template <class Result>
class Running {
 public:
  using Action = std::function<Result(const std::stop_token&)>;
  Running(Action action, std::stop_token stop) : action_(std::move(action)), stop_(std::move(stop)) {}

  std::future<Result> result() { return result_.get_future(); }
  void operator()() {
    try {
      Result result = action_(stop_);
      action_ = nullptr;  // what it holds goes here only if nobody waits: that takes Python's lock
      result_.set_value(std::move(result));
    } catch (...) {
      result_.set_exception(std::current_exception());
    }
  }

 private:
  Counted counted_;  // goes last
  Action action_;
  std::stop_token stop_;
  std::promise<Result> result_;
};

/// Waits for a run that was asked to stop, but not for long: a call of LAPACK ends when it is done. On ranks, where
/// nothing else may happen meanwhile, it is waited for.
template <class Result>
void leave(const std::future<Result>& result, bool on_ranks) {
  constexpr std::chrono::milliseconds long_enough{100};
  const nanobind::gil_scoped_release release;
  if (on_ranks) return result.wait();
  result.wait_for(long_enough);
}

/// Does something on a thread of its own, for which nobody waits. Throws RunError where the system gives none.
template <class Action>
void start_apart(Action action) {
  try {
    std::thread(std::move(action)).detach();
  } catch (const std::system_error& error) {
    throw api::RunError(std::string("the system gives no further thread (") + error.what() +
                        "): give fewer (threads=), or let this process have more (ulimit -u, ulimit -v)");
  }
}

/// Does something on another thread, while this one looks for signals.
template <class Result>
Result watched(typename Running<Result>::Action action, bool on_ranks) {
  constexpr std::chrono::milliseconds often_enough{50};  // for who pressed Ctrl-C
  const Stop stop;
  const auto running = std::make_shared<Running<Result>>(std::move(action), (*stop).get_token());
  std::future<Result> result = running->result();
  start_apart([running] { (*running)(); });
  while (true) {
    {
      const nanobind::gil_scoped_release release;
      if (result.wait_for(often_enough) == std::future_status::ready) break;
    }
    if (PyErr_CheckSignals() == 0) continue;
    const nanobind::python_error interrupted;
    {
      const nanobind::gil_scoped_release release;  // asking a server may take long
      (*stop).request_stop();
    }
    leave(result, on_ranks);
    throw interrupted;
  }
  return result.get();
}

/// What belongs to threads that are gone can neither run nor be destroyed.
void leave_behind(std::shared_ptr<const void> of_others) {
  static auto& left = *new std::vector<std::shared_ptr<const void>>;  // owned by nobody
  left.push_back(std::move(of_others));
}

constexpr double short_seconds = 1e-3;  // of which a thread that watches would be a part

bool are_several(const std::optional<api::Ranks>& ranks) { return ranks && ranks->count() > 1; }

}  // namespace

LastingProgram::LastingProgram(api::Program program, std::function<api::Program()> again)
    : again_(std::move(again)),
      program_(std::make_shared<const api::Program>(std::move(program))),
      forks_(runs().forks) {}

LastingProgram::LastingProgram(const std::function<api::Program()>& make)
    : LastingProgram(watched<api::Program>([make](const std::stop_token& /*it has an end*/) { return make(); }, false),
                     make) {}

LastingProgram::~LastingProgram() {
  if (forks_ != runs().forks) leave_behind(std::move(program_));
}

const api::Program& LastingProgram::get() {
  if (forks_ != runs().forks) {
    leave_behind(std::move(program_));
    program_ = std::make_shared<const api::Program>(again_());
    forks_ = runs().forks;
  }
  return *program_;
}

api::Placements LastingProgram::placements(const api::ExplainOptions& how) {
  const api::Program program = get();
  const auto find = [program, how](const std::stop_token& /*it has an end*/) { return program.placements(how); };
  return watched<api::Placements>(find, false);
}

api::RunResult LastingProgram::run(const api::Inputs& inputs, api::RunOptions options) {
  const api::Program program = get();
  options.ranks = ranks();
  const Counted counted;
  const api::WholeFiles files(inputs);
  const api::RunResult result = raising([&] {
    if (last_seconds_ >= short_seconds) {
      const auto run = [program, inputs, options](const std::stop_token& stop) mutable {
        options.stop = stop;
        return program.run(inputs, options);
      };
      return watched<api::RunResult>(run, are_several(options.ranks));
    }
    const nanobind::gil_scoped_release release;
    return program.run(inputs, options);
  });
  files.check();
  last_seconds_ = result.report.seconds;
  return result;
}

std::unique_ptr<LastingStepper> LastingProgram::stepper(api::Inputs inputs, const std::vector<std::string>& fed,
                                                        api::RunOptions options) {
  options.ranks = ranks();
  api::Stepper stepper = get().stepper(inputs, fed, options);
  for (const std::string& name : fed) inputs.erase(name);
  return std::make_unique<LastingStepper>(std::move(stepper), std::move(inputs), are_several(options.ranks));
}

LastingStepper::LastingStepper(api::Stepper stepper, api::Inputs inputs, bool on_ranks)
    : stepper_(std::make_shared<api::Stepper>(std::move(stepper))),
      inputs_(std::move(inputs)),
      on_ranks_(on_ranks),
      forks_(runs().forks) {}

LastingStepper::~LastingStepper() {
  if (forks_ != runs().forks) leave_behind(std::move(stepper_));
}

std::shared_ptr<api::Stepper> LastingStepper::get() const {
  if (forks_ != runs().forks) throw api::RunError("these steps began before this process was forked: begin again");
  if (is_busy_) throw api::UserError("a step is being done, or the state copied: ask again when that has ended");
  if (!stepper_) throw api::UserError("a step has failed, so there is none after it: begin again");
  return stepper_;
}

api::RunResult LastingStepper::step(const api::Inputs& fed) {
  const std::shared_ptr<api::Stepper> stepper = get();
  const Marked busy(is_busy_);
  stepper_ = nullptr;
  const Counted counted;
  api::Inputs read = inputs_;
  read.insert(fed.begin(), fed.end());
  const api::WholeFiles files(std::move(read));
  api::RunResult result = raising([&] {
    if (last_seconds_ >= short_seconds) {
      const auto step = [stepper, fed](const std::stop_token& stop) { return stepper->step(fed, stop); };
      return watched<api::RunResult>(step, on_ranks_);
    }
    const nanobind::gil_scoped_release release;
    return stepper->step(fed);
  });
  files.check();
  last_seconds_ = result.report.seconds;
  stepper_ = stepper;
  return result;
}

api::Placements LastingStepper::placements() {
  const std::shared_ptr<api::Stepper> stepper = get();
  const auto find = [stepper](const std::stop_token& /*it has an end*/) { return stepper->placements(); };
  const Marked busy(is_busy_);
  stepper_ = nullptr;  // where it is interrupted, its thread goes on with it
  api::Placements placements = watched<api::Placements>(find, on_ranks_);
  stepper_ = stepper;
  return placements;
}

api::State LastingStepper::state() {
  const std::shared_ptr<const api::Stepper> stepper = get();
  const Marked busy(is_busy_);
  const Counted counted;
  const nanobind::gil_scoped_release release;
  return stepper->state();
}

api::TrainResult LastingProgram::train(const std::map<std::string, api::Samples>& feeds, api::TrainOptions options) {
  const api::Program program = get();
  options.ranks = ranks();
  const Counted counted;
  api::outlive_cut_files();
  const api::WholeFiles files({});
  api::TrainResult result = raising([&] {
    const auto train = [program, feeds, options](const std::stop_token& stop) mutable {
      options.stop = stop;
      return api::train(program, feeds, options);
    };
    return watched<api::TrainResult>(train, are_several(options.ranks));
  });
  files.check();
  return result;
}

api::DatabaseResult LastingProgram::run_in_database(const std::string& database,
                                                    const std::map<std::string, api::DatabaseInput>& inputs,
                                                    api::DatabaseOptions options) {
  const api::Program program = get();
  const auto run = [program, database, inputs, options](const std::stop_token& stop) mutable {
    options.stop = stop;
    return api::run_in_database(program, database, inputs, options);
  };
  const api::WholeFiles files({});
  api::DatabaseResult result = watched<api::DatabaseResult>(run, false);
  files.check();
  return result;
}

std::string LastingProgram::tell(const std::function<std::string(const api::Program&)>& what) {
  const auto told = [program = get(), what](const std::stop_token& /*planning cannot be stopped*/) {
    return what(program);
  };
  return watched<std::string>(told, false);
}

std::string calibrate_database(const std::string& database) {
  const auto calibrate = [database](const std::stop_token& stop) { return api::calibrate_database(database, stop); };
  return watched<std::string>(calibrate, false);
}

std::optional<api::Ranks> ranks() {
  if (runs().forks > 0 || runs().have_ended) return std::nullopt;
  if (!runs().ranks) {
    runs().ranks.emplace();
    if (runs().ranks->count() > 1) nanobind::module_::import_("einrel._ranks").attr("end_together")();
  }
  return runs().ranks;
}

std::optional<api::Ranks> ranks_if_started() { return runs().ranks; }

void forked() {
  ++runs().forks;
  runs().count = 0;
  runs().watched.clear();
}

void end_runs() {
  runs().have_ended = true;
  for (std::stop_source& run : runs().watched) run.request_stop();
  while (runs().count > 0) {
    const nanobind::gil_scoped_release release;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const nanobind::gil_scoped_acquire lock;
    constexpr int interrupted = 130;
    if (PyErr_CheckSignals() != 0) std::_Exit(interrupted);  // Ctrl-C again, while one ends that cannot be stopped
  }
  const nanobind::gil_scoped_release release;
  runs().ranks.reset();
}

}  // namespace einrel::python
