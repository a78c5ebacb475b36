#include "base/text.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace einrel {
namespace {

/// A code point as the Unicode standard encodes it (table 3-6).
std::string encoded(std::uint32_t point) {
  const auto tail = [&](unsigned shift) { return static_cast<char>(0x80U | ((point >> shift) & 0x3FU)); };
  if (point < 0x80) return {static_cast<char>(point)};
  if (point < 0x800) return {static_cast<char>(0xC0U | (point >> 6U)), tail(0)};
  if (point < 0x10000) return {static_cast<char>(0xE0U | (point >> 12U)), tail(6), tail(0)};
  return {static_cast<char>(0xF0U | (point >> 18U)), tail(12), tail(6), tail(0)};
}

TEST(Utf8, EveryCharacterIsFoundWithItsLengthAndNoSurrogate) {
  for (std::uint32_t point = 0; point <= 0x10FFFF; ++point) {
    const bool surrogate = point >= 0xD800 && point <= 0xDFFF;
    const std::string bytes = encoded(point);
    ASSERT_EQ(utf8_length(bytes), surrogate ? 0 : bytes.size()) << point;
    ASSERT_EQ(utf8_length(bytes + "\xBF"), surrogate ? 0 : bytes.size()) << point;
  }
}

TEST(Utf8, NoOtherTwoOrThreeBytesAreACharacter) {
  // Every character is accepted (above), so it is enough that as many sequences are accepted as there are characters.
  std::size_t two = 0;
  std::size_t three = 0;
  for (std::uint32_t bits = 0; bits < 0x1000000; ++bits) {
    const char bytes[]{static_cast<char>(bits >> 16U), static_cast<char>(bits >> 8U), static_cast<char>(bits)};
    if ((bits & 0xFFU) == 0 && utf8_length({bytes, 2}) == 2) ++two;
    if (utf8_length({bytes, 3}) == 3) ++three;
  }
  EXPECT_EQ(two, 0x800U - 0x80U);
  EXPECT_EQ(three, 0x10000U - 0x800U - 0x800U);
}

TEST(Utf8, CutOverlongAndBeyondUnicodeAreNoCharacter) {
  for (const std::string_view bytes :
       {"\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xC0\x80", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
        "\xF5\x80\x80\x80", "\xFF", "\x80", "\xF0\x9F\x98\x28"}) {
    EXPECT_EQ(utf8_length(bytes), 0U);
    EXPECT_FALSE(is_utf8("fine " + std::string(bytes)));
  }
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("na\xC3\xAFve \xF0\x9F\x98\x80"));
}

TEST(Printable, EscapesWhatATerminalWouldObeyAndKeepsTheRest) {
  EXPECT_EQ(printable("W1.weight \xC3\xA4"), "W1.weight \xC3\xA4");
  EXPECT_EQ(printable("a\nb\x1b[2J\x7f"), "a\\x0ab\\x1b[2J\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"), "\\xc2\\x9b");  // the one-character form of ESC [
  EXPECT_EQ(printable(std::string_view("\0\xff", 2)), "\\x00\\xff");
  EXPECT_EQ(printable("a\u202egnp"), "a\\xe2\\x80\\xaegnp");  // would be read from right to left
  for (const char* const unseen :
       {"\u2028", "\u2029", "\u2066", "\u200b", "\u061c", "\u00ad", "\ufeff", "\U000E0041"}) {
    EXPECT_FALSE(is_printable(unseen)) << unseen;
    EXPECT_EQ(printable(unseen).find("\\x"), 0U) << unseen;
  }
  for (const char* const seen :
       {"a", " ", "\u00a0", "\u00df", "\u5408", "\u2200", "\U0001F600", "\u2010", "\u205e", "\u2070"})
    EXPECT_EQ(printable(seen), seen);
}

TEST(Printable, IsTheSameOfWhatIsPrintable) {
  const std::string once = printable("a\nb\xff\u202e\\x41");
  EXPECT_EQ(printable(once), once);
}

TEST(Printable, LeavesOutTheMiddleOfLongNamesBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefgh", 6), "abc…fgh");
  EXPECT_EQ(printable("abcdefghi", 7), "abcd…ghi");
  EXPECT_EQ(printable("abäcdefähi", 6), "abä…ähi");
  EXPECT_EQ(printable("abcdeä", 6), "abc…eä");
  EXPECT_EQ(printable("aää", 4), "aää");  // nothing is left between the two
  EXPECT_EQ(printable("abc", 1), "a…");
  const std::string continuations(1000, '\x80');
  EXPECT_LT(printable(continuations, 10).size(), 100U);
  EXPECT_LT(printable(std::string(1'000'000, '\n')).size(), 2000U);
}

TEST(SecondsText, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(seconds_text(0), "0 ns");
  EXPECT_EQ(seconds_text(1.5e-9), "1.5 ns");
  EXPECT_EQ(seconds_text(999.6e-9), "1 us");
  EXPECT_EQ(seconds_text(0.0123), "12.3 ms");
  EXPECT_EQ(seconds_text(4321), "4.32e+03 s");
}

TEST(BytesText, HasThreeDigitsAndAUnit) {
  EXPECT_EQ(bytes_text(std::int64_t{0}), "0 B");
  EXPECT_EQ(bytes_text(std::int64_t{999}), "999 B");
  EXPECT_EQ(bytes_text(std::int64_t{1500}), "1.5 kB");
  EXPECT_EQ(bytes_text(std::int64_t{999'499}), "999 kB");
  EXPECT_EQ(bytes_text(std::int64_t{999'500}), "1 MB");
  EXPECT_EQ(bytes_texts(8'388'612, 8'388'608), std::pair(std::string("8388612 B"), std::string("8388608 B")));
  EXPECT_EQ(bytes_texts(8'400'000, 8'388'608), std::pair(std::string("8.4 MB"), std::string("8.39 MB")));
  EXPECT_EQ(bytes_texts(8'388'608, 8'388'608).first, "8.39 MB");
  EXPECT_EQ(bytes_text(std::int64_t{12'345'678}), "12.3 MB");
  EXPECT_EQ(bytes_text(9.2e18), "9.2 EB");
}

TEST(Counted, AgreesWithTheNumber) {
  EXPECT_EQ(counted(0, "input"), "0 inputs");
  EXPECT_EQ(counted(1, "input"), "1 input");
  EXPECT_EQ(counted(2, "input"), "2 inputs");
}

}  // namespace
}  // namespace einrel
