#include "train/batches.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/thread.h"
#include "train/finite.h"

namespace einrel {
namespace {

constexpr std::size_t most_ahead = 2;

/// Throws UserError for a sample that has elements which are no finite numbers: they would make everything that is
/// learnt so.
void check_sample(const Feed& feed, std::int64_t sample, const std::byte* elements, std::int64_t count) {
  const std::optional<double> bad = first_not_finite(feed.dtype, elements, count);
  if (!bad) return;
  throw UserError(
      fmt::format("sample {} (from 0 on) of {}, which '{}' is fed with, has an element that is {}\n  help: leave "
                  "the sample out, or put a number there",
                  sample, feed.file.name, feed.name, std::isnan(*bad) ? "not a number" : "infinite"));
}

Tensor assemble(const Feed& feed, const Batch& batch) {
  Shape one = feed.file.shape;
  one[feed.batch] = Extent(1);
  Shape bound = one;
  bound[feed.batch] = Extent(static_cast<std::int64_t>(batch.size()));
  Tensor all(feed.dtype, bound);
  const std::int64_t count = element_count(one);
  const auto size = static_cast<std::int64_t>(size_of(feed.dtype));
  const std::int64_t stride = all.strides()[feed.batch] * size;
  const bool is_outermost =
      element_count(Shape(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(feed.batch))) == 1;
  std::vector<std::byte> room(is_outermost ? 0 : static_cast<std::size_t>(count * size));
  std::vector<std::int64_t> begin(one.size(), 0);
  std::byte* to = all.mutable_data();
  for (const std::int64_t sample : batch) {
    begin[feed.batch] = sample;
    std::byte* const elements = is_outermost ? to : room.data();
    read_box(feed.file, feed.dtype, begin, one, elements);
    check_sample(feed, sample, elements, count);
    if (!is_outermost) copy_elements(feed.dtype, one, {elements, row_major_strides(one)}, to, all.strides());
    to += stride;
  }
  return all;
}

}  // namespace

InputSources assemble(const Feeds& feeds, const Batch& batch) {
  InputSources sources;
  for (const Feed& feed : feeds.feeds) sources[feed.name] = assemble(feed, batch);
  return sources;
}

BatchReader::BatchReader(const Feeds& feeds, std::vector<Batch> batches)
    : feeds_(feeds),
      batches_(std::move(batches)),
      thread_(start_thread([this](const std::stop_token& stop) { read(stop); })) {}

BatchReader::~BatchReader() {
  thread_.request_stop();
  thread_.join();
}

void BatchReader::read(const std::stop_token& stop) {
  for (const Batch& batch : batches_) {
    std::variant<InputSources, std::exception_ptr> made;
    try {
      made = assemble(feeds_, batch);
    } catch (...) {
      made = std::current_exception();
    }
    const bool failed = std::holds_alternative<std::exception_ptr>(made);
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return ready_.size() < most_ahead; })) return;
    ready_.push_back(std::move(made));
    changed_.notify_all();
    if (failed) return;
  }
}

InputSources BatchReader::next() {
  taken_ = batches_[next_++];
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !ready_.empty(); });
  const std::variant<InputSources, std::exception_ptr> made = std::move(ready_.front());
  if (const auto* const error = std::get_if<std::exception_ptr>(&made)) std::rethrow_exception(*error);
  ready_.pop_front();
  changed_.notify_all();
  return std::get<InputSources>(made);
}

}  // namespace einrel
