#include "tensor/csv.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tensor/compose.h"

namespace einrel {
namespace {

using namespace test;
using testing::HasSubstr;

Tensor table(const std::string& text, const std::string& columns = "", DType dtype = DType::f64) {
  return parse_csv(in_memory(text, "t.csv"), columns, dtype);
}

std::string complaint(const std::string& text, const std::string& columns = "", DType dtype = DType::f64) {
  return user_error_of([&] { table(text, columns, dtype); });
}

TEST(ReadCsv, RowsAndColumnsWithOrWithoutNames) {
  for (const std::string text :
       {"1,2,3\n4,5,6\n", "a,b,c\n1,2,3\n4,5,6", "\xef\xbb\xbf\"a\",b,c\r\n 1 , 2 ,3\r\n\r\n4,5,6\r\n",
        "a;b;c\n1;2;3\n4;5;6\n", "1\t2\t3\n4\t5\t6\n"}) {
    const Tensor all = table(text);
    EXPECT_EQ(all.shape(), make_shape({2, 3})) << text;
    EXPECT_EQ(values_of(all), (std::vector<double>{1, 2, 3, 4, 5, 6})) << text;
  }
}

TEST(ReadCsv, ColumnsByNameAndNumber) {
  const std::string text = "a,b,c\n1,2,3\n4,5,6\n";
  EXPECT_EQ(table(text, "b").shape(), make_shape({2}));
  EXPECT_EQ(values_of(table(text, "b")), (std::vector<double>{2, 5}));
  EXPECT_EQ(values_of(table(text, "3")), (std::vector<double>{3, 6}));
  EXPECT_EQ(table(text, "b..c").shape(), make_shape({2, 2}));
  EXPECT_EQ(values_of(table(text, "b..3")), (std::vector<double>{2, 3, 5, 6}));
  EXPECT_THAT(complaint(text, "d"), HasSubstr("3 columns"));
  EXPECT_THAT(complaint("width,b\n1,2\n", "widht"), HasSubstr("did you mean 'width'?"));
  EXPECT_THAT(complaint(text, "0"), HasSubstr("no column '0'"));
  EXPECT_THAT(complaint(text, "c..a"), HasSubstr("c..a"));
}

// What stands above texts is a sample: only columns that are taken have to hold numbers.
TEST(ReadCsv, FirstLinesWithTextsAreSamplesWhereTheNextHasSuchToo) {
  for (const std::string text : {"a17,1,2\nb3,3,4\n", "id,p,q\na17,1,2\nb3,3,4\n", ",1,2\n,3,4\n"})
    EXPECT_EQ(values_of(table(text, "2..3")), (std::vector<double>{1, 2, 3, 4})) << text;
  EXPECT_EQ(values_of(table("id,1990,q\na17,1,2\n", "2..3")), (std::vector<double>{1, 2}));
  EXPECT_EQ(values_of(table("a,b\n1,x\n3,y\n", "a")), (std::vector<double>{1, 3}));
}

TEST(ReadCsv, NumbersOfEveryType) {
  EXPECT_EQ(table("9007199254740993\n", "1", DType::i64).load<std::int64_t>(0), 9007199254740993);
  EXPECT_EQ(table("+3\n", "1", DType::i32).load<std::int32_t>(0), 3);
  EXPECT_EQ(table("0.1\n", "1", DType::f32).load<float>(0), 0.1F);
  EXPECT_EQ(values_of(table("1e-400,inf,-2.5e1,.5\n")), (std::vector<double>{0, HUGE_VAL, -25, 0.5}));
  EXPECT_EQ(values_of(table("-inf,Infinity\n", "", DType::f16)), (std::vector<double>{-HUGE_VAL, HUGE_VAL}));
  EXPECT_TRUE(std::isnan(values_of(table("nan,1\n")).front()));
  EXPECT_EQ(values_of(table("0,2\n", "", DType::boolean)), (std::vector<double>{0, 1}));
}

TEST(ReadCsv, MistakesAreNamedWithTheirPlace) {
  EXPECT_THAT(complaint(""), HasSubstr("t.csv holds no numbers"));
  EXPECT_THAT(complaint("1,2\n\n3,x\n"), HasSubstr("t.csv, line 3: column 2: 'x' is no number"));
  EXPECT_THAT(complaint("1,2\n3,\n"), HasSubstr("'' is no number"));
  EXPECT_THAT(complaint("1,2\n3\n"), HasSubstr("line 2: 1 field, but the first line has 2"));
  EXPECT_THAT(complaint("1,2\n3,4,5\n"), HasSubstr("line 2: 3 fields"));
  EXPECT_THAT(complaint("1.5\n", "1", DType::i64), HasSubstr("whole number of 64 bits"));
  EXPECT_THAT(complaint("3000000000\n", "1", DType::i32), HasSubstr("whole number of 32 bits"));
}

// The largest numbers of each type, by hand: (2 - 2^-m) 2^e; what is half a step larger is none.
TEST(ReadCsv, NumbersThatAreTooLargeAreNamedWithTheirPlace) {
  const std::vector<std::tuple<DType, std::string, std::string, std::string>> cases{
      {DType::f64, "1.7976931348623157e308", "1.8e308", "f64"},
      {DType::f64, "-1e308", "-1e400", "f64"},
      {DType::f32, "3.4028234e38", "3.5e38", "f32"},
      {DType::f32, "1e38", "1e400", "f32"},
      {DType::f16, "65504", "65520", "f16"},
      {DType::bf16, "3.38e38", "-3.4e38", "bf16"}};
  for (const auto& [dtype, largest, larger, name] : cases) {
    EXPECT_TRUE(std::isfinite(values_of(table(fmt::format("1,{}\n", largest), "2", dtype)).front())) << largest;
    EXPECT_THAT(complaint(fmt::format("a,b\n1,{}\n", larger), "", dtype),
                HasSubstr(fmt::format("t.csv, line 2: column 2: {} is too large for {}", larger, name)));
  }
}

TEST(ReadCsv, SeparatorsBetweenQuotesAreText) {
  const std::string text = "\"height, in cm\",b;c,\"say \"\"hm\"\"\"\n1,2,3\n\"4\", \"5\",6\n";
  EXPECT_EQ(values_of(table(text)), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(values_of(table(text, "height, in cm")), (std::vector<double>{1, 4}));
  EXPECT_EQ(values_of(table(text, "say \"hm\"")), (std::vector<double>{3, 6}));
  EXPECT_EQ(values_of(table("\"a,b\";c\n1;2\n", "a,b")), (std::vector<double>{1}));
  EXPECT_EQ(values_of(table("c;\"a,b\"\n1;2\n", "a,b")), (std::vector<double>{2}));
  EXPECT_EQ(values_of(table("id,n\n\"x, y\",2\n\"\"\"z\"\",\",3\n", "n")), (std::vector<double>{2, 3}));
  EXPECT_EQ(values_of(table("5\" pipe,\"n\n1,2\n", "\"n")), (std::vector<double>{2})) << "nothing closes it";
}

TEST(ReadCsv, TabsSeparateFieldsOfTsv) {
  const auto read = [](const std::string& text, const std::string& columns) {
    return values_of(parse_csv(in_memory(text, "t.tsv"), columns, DType::f64));
  };
  EXPECT_EQ(read("height, in cm\tb\n1\t2\n", "height, in cm"), (std::vector<double>{1}));
  EXPECT_EQ(read("a\tb\n1\t2\n", "b"), (std::vector<double>{2}));
  EXPECT_EQ(read("a\n1\n", "a"), (std::vector<double>{1}));
  EXPECT_EQ(read("\t1\n\t2\n", "2"), (std::vector<double>{1, 2})) << "the first field is empty";
}

TEST(ReadCsv, NamesThatTwoColumnsHaveAreNotTaken) {
  const std::string text = "a,b,a\n1,2,3\n";
  EXPECT_EQ(values_of(table(text, "b")), (std::vector<double>{2}));
  EXPECT_EQ(values_of(table(text, "3")), (std::vector<double>{3}));
  for (const std::string columns : {"a", "a..b", "b..a"})
    EXPECT_THAT(complaint(text, columns), HasSubstr("t.csv: the columns 1 and 3 are both called 'a'; give the number"));
}

TEST(ReadCsv, WhatIsWrittenIsRead) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  for (int round = 0; round < 300; ++round) {
    const std::size_t rows = 1 + below(6);
    const std::size_t columns = 1 + below(5);
    const std::string separator(1, columns == 1 ? ',' : ",;\t"[below(3)]);
    const std::string end = below(2) == 0 ? "\n" : "\r\n";
    std::string text = below(2) == 0 ? "" : "\xef\xbb\xbf";
    const bool has_names = below(2) == 0;
    for (std::size_t c = 0; has_names && c < columns; ++c)
      text += fmt::format("{}name {}", c == 0 ? "" : separator, c) + (c + 1 == columns ? end : "");
    std::vector<double> values;
    for (std::size_t i = 0; i < rows * columns; ++i) {
      values.push_back(std::ldexp(static_cast<double>(random()) - 2e9, static_cast<int>(below(200)) - 100));
      const bool is_quoted = below(5) == 0;
      const std::string number =
          below(2) == 0 ? fmt::format("{}", values.back()) : fmt::format("{:.17e}", values.back());
      text += is_quoted ? fmt::format(" \"{}\"", number) : number + std::string(below(2), ' ');
      const bool is_last = i % columns + 1 == columns;
      text += is_last ? end : separator;
      if (is_last && below(4) == 0) text += end;  // a blank line
    }
    if (below(3) == 0) text.resize(text.find_last_not_of("\r\n") + 1);
    const Tensor all = table(text);
    EXPECT_EQ(all.shape(), make_shape({static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns)})) << text;
    EXPECT_EQ(values_of(all), values) << text;
    const std::size_t column = below(columns);
    std::vector<double> one;
    for (std::size_t r = 0; r < rows; ++r) one.push_back(values[r * columns + column]);
    const std::string by = has_names && below(2) == 0 ? fmt::format("name {}", column) : std::to_string(column + 1);
    EXPECT_EQ(values_of(table(text, by)), one) << text;
  }
}

TEST(ReadCsv, FieldsThatAreNotTakenMayBeAnything) {
  EXPECT_EQ(values_of(table("a,b,c\n1,,x\n2,,\n", "a")), (std::vector<double>{1, 2}));
  EXPECT_EQ(values_of(table("a,b\n,1\n,2\n,3", "b")), (std::vector<double>{1, 2, 3}));
}

TEST(ReadCsv, NamesAloneAreATableWithoutRows) { EXPECT_EQ(table("a,b\n").shape(), make_shape({0, 2})); }

}  // namespace
}  // namespace einrel
