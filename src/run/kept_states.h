#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "exec/executors/executor.h"
#include "exec/job/job.h"
#include "run/planned_tasks.h"

namespace einrel {

/// What one process has of a state: all of it, or, where sites have a memory each, the chunks that lie on its own.
class KeptState {
 public:
  /// A part of it, in memory of its own.
  struct Part {
    std::vector<std::int64_t> begin;
    Tensor elements;
    std::byte* writable = nullptr;  ///< its elements; none of memory that others may read later
  };

  /// `folder`: where memory is mapped from, if there is a limit of memory, so that the system can keep it on the disk.
  KeptState(TaskOutput type, bool is_whole, std::optional<std::string> folder);

  /// Takes its first value, of which this process needs boxes that lie and are as large as these tasks read. A copy:
  /// what follows is the same to the bit whatever that lay in.
  void begin(const InputSource& source, const std::vector<std::pair<std::vector<std::int64_t>, Shape>>& boxes);
  /// What a step reads, until `advance`.
  InputSource now() const;
  /// Takes chunks of the next value, several at a time.
  OutputWriter next();
  /// The next value is that of now.
  void advance();
  /// Whether a tensor's elements are those of a value that a later step reads, or where one will be written.
  bool has_memory_of(const Tensor& tensor) const;
  const std::deque<Part>& parts() const { return now_; }

 private:
  Part make(const std::vector<std::int64_t>& begin, const Shape& bound) const;
  Part& part_for(const std::vector<std::int64_t>& begin, const Shape& bound);
  void write(const std::vector<std::int64_t>& begin, Tensor chunk);

  TaskOutput type_;
  bool is_whole_;
  std::optional<std::string> folder_;
  std::deque<Part> now_;
  std::deque<Part> next_;  // before it is written: memory to write it to
  std::mutex mutex_;
};

/// Values of states, by name, that so many steps have left.
struct GivenStates {
  InputSources values;
  std::int64_t steps_done = 0;
};

/// The states of a program between its steps.
class KeptStates {
 public:
  /// For the tasks of a step, in this process of a job; `folder` as of KeptState.
  KeptStates(const PlannedTasks& tasks, const Job& job, const std::optional<std::string>& folder);

  /// Takes values where tasks read them. Throws UserError when one is missing or of another type.
  void begin(const PlannedTasks& tasks, const GivenStates& given);
  KeptState& operator[](std::size_t state) { return states_[state]; }
  const KeptState& operator[](std::size_t state) const { return states_[state]; }
  bool have_memory_of(const Tensor& tensor) const;

  std::int64_t steps_done() const { return steps_done_; }
  void count_step() { ++steps_done_; }
  /// The step that made the values before all others is none.
  void begin_to_count() { steps_done_ = 0; }

 private:
  Job job_;
  std::deque<KeptState> states_;  // as PlannedTasks::states
  std::int64_t steps_done_ = 0;
};

}  // namespace einrel
