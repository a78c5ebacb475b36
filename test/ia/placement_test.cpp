#include "ia/placement.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "ia/check_run.h"
#include "ia/infer.h"
#include "ia/parse.h"
#include "ia/parse_error.h"
#include "ia/print.h"
#include "ia/random_plan.h"

namespace einrel::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string wrong_digits(const SiteGrid& grid, std::int64_t sites) {
  try {
    check_digits(grid, sites);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(SiteGrids, AreEqualWhenTheyPlaceAlike) {
  EXPECT_EQ(site_grid({4, 4, 4}, {2, 1, 3}, {3, 7, 1}), row_major_grid({4, 4, 4}, {2, 1, 3}));
  EXPECT_THAT(row_major_grid({4, 4, 4}, {2, 1, 3}).strides, ElementsAre(3, 0, 1));
  EXPECT_EQ(site_grid({4}, {2}, {1}, {{2, 4}, {1, 9}, {2, 2}}), site_grid({4}, {2}, {1}, {{4, 2}}));
  EXPECT_NE(site_grid({4}, {2}, {1}, {{2, 2}, {2, 8}}), site_grid({4}, {2}, {1}, {{4, 2}}));
  EXPECT_EQ(spread({4, 4}, 4), row_major_grid({4, 4}, {4, 1}));
}

TEST(SiteGrids, GiveATupleEachOfItsSites) {
  const SiteGrid columns = site_grid({4, 6}, {2, 3}, {1, 2});
  EXPECT_EQ(site_of(columns, {0, 5}), 4);
  EXPECT_EQ(site_of(columns, {3, 2}), 3);
  const SiteGrid copied = site_grid({4}, {2}, {2}, {{2, 12}, {2, 1}});
  EXPECT_EQ(copies_of(copied), 4);
  EXPECT_THAT(sites_of(copied, {1}), ElementsAre(0, 1, 12, 13));
  EXPECT_THAT(sites_of(copied, {2}), ElementsAre(2, 3, 14, 15));
  EXPECT_THROW(site_of(copied, {0}), Bug);
  EXPECT_THAT(sites_of(site_grid({}, {}, {}, {{3, 1}}), {}), ElementsAre(0, 1, 2));
}

TEST(SiteGrids, HaveDigitsThatDoNotMeet) {
  EXPECT_EQ(wrong_digits(site_grid({4, 4}, {2, 2}, {1, 2}, {{3, 4}}), 12), "");
  EXPECT_EQ(wrong_digits(site_grid({4, 4}, {2, 2}, {5, 2}), 8), "");
  EXPECT_THAT(wrong_digits(site_grid({4, 4}, {2, 2}, {1, 2}, {{3, 4}}), 11), HasSubstr("copies 3 by 4 on 11 sites"));
  EXPECT_THAT(wrong_digits(site_grid({4, 4}, {2, 2}, {1, 1}), 8), HasSubstr("several tuples or copies one site"));
  EXPECT_THAT(wrong_digits(site_grid({4}, {3}, {1}, {{2, 2}}), 8),
              HasSubstr("after the sites below 3 comes a stride of 2"));
  EXPECT_THAT(wrong_digits(site_grid({4}, {2}, {0}), 8), HasSubstr("stride of 0"));
  EXPECT_THAT(wrong_digits(site_grid({4}, {2}, {-1}), 8), HasSubstr("stride of -1"));
  EXPECT_THAT(wrong_digits(site_grid({4}, {2}, {1}, {{0, 2}}), 8), HasSubstr("0 copies"));
  EXPECT_THAT(wrong_digits(SiteGrid{{4}, {2}, {}, {}}, 8), HasSubstr("one stride per position"));
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(wrong_digits(site_grid({4, 4}, {2, 2}, {1, most}), 8), HasSubstr("on 8 sites"));
  EXPECT_THROW(site_grid({4}, {2}, {1}, {{most, 1}, {most, most}}), UserError);
}

/// Digits of any grid: no two coordinates or copies are one site.
TEST(SiteGrids, AreCheckedByTheirDigits) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const std::int64_t sites = random.between(1, 40);
    const std::vector<std::int64_t> parts{random.between(1, 4), random.between(1, 4)};
    const SiteGrid grid = random_grid(random, parts, sites);
    ASSERT_EQ(wrong_digits(grid, sites), "") << to_string(grid);
    std::map<Site, std::vector<std::int64_t>> coordinates;
    for (std::int64_t a = 0; a < parts[0]; ++a) {
      for (std::int64_t b = 0; b < parts[1]; ++b) {
        const std::vector<Site> here = sites_of(grid, {a, b});
        ASSERT_EQ(std::ssize(here), copies_of(grid));
        ASSERT_TRUE(std::adjacent_find(here.begin(), here.end(), std::greater_equal<>()) == here.end());
        const std::vector<std::int64_t> at{a * grid.grid[0] / parts[0], b * grid.grid[1] / parts[1]};
        for (const Site site : here) {
          ASSERT_TRUE(site >= 0 && site < sites);
          ASSERT_EQ(coordinates.emplace(site, at).first->second, at) << to_string(grid);
        }
      }
    }
  }
}

