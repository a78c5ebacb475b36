#include "exec/memory/spill_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/limited_file_size.h"
#include "base/temporary_folder.h"

namespace einrel::test {
namespace {

TEST(FreeParts, GapsThatTouchBecomeOne) {
  FreeParts parts;
  std::vector<FilePart> taken;
  for (int i = 0; i < 5; ++i) taken.push_back({parts.take(10), 10});
  EXPECT_EQ(parts.end(), 50);
  for (const int freed : {1, 3, 2}) parts.give_back(taken[static_cast<std::size_t>(freed)]);
  EXPECT_EQ(parts.gaps(), 1U);
  EXPECT_EQ(parts.take(30), 10);
  EXPECT_EQ(parts.gaps(), 0U);
}

TEST(FreeParts, TakesTheSmallestGapThatIsLargeEnough) {
  FreeParts parts;
  std::vector<FilePart> taken;
  for (const std::int64_t bytes : {30, 1, 10, 1, 20, 1}) taken.push_back({parts.take(bytes), bytes});
  for (const int freed : {0, 2, 4}) parts.give_back(taken[static_cast<std::size_t>(freed)]);
  EXPECT_EQ(parts.take(15), taken[4].begin);
  EXPECT_EQ(parts.take(5), taken[4].begin + 15);
  EXPECT_EQ(parts.take(10), taken[2].begin);
  EXPECT_EQ(parts.take(31), 63);
}

TEST(FreeParts, NeverOverlapAndAreOneGapInTheEnd) {
  std::mt19937 random(1);
  FreeParts parts;
  std::vector<FilePart> taken;
  std::int64_t most = 0;
  for (int step = 0; step < 20'000; ++step) {
    if (taken.size() < 50 || (taken.size() < 100 && random() % 2 == 0)) {
      const auto bytes = static_cast<std::int64_t>(1 + random() % 1000);
      const FilePart part{parts.take(bytes), bytes};
      for (const FilePart& other : taken)
        ASSERT_TRUE(part.begin + part.bytes <= other.begin || other.begin + other.bytes <= part.begin);
      taken.push_back(part);
    } else {
      std::swap(taken[random() % taken.size()], taken.back());
      parts.give_back(taken.back());
      taken.pop_back();
    }
    most = std::max(most, parts.end());
  }
  EXPECT_LT(most, 2 * 100 * 1000);
  for (const FilePart& part : taken) parts.give_back(part);
  EXPECT_EQ(parts.gaps(), 0U);
  EXPECT_EQ(parts.end(), 0);
}

TEST(SpillFile, KeepsManyChunksOfSeveralThreadsInOneFileThatHasNoName) {
  const TemporaryFolder folder;
  SpillFile file(folder.path().string());
  const auto work = [&file](std::uint8_t thread) {
    std::mt19937 random(thread);
    std::vector<std::pair<FilePart, std::vector<std::byte>>> chunks;
    for (int step = 0; step < 3000; ++step) {
      if (chunks.size() < 1500) {
        std::vector<std::byte> bytes(random() % 9000, std::byte{static_cast<std::uint8_t>(random())});
        const FilePart part = file.take(static_cast<std::int64_t>(bytes.size()));
        file.file().write(part.begin, bytes);
        chunks.emplace_back(part, std::move(bytes));
        continue;
      }
      std::swap(chunks[random() % chunks.size()], chunks.back());
      std::vector<std::byte> read(chunks.back().second.size());
      file.file().read(chunks.back().first.begin, read);
      EXPECT_EQ(read, chunks.back().second);
      file.give_back(chunks.back().first);
      chunks.pop_back();
    }
  };
  std::vector<std::jthread> threads;
  for (std::uint8_t thread = 1; thread <= 3; ++thread) threads.emplace_back(work, thread);
  threads.clear();
  EXPECT_TRUE(folder.names().empty());
}

TEST(SpillFile, SaysWhenTheDiskIsFullBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  SpillFile file(folder.path().string());
  const LimitedFileSize limited(1 << 20);
  const FilePart first = file.take(1 << 19);
  file.take(1 << 19);
  EXPECT_THROW(file.take(1), RunError);
  file.give_back(first);
  EXPECT_EQ(file.take(1 << 19).begin, first.begin);
}

TEST(SpillFile, NeedsAFolder) { EXPECT_THROW(SpillFile("/nowhere"), UserError); }

}  // namespace
}  // namespace einrel::test
