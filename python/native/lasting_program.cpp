#include "lasting_program.h"

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <list>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

namespace einrel::python {
namespace {

/// What runs in this process, under Python's lock.
struct Runs {
  std::int64_t forks = 0;               ///< between the first process and this one
  std::size_t count = 0;                ///< of all threads
  bool have_ended = false;              ///< the interpreter is about to
  std::list<std::stop_source> watched;  ///< of those that can be stopped
};

Runs& runs() {
  static Runs of_process;
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

/// Runs a program on another thread, while this one looks for signals.
api::RunResult run_watched(const api::Program& program, const std::map<std::string, api::Tensor>& inputs,
                           api::RunOptions options) {
  constexpr std::chrono::milliseconds often_enough{50};  // for who pressed Ctrl-C
  const Stop stop;
  options.stop = (*stop).get_token();
  std::future<api::RunResult> result =
      std::async(std::launch::async, [&] { return program.run(inputs, options); });  // its destructor waits
  while (true) {
    {
      const nanobind::gil_scoped_release release;
      if (result.wait_for(often_enough) == std::future_status::ready) break;
    }
    if (PyErr_CheckSignals() == 0) continue;
    (*stop).request_stop();
    const nanobind::python_error interrupted;
    {
      const nanobind::gil_scoped_release release;
      result.wait();
    }
    throw interrupted;
  }
  return result.get();
}

}  // namespace

LastingProgram::LastingProgram(api::Program program, std::function<api::Program()> again)
    : again_(std::move(again)),
      program_(std::make_shared<const api::Program>(std::move(program))),
      forks_(runs().forks) {}

const api::Program& LastingProgram::get() {
  if (forks_ != runs().forks) {
    // What belongs to threads that are gone can neither run nor be destroyed.
    static std::vector<std::shared_ptr<const api::Program>>& left_behind =
        *new std::vector<std::shared_ptr<const api::Program>>;  // owned by nobody: it must not be destroyed at the end
    left_behind.push_back(std::move(program_));
    program_ = std::make_shared<const api::Program>(again_());
    forks_ = runs().forks;
  }
  return *program_;
}

api::RunResult LastingProgram::run(const std::map<std::string, api::Tensor>& inputs, const api::RunOptions& options) {
  constexpr double short_seconds = 1e-3;  // of which a thread that watches would be a part
  const api::Program program = get();
  const Counted counted;
  api::RunResult result;
  if (last_seconds_ < short_seconds) {
    const nanobind::gil_scoped_release release;
    result = program.run(inputs, options);
  } else {
    result = run_watched(program, inputs, options);
  }
  last_seconds_ = result.report.seconds;
  return result;
}

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
  }
}

}  // namespace einrel::python