TEST(Placements, MeetWhereTheirDigitsAgree) {
  const Partitioned x{{0, 1}, site_grid({4, 4}, {2, 2}, {4, 1}, {{3, 8}})};
  const Partitioned y{{1, 2}, site_grid({4, 6}, {2, 3}, {1, 8}, {{2, 4}})};
  EXPECT_EQ(to_string(meeting(x, y)), "part<0,1,2> on 2x2x3 of 4x4x6 by 4,1,8");
  const Partitioned everyone{{}, site_grid({}, {}, {}, {{4, 1}})};
  const Partitioned square{{1, 0}, site_grid({4, 4}, {2, 2}, {1, 2})};
  EXPECT_EQ(to_string(meeting(everyone, square)), "part<0,1> on 2x2 of 4x4");
  EXPECT_EQ(to_string(meeting(everyone, everyone)), "part<> on 1 copies 4 by 1");
  EXPECT_EQ(to_string(meeting(x, square)), "scattered");
}

std::vector<Site> common(const std::vector<Site>& a, const std::vector<Site>& b) {
  std::vector<Site> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

TEST(Placements, MeetOnExactlyTheCommonSites) {
  int partitioned = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    Random random(seed);
    const auto some = [&](std::size_t left_out) {
      const KeyPositions positions = complement({left_out}, 3);
      return Partitioned{positions, random_grid(random, {3, 3}, 12)};
    };
    const Partitioned left = some(0);
    const Partitioned right = some(static_cast<std::size_t>(random.between(0, 1)));
    const Placement met = meeting(left, right);
    const auto* part = std::get_if<Partitioned>(&met);
    if (part == nullptr) continue;
    ++partitioned;
    for (const Chunk& chunk : relation_type(DType::f32, make_shape({3, 3, 3}), cut_of_all({{3}, {3}, {3}})).chunks) {
      const auto sites = [&](const Partitioned& each) {
        return sites_of(each.grid, project(chunk.key, each.positions));
      };
      ASSERT_EQ(sites(*part), common(sites(left), sites(right)))
          << to_string(left) << ", " << to_string(right) << ": " << to_string(met);
    }
  }
  EXPECT_GT(partitioned, 200);
}

TEST(Placements, OfJoinsAreWhereBothSidesAre) {
  const IaProgram program = parse_ia(SourceText("p.ia", R"(
    input X[4,4] cut <2,2> on <0,1>, <2 by 4,2 by 2>, <2,2>, <2 by 1>
    input Y[4,4] cut <2,2> on <0,1>, <2 by 2,2 by 1>, <2,2>, <2 by 4>
    Z = local_join(<1>, <0>, matMul)(X, Y)
  )"),
                                     8);
  EXPECT_EQ(to_string(program.store[program.plan[0].id].type.placement), "part<0,1,2> on 2x2x2 of 2x2x2");
}

constexpr const char* copied_input = "input X[4,4] cut <2,2> on <0>, <2 by 2>, <2>, <2 by 1>\n";

TEST(Copies, AreReadAndPrinted) {
  const std::string text =
      "input X[4,6] : f32 cut <2,3> on <1>, <3 by 2>, <3>, <2 by 1,2 by 6>\n"
      "t1 = shuf(<1,0>, <3,2>, <3,2>)(X)\n"
      "t2 = shuf(<1,0>, <2 by 2,1>, <3,2>)(t1)\n"
      "t3 = shuf(<0,1>, <2 by 1,2 by 2>, <2,3>, <2 by 4>)(t2)\n"
      "t4 = repart(<2,3> -> <1,2 by 3>, <1,2>, <1,2>)(t3)\n"
      "Z = repart(<1,2 by 3> -> <4,1>, <4 by 3,1>, <4,1>, <3 by 1>)(t4)\n"
      "output Z\n";
  const IaProgram program = parse_ia(SourceText("copies.ia", text), 12);
  EXPECT_EQ(to_text(program.store, program.plan), text);
}

