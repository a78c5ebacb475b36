#include "exec/executors/first_error.h"

namespace einrel {

void FirstError::keep() {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::current_exception();
  failed_ = true;
}

std::exception_ptr FirstError::get() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

}  // namespace einrel
