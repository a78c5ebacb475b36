#include "tensor/memory_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "tensor/tensor.h"

namespace einrel {
namespace {

constexpr std::size_t large = 1 << 20;

TEST(MemoryPool, GivesTheMemoryOfWhatIsGoneToWhatComes) {
  MemoryPool pool;
  auto first = pool.allocate(large);
  const std::byte* const place = first.get();
  first.reset();
  EXPECT_EQ(pool.allocate(large).get(), place);
  EXPECT_EQ(pool.allocate(large - large / 16).get(), place);
}

TEST(MemoryPool, GivesTwoThatLiveAtOnceDifferentMemory) {
  MemoryPool pool;
  const auto a = pool.allocate(large);
  const auto b = pool.allocate(large);
  EXPECT_GE(std::max(a.get(), b.get()) - std::min(a.get(), b.get()), static_cast<std::ptrdiff_t>(large));
}

TEST(MemoryPool, GivesFirstWhatCameBackLast) {
  MemoryPool pool;
  auto a = pool.allocate(large);
  auto b = pool.allocate(large);
  const std::byte* const last = a.get();
  b.reset();
  a.reset();
  EXPECT_EQ(pool.allocate(large).get(), last);
}

TEST(MemoryPool, KeepsNoBlockForAMuchSmallerRequest) {
  MemoryPool pool;
  const std::byte* const place = pool.allocate(16 * large).get();
  const auto small = pool.allocate(large);
  EXPECT_TRUE(small.get() < place || small.get() >= place + 16 * large || small.get() == place);
  std::memset(small.get(), 1, large);
}

/// Two large tensors at a time, then a small one beside the second: the first one's memory is there the next time, as
/// it was left. The C library returns so much to the system at once, which clears it.
TEST(MemoryPool, KeepsLargeBlocksBesideASmallOneMore) {
  constexpr std::size_t huge = 48 * large;
  MemoryPool pool;
  for (int run = 0; run < 3; ++run) {
    auto gone = pool.allocate(huge);
    if (run > 0) {
      EXPECT_EQ(std::to_integer<int>(gone.get()[huge / 2]), run);
    }
    gone.get()[huge / 2] = static_cast<std::byte>(run + 1);
    const auto stays = pool.allocate(huge / 4 * 3);
    gone.reset();
    const auto small = pool.allocate(large);
  }
}

/// One tensor after the other, of several sizes: what all take is more than twice the most that is in use at one time.
TEST(MemoryPool, KeepsAllSizesOfASmallProgram) {
  MemoryPool pool;
  for (int run = 0; run < 3; ++run) {
    for (std::size_t size = 1; size <= 4; ++size) {
      const auto tensor = pool.allocate(size << 20U);
      if (run > 0) {
        EXPECT_EQ(std::to_integer<int>(tensor.get()[1000]), run) << size;
      }
      tensor.get()[1000] = static_cast<std::byte>(run + 1);
    }
  }
}

/// A rank's product of halves that it has and receives: two halves become one whole, which the result stays beside.
/// What all of them take together is a fifth more than what is in use at one time.
TEST(MemoryPool, KeepsPartsBesideTheWholeWithEnoughSlack) {
  MemoryPool pool({0.25, 0});
  for (int run = 0; run < 3; ++run) {
    std::vector<std::shared_ptr<std::byte>> parts;
    for (int part = 0; part < 3; ++part) parts.push_back(pool.allocate(7 * large));
    auto whole = pool.allocate(14 * large);
    parts.resize(1);
    auto result = pool.allocate(49 * large);
    for (const auto& tensor : {parts.front(), whole, result}) {
      if (run > 0) {
        EXPECT_EQ(std::to_integer<int>(tensor.get()[large]), run);
      }
      tensor.get()[large] = static_cast<std::byte>(run + 1);
    }
    parts.clear();
    whole.reset();
  }
}

TEST(MemoryPool, OutlivesItsTensors) {
  std::optional<Tensor> tensor;
  {
    MemoryPool pool;
    tensor = Tensor(DType::f32, {Extent(1024), Extent(1024)}, pool);
  }
  std::memset(tensor->mutable_data(), 0, static_cast<std::size_t>(tensor->byte_count()));
  EXPECT_EQ(tensor->load<float>(1024 * 1024 - 1), 0);
}

TEST(MemoryPool, TakesMemoryBackFromAnyThread) {
  MemoryPool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 200; ++i) {
        const auto memory = pool.allocate(large + static_cast<std::size_t>(i % 7) * 4096);
        std::memset(memory.get(), t, 4096);
        EXPECT_EQ(std::to_integer<int>(memory.get()[4095]), t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace einrel