TEST(Copies, AreRefusedWhereAFoldWouldCountThemTwice) {
  EXPECT_EQ(error_of(std::string(copied_input) + "Z = local_aggregate(<0>, matAdd)(X)", 4), "");
  EXPECT_THAT(
      error_of(std::string(copied_input) + "Z = local_aggregate(<1>, matAdd)(X)", 4),
      HasSubstr("folds of the group <0> would count tuples twice: <0,0> lies on sites 0, 1, <1,0> on sites 2, 3"));
  // <0,0> lies on 0 and 1, <1,0> on 2, <1,1> on 3: of the group <0> both sites have all, of <1> each has a part.
  EXPECT_THAT(error_of("input X[3,2] cut <3,2> on <0>, <3 by 2>, <3>, <2 by 1>\n"
                       "input Y[3,2] cut <3,2> on <1>, <2 by 3>, <2>, <3 by 1>\n"
                       "J = local_join(<0,1>, <0,1>, matAdd)(local_filter(k0 + k1 == 0 or k0 == 1)(X), Y)\n"
                       "Z = local_aggregate(<0>, matAdd)(J)",
                       6),
              HasSubstr("the group <0> is whole on sites 0, 1, of <1> each has a part"));
}

TEST(Copies, FaultsOfOtherOperations) {
  const std::string x = copied_input;
  EXPECT_THAT(error_of("input Y[4,4] cut <2,2> on <0>, <2 by 2>, <2>\n" + x +
                           "Z = local_join(<0>, <1>, matAdd)(X, shuf(<1>, <2 by 2>, <2>, <2 by 4>)(Y))",
                       8),
              "");
  EXPECT_THAT(
      error_of(
          "input Y[4,4] cut <2,2> on <1>, <2 by 2>, <2>, <2 by 4>\n" + x + "Z = local_join(<0>, <0>, matMul)(X, Y)", 8),
      HasSubstr("the tuple <0,0> of the left relation lies on sites 0, 1, its partner <0,1> on sites 2, 6"));
  EXPECT_EQ(error_of(x + "Z = local_concat(1, 0)(X)", 4), "");
  EXPECT_THAT(error_of(x + "Z = local_concat(0, 0)(X)", 4),
              HasSubstr("the tuples to concatenate to <0> lie on sites 0, 1 and on sites 2, 3"));
  EXPECT_THAT(error_of("input X[4,4] cut <2,2> on <0>\nZ = shuf(<0>, <2 by 1>, <2>, <2 by 2>)(local_aggregate(<1>, "
                       "matAdd)(X))",
                       4),
              HasSubstr("a shuffle to several sites of partial aggregates"));
}

TEST(Grids, SayWhatIsWrongWithThem) {
  const std::string x = "input X[4,4] cut <2,2> on <0>\n";
  EXPECT_THAT(error_of(x + "Z = shuf(<0,1>, <2 by 2,2>, <2,2>)(X)", 4),
              HasSubstr("all of these have strides, or none"));
  EXPECT_THAT(error_of(x + "Z = shuf(<0>, <2 by 1>, <2>, <2 by 1>)(X)", 4), HasSubstr("give"));
  EXPECT_THAT(error_of(x + "Z = shuf(<0>, <2>, <2>, <3 by 2>)(X)", 4), HasSubstr("on 4 sites"));
  EXPECT_THAT(error_of(x + "Z = shuf(<0>, <2>, <2>, <2 by 2>, <2>)(X)", 4), HasSubstr("a site grid is expected here"));
  EXPECT_THAT(error_of(x + "Z = shuf(<0>, 2, 2)(X)", 4), HasSubstr("a site grid is expected here"));
  EXPECT_THAT(error_of("input X[4] cut <2> on <0>, <2>\nZ = bcast(X)", 4), HasSubstr("a site grid is expected here"));
  EXPECT_THAT(error_of("input X[4] cut <2> on <0>, <3>, <2>\nZ = bcast(X)", 4), HasSubstr("does not fit position 0"));
  EXPECT_THAT(error_of(x + "Z = shuf(<0,1>, <3000000000,4000000000,5>, <2,2>)(X)", 4), HasSubstr("63 bits"));
}

}  // namespace
}  // namespace einrel::test
