#pragma once

#include <cstddef>
#include <memory>

namespace einrel {

/// What a pool keeps and what is in use together never exceed the most that was in use at one time by more than this
/// part of it, or so many bytes where they are more. Without any, a small tensor beside large ones, when fewer of these
/// are in use, would have one of them released, and cleared again, in every run; a program that needs little has as
/// many tensors of as many sizes as one that needs much, so that a part of it is not enough.
struct Slack {
  double part = 0.125;
  std::size_t bytes = std::size_t{24} << 20;
};

/// Memory for tensors, large ones in huge pages where there are any. Keeps the memory of large tensors that are gone
/// for those to come: fresh memory must be cleared page by page, which takes longer than filling it. Tensors may
/// outlive the pool. Copies of a pool are the same pool. Any thread.
class MemoryPool {
 public:
  explicit MemoryPool(Slack slack = {});

  /// At least `bytes`, contents unspecified, aligned to cache lines. Throws std::bad_alloc.
  std::shared_ptr<std::byte> allocate(std::size_t bytes);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace einrel
