#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <variant>
#include <vector>

#include "run/planned_tasks.h"
#include "train/feeds.h"

namespace einrel {

/// The numbers of the samples of a batch.
using Batch = std::vector<std::int64_t>;

/// All feeds of some samples, as inputs of a step. Throws UserError, naming sample and feed, for one that is infinite
/// or not a number.
InputSources assemble(const Feeds& feeds, const Batch& batch);

/// Assembles batches on a thread of its own, ahead of those who take them.
class BatchReader {
 public:
  /// `feeds` must outlive it.
  BatchReader(const Feeds& feeds, std::vector<Batch> batches);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  /// The next batch, waiting for it if need be; as often as there are batches. Throws what `assemble` does.
  InputSources next();
  /// The samples of that one.
  const Batch& taken() const { return taken_; }
  const Feeds& feeds() const { return feeds_; }

 private:
  void read(const std::stop_token& stop);

  const Feeds& feeds_;
  std::vector<Batch> batches_;
  std::size_t next_ = 0;
  Batch taken_;
  std::deque<std::variant<InputSources, std::exception_ptr>> ready_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::jthread thread_;
};

}  // namespace einrel
