#include "kernel/workers.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "base/thread.h"
#include "kernel/cancel.h"
#include "kernel/look_for.h"
#include "machine/processor.h"

namespace einrel {
namespace {

/// Whether the run is to stop; empty where nobody asks.
using StopAsked = std::function<bool()>;

Stopped stopped() { return Stopped("the run was stopped before it was done"); }

/// What throw_if_cancelled asks on this thread.
const StopAsked*& asked_on_this_thread() {
  static thread_local const StopAsked* asked = nullptr;
  return asked;
}

/// While parts of a run are computed on this thread.
class CancelScope {
 public:
  explicit CancelScope(const StopAsked& asked)
      : before_(std::exchange(asked_on_this_thread(), asked ? &asked : nullptr)) {}
  ~CancelScope() { asked_on_this_thread() = before_; }
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  const StopAsked* before_;
};

/// Memory aligned to cache lines that grows to the largest need so far.
class Scratch {
 public:
  std::byte* at_least(std::int64_t bytes) {
    const auto needed = static_cast<std::size_t>(bytes);
    if (needed <= size_) return memory_.get();
    memory_.reset();
    size_ = 0;
    try {
      memory_.reset(static_cast<std::byte*>(::operator new(needed, alignment)));
    } catch (const std::bad_alloc&) {
      throw RunError(fmt::format("no memory for the workspace of a kernel: it needs {}", bytes_text(bytes)));
    }
    size_ = needed;
    return memory_.get();
  }

 private:
  static constexpr std::align_val_t alignment{nominal_processor.line_bytes};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t size_ = 0;
};

}  // namespace

void throw_if_cancelled() {
  const StopAsked* const asked = asked_on_this_thread();
  if (asked != nullptr && (*asked)()) throw stopped();
}

/// Lets others have the core of a thread now and then.
class Pause {
 public:
  void after_a_part() {
    constexpr std::chrono::microseconds often_enough{500};  // for others, whatever the processor
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < often_enough) return;
    std::this_thread::yield();
    last_ = std::chrono::steady_clock::now();
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Keeps threads off the core of another one that wakes them. Left alone, Linux wakes a thread on its waker's core
/// where it takes the other cores for busy, as it does in a virtual machine with those that have slept for a while;
/// both then share the core for many milliseconds.
class CoreOfItsOwn {
 public:
  /// Before `others` are woken. Asks the system only where the caller has changed its core since.
  void before_waking(std::vector<std::thread>& others) {
    const int core = sched_getcpu();
    if (core == last_ || core < 0) return;
    last_ = core;
    cpu_set_t now;
    CPU_ZERO(&now);
    if (pthread_getaffinity_np(others.front().native_handle(), sizeof(now), &now) != 0) return;
    if (CPU_EQUAL(&now, &given_) == 0) allowed_ = now;  // as they began, or as somebody else has made it
    if (static_cast<std::size_t>(CPU_COUNT(&allowed_)) <= others.size()) return;
    given_ = allowed_;
    CPU_CLR(static_cast<std::size_t>(core), &given_);
    for (std::thread& other : others) pthread_setaffinity_np(other.native_handle(), sizeof(given_), &given_);
  }

