#include "exec/memory/spill_file.h"

#include <algorithm>
#include <iterator>

namespace einrel {
namespace {

/// Chunks begin where blocks of the disk and pages of its cache do: none is written for the sake of a neighbour's.
constexpr std::int64_t block = 4096;

}  // namespace

void FreeParts::remove(Gaps::iterator gap) {
  by_size_.erase({gap->second, gap->first});
  by_begin_.erase(gap);
}

std::int64_t FreeParts::take(std::int64_t bytes) {
  const auto smallest = by_size_.lower_bound({bytes, 0});
  if (smallest == by_size_.end()) {
    const std::int64_t begin = end_;
    end_ += bytes;
    return begin;
  }
  const auto [size, begin] = *smallest;
  remove(by_begin_.find(begin));
  if (size > bytes) {
    by_begin_[begin + bytes] = size - bytes;
    by_size_.insert({size - bytes, begin + bytes});
  }
  return begin;
}

void FreeParts::give_back(const FilePart& part) {
  auto [begin, bytes] = part;
  const auto after = by_begin_.find(begin + bytes);
  if (after != by_begin_.end()) {
    bytes += after->second;
    remove(after);
  }
  const auto next = by_begin_.lower_bound(begin);
  if (next != by_begin_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      bytes += before->second;
      remove(before);
    }
  }
  if (begin + bytes == end_) {
    end_ = begin;
    return;
  }
  by_begin_[begin] = bytes;
  by_size_.insert({bytes, begin});
}

FilePart SpillFile::take(std::int64_t bytes) {
  const std::int64_t blocks = std::max<std::int64_t>(1, (bytes + block - 1) / block) * block;
  const std::lock_guard lock(mutex_);
  const FilePart part{parts_.take(blocks), blocks};
  if (parts_.end() <= room_) return part;
  try {
    file_.take_room(room_, parts_.end() - room_);
  } catch (...) {
    parts_.give_back(part);
    throw;
  }
  room_ = parts_.end();
  return part;
}

void SpillFile::give_back(const FilePart& part) {
  const std::lock_guard lock(mutex_);
  parts_.give_back(part);
}

}  // namespace einrel
