#include "base/source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace einrel {
namespace {

TEST(SourceText, CountsLinesAndCharactersFromOne) {
  const SourceText source("p.ein",
                          "ab\nc\xc3\xa4"
                          "d\n\n");
  const auto place = [&](std::size_t offset) {
    const LineColumn found = source.locate(offset);
    return std::pair(found.line, found.column);
  };
  EXPECT_EQ(place(0), std::pair(std::size_t{1}, std::size_t{1}));
  EXPECT_EQ(place(2), std::pair(std::size_t{1}, std::size_t{3}));  // the newline belongs to its line
  EXPECT_EQ(place(3), std::pair(std::size_t{2}, std::size_t{1}));
  EXPECT_EQ(place(6), std::pair(std::size_t{2}, std::size_t{3}));  // after the two bytes of one character
  EXPECT_EQ(place(9), std::pair(std::size_t{4}, std::size_t{1}));  // the end of the text
}

TEST(SourceText, LinesEndBeforeTheirNewline) {
  const SourceText source("p.ein", "one\r\ntwo\n");
  EXPECT_EQ(source.slice(source.line_span(1)), "one");
  EXPECT_EQ(source.slice(source.line_span(2)), "two");
  EXPECT_EQ(source.slice(source.line_span(3)), "");
}

TEST(Render, ShowsPositionLineCaretsAndHelp) {
  const SourceText source("ffnn.ein", "dims i=3\nZ[i,k] = X[i,j] * Y[j,k]\n");
  const std::size_t x = source.text().find("X[i,j]");
  const std::size_t y = source.text().find("Y[j,k]");
  const Diagnostic diagnostic{
      "label 'j' has two extents", {{y, y + 6}, {x, x + 6}}, "declare both with the same extent"};
  EXPECT_EQ(render(diagnostic, source),
            "error: label 'j' has two extents\n"
            "  --> ffnn.ein:2:19\n"
            " 2 | Z[i,k] = X[i,j] * Y[j,k]\n"
            "   |          ^^^^^^   ^^^^^^\n"
            "  help: declare both with the same extent\n");
}

TEST(Render, WithoutMarksIsTheMessageAlone) {
  EXPECT_EQ(render({"no output", {}, ""}, SourceText("p.ein", "")), "error: no output\n");
}

TEST(Render, CutsALongLineAroundTheMark) {
  const std::string line = std::string(5000, 'a') + "!" + std::string(5000, 'b');
  const std::string text = render({"here", {{5000, 5001}}, ""}, SourceText("p.ein", line));
  EXPECT_LT(text.size(), 600U);
  EXPECT_NE(text.find("a!b"), std::string::npos);
  // The caret stands under the mark.
  const std::size_t shown = text.find(" 1 | ");
  const std::size_t under = text.find("   | ");
  EXPECT_EQ(text.find('!') - shown, text.find('^') - under);
}

TEST(Render, PutsCaretsUnderCharactersNotBytes) {
  const std::string text = render({"here", {{2, 3}}, ""}, SourceText("p.ein", "\xc3\xa4x"));
  EXPECT_NE(text.find("\n   |  ^\n"), std::string::npos);
}

TEST(ProgramError, TellsAllItsErrorsButBoundsTheirNumber) {
  const SourceText source("p.ein", "x\n");
  const std::vector<Diagnostic> many(5000, Diagnostic{"wrong", {{0, 1}}, ""});
  const ProgramError error(many, source);
  const std::string text = error.what();
  EXPECT_EQ(error.diagnostics().size(), 5000U);
  EXPECT_NE(text.find("and 4980 more errors"), std::string::npos);
}

}  // namespace
}  // namespace einrel