 private:
  cpu_set_t allowed_{};
  cpu_set_t given_{};
  int last_ = -1;
};

/// The helpers sleep until a stage with several parts comes, but not between stages that follow at once. Whoever is
/// free takes the next part. What has one part, or no helpers, runs at once.
struct Workers::Team {
  Team(std::size_t threads, bool give_way) : gives_way(give_way), own(threads), pauses(threads) {
    try {
      for (std::size_t i = 1; i < threads; ++i) helpers.emplace_back([this, i] { help(i); });
    } catch (...) {
      stop();
      throw;
    }
  }
  ~Team() { stop(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    wake.notify_all();
    for (std::thread& helper : helpers) helper.join();
    helpers.clear();
  }

  void run(const Stage& of, const Arrays& given) {
    if (of.parts > 1 && !helpers.empty()) return run_together(of, given);
    const Workspace workspace{own[0].at_least(own_bytes), shared_memory};
    Pause& pause = pauses[0];
    const CancelScope scope(stop_asked);
    for (std::int64_t part = 0; part < of.parts; ++part) {
      throw_if_cancelled();
      of.run(given, workspace, part);
      if (gives_way) pause.after_a_part();
    }
  }

  void run_together(const Stage& of, const Arrays& given) {
    {
      const std::lock_guard lock(mutex);
      stage = &of;
      arrays = given;
      next = 0;
      failure = nullptr;
      ++round;
    }
    core.before_waking(helpers);
    wake.notify_all();
    take_parts(0);
    look_for([this] { return busy == 0; });
    std::unique_lock lock(mutex);
    idle.wait(lock, [this] { return busy == 0; });
    stage = nullptr;
    if (failure) std::rethrow_exception(failure);
  }

  void help(std::size_t worker) {
    std::int64_t seen = 0;
    while (true) {
      look_for([&] { return stopping || round != seen; });
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return stopping || (round != seen && stage != nullptr); });
        if (stopping) return;
        seen = round;
        ++busy;
      }
      take_parts(worker);
      {
        const std::lock_guard lock(mutex);
        --busy;
      }
      idle.notify_one();
    }
  }

  /// The next part to compute, if any is left.
  bool take(std::int64_t& part) {
    const std::lock_guard lock(mutex);
    if (stage != nullptr && !failure && stop_asked && stop_asked()) failure = std::make_exception_ptr(stopped());
    if (stage == nullptr || failure || next >= stage->parts) return false;
    part = next++;
    return true;
  }

  void take_parts(std::size_t worker) {
    Pause& pause = pauses[worker];
    const CancelScope scope(stop_asked);
    for (std::int64_t part = 0; take(part);) {
      try {
        stage->run(arrays, {own[worker].at_least(own_bytes), shared_memory}, part);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
      if (gives_way) pause.after_a_part();
    }
  }

  bool gives_way;
  StopAsked stop_asked;
  std::vector<Scratch> own;   ///< by worker
  std::vector<Pause> pauses;  ///< by worker
  CoreOfItsOwn core;
  Scratch shared;
  std::int64_t own_bytes = 0;
  std::byte* shared_memory = nullptr;

  std::mutex mutex;  ///< guards what follows
  std::condition_variable wake;
  std::condition_variable idle;
  const Stage* stage = nullptr;
  Arrays arrays;
  std::int64_t next = 0;
  // Changed under the mutex, but looked at without it.
  std::atomic<std::int64_t> round = 0;
  std::atomic<std::size_t> busy = 0;
  std::atomic<bool> stopping = false;
  std::exception_ptr failure;
  std::vector<std::thread> helpers;
};

Workers::Workers(std::size_t threads, bool give_way, MemoryPool pool) : pool_(std::move(pool)) {
  invariant(threads >= 1 && threads <= most_threads, "a number of threads out of range");
  try {
    team_ = std::make_unique<Team>(threads, give_way);
  } catch (const std::system_error& error) {
    throw_no_threads(threads, error);
  }
}

Workers::~Workers() = default;

std::size_t Workers::threads() const { return team_->own.size(); }

void Workers::cancel_on(const std::stop_token& stop) {
  cancel_when(stop.stop_possible() ? StopAsked([stop] { return stop.stop_requested(); }) : StopAsked());
}

void Workers::cancel_when(std::function<bool()> is_to_stop) { team_->stop_asked = std::move(is_to_stop); }

void Workers::run(const PreparedKernel& kernel, const Arrays& arrays) {
  team_->own_bytes = kernel.own_bytes;
  team_->shared_memory = team_->shared.at_least(kernel.shared_bytes);
  for (const Stage& stage : kernel.stages) team_->run(stage, arrays);
}

std::size_t available_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return std::max(1U, std::thread::hardware_concurrency());
  return static_cast<std::size_t>(std::max(CPU_COUNT(&allowed), 1));
}

void run_alone(const PreparedKernel& kernel, const Arrays& arrays, Workspace workspace) {
  for (const Stage& stage : kernel.stages) {
    for (std::int64_t part = 0; part < stage.parts; ++part) stage.run(arrays, workspace, part);
  }
}

}  // namespace einrel
