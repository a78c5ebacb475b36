#include "exec/executors/process_turn.h"

#include <condition_variable>
#include <mutex>

#include "kernel/cancel.h"

namespace einrel {
namespace {

struct Turns {
  std::mutex mutex;
  std::condition_variable_any free;
  bool is_taken = false;
};

Turns& turns() {
  static Turns turns;
  return turns;
}

}  // namespace

ProcessTurn::ProcessTurn(const std::stop_token& stop) {
  std::unique_lock lock(turns().mutex);
  if (!turns().free.wait(lock, stop, [] { return !turns().is_taken; }))
    throw Stopped("the run was stopped before it was done");
  turns().is_taken = true;
}

ProcessTurn::~ProcessTurn() {
  {
    const std::lock_guard lock(turns().mutex);
    turns().is_taken = false;
  }
  turns().free.notify_one();
}

}  // namespace einrel
