#include "base/digest.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

namespace einrel {
namespace {

TEST(Digest, IsTheSameForTheSameAndAnotherForEveryOtherByteAndLength) {
  std::set<std::uint64_t> digests;
  std::size_t texts = 0;
  for (std::size_t length = 0; length < 100; ++length) {
    const std::string text(length, 'a');
    EXPECT_EQ(digest_of(text), digest_of(std::string(length, 'a')));
    digests.insert(digest_of(text));
    ++texts;
    for (std::size_t at = 0; at < length; ++at) {
      for (const char other : {'b', '\0', 'A'}) {
        std::string changed = text;
        changed[at] = other;
        digests.insert(digest_of(changed));
        ++texts;
      }
    }
  }
  EXPECT_EQ(digests.size(), texts);
}

TEST(Digest, TellsWhereOneThingEndsAndTheNextBegins) {
  const auto of = [](const std::vector<std::string>& texts) {
    Digest digest;
    for (const std::string& text : texts) digest.add(std::string_view(text));
    return digest.value();
  };
  EXPECT_NE(of({"ab", "c"}), of({"a", "bc"}));
  EXPECT_NE(of({"abc"}), of({"abc", ""}));
  EXPECT_NE(of({"a", "b"}), of({"b", "a"}));
  EXPECT_EQ(of({"a", "b"}), of({"a", "b"}));
}

TEST(Digest, OfNumbersThatFollowEachOtherChangesHalfOfItsBits) {
  std::array<int, 64> changed{};
  constexpr int numbers = 1000;
  std::uint64_t last = 0;
  for (std::int64_t number = 0; number <= numbers; ++number) {
    Digest digest;
    digest.add(number);
    for (std::size_t bit = 0; number > 0 && bit < changed.size(); ++bit)
      changed[bit] += static_cast<int>((digest.value() ^ last) >> bit & 1U);
    last = digest.value();
  }
  for (const int times : changed) {
    EXPECT_GT(times, numbers / 3);
    EXPECT_LT(times, numbers * 2 / 3);
  }
}

}  // namespace
}  // namespace einrel
