#include "exec/executors/process_turn.h"

#include <malloc.h>

#include <condition_variable>
#include <mutex>

#include "kernel/cancel.h"

namespace einrel {

struct ProcessTurn::Turns {
  std::mutex mutex;
  std::condition_variable_any free;
  bool is_taken = false;
};

const std::shared_ptr<ProcessTurn::Turns>& ProcessTurn::turns_of_process() {
  static const auto turns = std::make_shared<Turns>();
  return turns;
}

ProcessTurn::ProcessTurn(const std::stop_token& stop) : turns_(turns_of_process()) {
  std::unique_lock lock(turns_->mutex);
  if (!turns_->free.wait(lock, stop, [this] { return !turns_->is_taken; }))
    throw Stopped("the run was stopped before it was done");
  malloc_trim(0);  // with the lock: it is not safe against itself where it is the first to use the allocator
  turns_->is_taken = true;
}

ProcessTurn::~ProcessTurn() {
  {
    const std::lock_guard lock(turns_->mutex);
    turns_->is_taken = false;
  }
  turns_->free.notify_one();
}

}  // namespace einrel
