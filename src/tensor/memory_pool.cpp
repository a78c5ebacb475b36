#include "tensor/memory_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <new>

namespace einrel {
namespace {

constexpr std::align_val_t alignment{64};

/// Smaller ones are left to the C++ library, which keeps their memory by itself.
constexpr std::size_t least_kept = std::size_t{256} << 10;

/// A block serves a request of not much less than its size.
std::size_t largest_block_for(std::size_t bytes) { return bytes + bytes / 8; }

constexpr std::align_val_t huge_page{std::size_t{2} << 20U};

/// Of a block: large ones begin with a huge page.
std::align_val_t alignment_of(std::size_t bytes) {
  constexpr std::size_t worth_it = std::size_t{2} << 20U;
  return bytes < worth_it ? alignment : huge_page;
}

/// Asks for huge pages: the first touch of fresh memory costs as much as computing an element-wise result, and a
/// quarter of that in huge pages. Where there are none nothing changes.
std::byte* fresh_memory(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(::operator new(bytes, alignment_of(bytes)));
#ifdef MADV_HUGEPAGE
  constexpr std::size_t page = 4096;
  if (alignment_of(bytes) == huge_page) madvise(memory, bytes / page * page, MADV_HUGEPAGE);
#endif
  return memory;
}

void release_memory(std::byte* memory, std::size_t bytes) { ::operator delete(memory, alignment_of(bytes)); }

/// In one piece with its count of owners, since small results come often.
std::shared_ptr<std::byte> small(std::size_t bytes) {
  constexpr auto line = static_cast<std::size_t>(alignment);
  auto owner = std::make_shared_for_overwrite<std::byte[]>(bytes + line - 1);
  std::byte* const begin = owner.get() + (line - reinterpret_cast<std::uintptr_t>(owner.get()) % line) % line;
  return {std::move(owner), begin};
}

}  // namespace

struct MemoryPool::State : std::enable_shared_from_this<State> {
  explicit State(Slack kept_more) : slack(kept_more) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { close(); }

  /// Nothing is kept from now on: the pool is gone, and only tensors are left.
  void close() {
    const std::lock_guard lock(mutex);
    is_open = false;
    for (const auto& [bytes, memory] : kept) release_memory(memory, bytes);
    kept.clear();
    kept_bytes = 0;
  }

  /// A kept block that fits, or nothing; either way room for it is made. Returns the block's size in `bytes`.
  std::byte* take(std::size_t& bytes) {
    const std::lock_guard lock(mutex);
    std::byte* memory = nullptr;
    auto found = kept.lower_bound(bytes);
    if (found != kept.end() && found->first <= largest_block_for(bytes)) {
      bytes = found->first;
      found = std::prev(kept.upper_bound(bytes));  // the last one given back may still be in the cache
      memory = found->second;
      kept_bytes -= bytes;
      kept.erase(found);
    }
    used_bytes += bytes;
    shrink();
    return memory;
  }

  /// Memory was found for what was taken.
  void settle() {
    const std::lock_guard lock(mutex);
    most_used = std::max(most_used, used_bytes);
  }

  void forget(std::size_t bytes) {
    const std::lock_guard lock(mutex);
    used_bytes -= bytes;
  }

  void give_back(std::byte* memory, std::size_t bytes) {
    const std::lock_guard lock(mutex);
    used_bytes -= bytes;
    if (!is_open) return release_memory(memory, bytes);
    try {
      kept.emplace(bytes, memory);
    } catch (const std::bad_alloc&) {
      release_memory(memory, bytes);
      return;
    }
    kept_bytes += bytes;
    shrink();
  }

  /// The smallest that is enough goes first, else the largest: as little as can be has to be cleared again.
  void shrink() {
    const std::size_t in_use = std::max(most_used, used_bytes);
    const std::size_t most =
        in_use + std::max(static_cast<std::size_t>(slack.part * static_cast<double>(in_use)), slack.bytes);
    while (!kept.empty() && used_bytes + kept_bytes > most) {
      auto released = kept.lower_bound(used_bytes + kept_bytes - most);
      if (released == kept.end()) --released;
      kept_bytes -= released->first;
      release_memory(released->second, released->first);
      kept.erase(released);
    }
  }

  const Slack slack;
  std::mutex mutex;
  std::multimap<std::size_t, std::byte*> kept;  ///< by size
  std::size_t kept_bytes = 0;
  std::size_t used_bytes = 0;
  std::size_t most_used = 0;
  bool is_open = true;
};

MemoryPool::MemoryPool(Slack slack) {
  const auto state = std::make_shared<State>(slack);
  state_ = {state.get(), [state](State* closed) { closed->close(); }};  // tensors own the other one
}

std::shared_ptr<std::byte> MemoryPool::allocate(std::size_t bytes) {
  if (bytes < least_kept) return small(bytes);
  std::byte* memory = state_->take(bytes);
  if (memory == nullptr) {
    try {
      memory = fresh_memory(bytes);
    } catch (...) {
      state_->forget(bytes);
      throw;
    }
  }
  state_->settle();
  return {memory, [state = state_->shared_from_this(), bytes](std::byte* given) { state->give_back(given, bytes); }};
}

}  // namespace einrel
