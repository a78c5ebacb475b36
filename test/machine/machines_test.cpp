#include "machine/machines.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"

namespace einrel::test {
namespace {

const std::string right =
    R"({"name": "mine", "about": "measured", "sites": 3, "cores": 2, "flops_per_core": 1e9, "memory_bandwidth": 2e9,)"
    R"( "network_bandwidth": 3e8, "network_latency": 0, "task_seconds": 1e-6, "memory": 4000000000})";

std::string with(const std::string& from, const std::string& to) {
  std::string text = right;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string complaint(const std::string& text) {
  try {
    parse_machine(text, "m.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(Machines, OfTheFolderAreAllReadLaptopFirst) {
  const std::vector<MachineSets>& machines = all_machines();
  ASSERT_GE(machines.size(), 10U);
  std::set<std::string> names;
  for (const MachineSets& sets : machines) {
    ASSERT_EQ(sets.sets.size(), 1U);
    const Machine& machine = sets.sets.front();
    EXPECT_TRUE(names.insert(machine.name).second) << machine.name;
    EXPECT_EQ(machine_named(machine.name), sets);
    EXPECT_EQ(machine_of(machine.name, 7), machine);
    EXPECT_GE(machine.about.size(), 20U) << machine.name;
  }
  Machine laptop = machines.front().sets.front();
  laptop.about = "";
  EXPECT_EQ(laptop, Machine{});
  EXPECT_EQ(machine_of("m6in-cluster", std::nullopt).sites, 16);
  EXPECT_EQ(machine_of("v100-server", std::nullopt).memory, std::int64_t{32} << 30U);
}

TEST(Machines, AreFoundByNameOrFile) {
  EXPECT_EQ(machine_of("a100-server", 1).name, "a100-server");
  try {
    machine_of("a10-server", 1);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'a100-server'?"), std::string::npos) << error.what();
  }
  const std::string path = testing::TempDir() + "einrel_machine.json";
  std::ofstream(path) << right;
  EXPECT_EQ(machine_of(path, std::nullopt).sites, 3);
  std::ofstream(path) << right << std::string(1U << 20U, ' ');
  EXPECT_THROW(machine_of(path, std::nullopt), UserError);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_THROW(machine_of(path, std::nullopt), UserError);
  EXPECT_THROW(machine_of(testing::TempDir(), std::nullopt), UserError);
  EXPECT_THROW(machine_of("missing.json", std::nullopt), UserError);
}

TEST(Machines, HaveEveryFieldAndNoOther) {
  const MachineSets machine = parse_machine(right, "m.json");
  EXPECT_EQ(
      machine.sets,
      (std::vector<Machine>{{"mine", "measured", 3, 2, {.flops_per_core = 1e9}, 2e9, 3e8, 0, 1e-6, 4'000'000'000}}));
  EXPECT_EQ(complaint(with(R"("cores": 2, )", "")), "m.json is not a machine: it has no field 'cores'");
  EXPECT_EQ(complaint(with("cores", "core")),
            "m.json is not a machine: there is no field 'core'; did you mean 'cores'?");
  EXPECT_EQ(complaint(with(R"("sites": 3)", R"("sites": 3, "sites": 4)")),
            "m.json is not a machine: field 'sites' stands there twice");
}

TEST(Machines, MaySayHowLargeTheCacheOfACoreIs) {
  const MachineSets sets = parse_machine(with("\"sites\": 3", "\"sites\": 3, \"cache\": 2000000"), "m.json");
  EXPECT_EQ(sets.sets.front().processor.second_cache, 2'000'000);
  EXPECT_EQ(parse_machine(to_json(sets), "m.json"), sets);
  EXPECT_EQ(parse_machine(right, "m.json").sets.front().processor.second_cache, nominal_processor.second_cache);
  for (const std::string wrong : {"0", "-1", "1e6", "\"1 MB\""}) {
    const std::string said = complaint(with("\"sites\": 3", "\"sites\": 3, \"cache\": " + wrong));
    EXPECT_TRUE(said.starts_with("m.json is not a machine: field 'cache' is ")) << said;
  }
}

TEST(Machines, MaySayWhatSitesOfANodeShare) {
  const MachineSets sets = parse_machine(
      with("\"sites\": 3",
           "\"sites\": 3, \"sites_per_node\": 2, \"flops_alone\": 1.5, \"memory_alone\": 2, \"network_alone\": 3"),
      "m.json");
  const Machine& machine = sets.sets.front();
  EXPECT_EQ(machine.sites_per_node, 2);
  EXPECT_EQ(machine.flops_alone, 1.5);
  EXPECT_EQ(machine.memory_alone, 2);
  EXPECT_EQ(machine.network_alone, 3);
  EXPECT_EQ(parse_machine(to_json(sets), "m.json"), sets);
  EXPECT_NE(complaint(with("\"sites\": 3", "\"sites\": 3, \"memory_alone\": 2")).find("'sites_per_node' is not"),
            std::string::npos);
  for (const std::string wrong :
       {"\"sites_per_node\": 0", "\"flops_alone\": 0.5", "\"memory_alone\": \"2\"", "\"network_alone\": 0"}) {
    const std::string said = complaint(with("\"sites\": 3", "\"sites\": 3, " + wrong));
    EXPECT_NE(said.find("; it should be "), std::string::npos) << said;
  }
}

TEST(Machines, MaySayHowFastOtherTypesAreAndWhatASiteCosts) {
  const auto said = [](const std::string& fields) { return with("\"sites\": 3", "\"sites\": 3, " + fields); };
  const MachineSets sets =
      parse_machine(said(R"("flops_of": {"bf16": 9e12, "f64": 3e8}, "dollars_per_hour": 4.1)"), "m.json");
  const Machine& machine = sets.sets.front();
  EXPECT_EQ(machine.flops_of, (std::map<DType, double>{{DType::bf16, 9e12}, {DType::f64, 3e8}}));
  EXPECT_EQ(machine.dollars_per_hour, 4.1);
  EXPECT_EQ(parse_machine(to_json(sets), "m.json"), sets);
  EXPECT_EQ(complaint(said(R"("flops_of": {"f32": 1e9})")),
            "m.json is not a machine: 'f32' of field 'flops_of' should be f64, bf16, f16, i32, i64 or bool");
  EXPECT_EQ(complaint(said(R"("flops_of": {"bf16": "fast"})")),
            "m.json is not a machine: 'bf16' of field 'flops_of' is \"fast\"; it should be a number above 0");
  for (const std::string wrong : {"\"flops_of\": [1]", "\"dollars_per_hour\": 0", "\"flops_of\": {\"bf16\": 0}"})
    EXPECT_NE(complaint(said(wrong)).find("; it should be "), std::string::npos) << wrong;
}

TEST(Machines, MaySayHowLongKernelsTake) {
  const auto timed = [](const std::string& times) {
    return with("\"sites\": 3", "\"sites\": 3, \"kernel_times\": " + times);
  };
  const MachineSets sets = parse_machine(timed(R"({"packed": 1.5, "blocks": 0.8})"), "m.json");
  EXPECT_EQ(sets.sets.front().kernel_times, (std::map<std::string, double>{{"packed", 1.5}, {"blocks", 0.8}}));
  EXPECT_EQ(parse_machine(to_json(sets), "m.json"), sets);
  EXPECT_TRUE(parse_machine(right, "m.json").sets.front().kernel_times.empty());
  EXPECT_EQ(
      complaint(timed(R"({"packed": 0})")),
      "m.json is not a machine: 'packed' of field 'kernel_times' is 0; it should be a number from 1e-06 to 1e+06");
  EXPECT_EQ(complaint(timed(R"({"packed": 1e308})")),
            "m.json is not a machine: 'packed' of field 'kernel_times' is 1e+308; it should be a number from 1e-06 to "
            "1e+06");
  EXPECT_EQ(complaint(timed(R"({"packed": 1e308, "packed": 2})")),
            "m.json is not a machine: field 'packed' stands there twice");
  EXPECT_EQ(complaint(timed("[1]")),
            "m.json is not a machine: field 'kernel_times' is array; it should be an object: names of kernels, and how "
            "many times as long they take as modelled");
}

TEST(Machines, MayHaveLinksThatGroupsOfSitesShare) {
  const auto linked = [](const std::string& links) {
    return with("\"sites\": 3", "\"sites\": 16, \"links\": " + links);
  };
  const std::string outer = R"({"name": "ethernet", "sites": 8, "bandwidth": 1e9, "latency": 1e-5})";
  const std::string inner = R"({"name": "QPI", "sites": 4, "bandwidth": 9.6e9, "latency": 0})";
  const MachineSets sets = parse_machine(linked("[" + outer + ", " + inner + "]"), "m.json");
  EXPECT_EQ(sets.sets.front().links, (std::vector<Link>{{"ethernet", 8, 1e9, 1e-5}, {"QPI", 4, 9.6e9, 0}}));
  EXPECT_EQ(parse_machine(to_json(sets), "m.json"), sets);
  EXPECT_EQ(complaint(linked("[" + inner + ", " + outer + "]")),
            "m.json is not a machine: link 2: field 'sites' is 8; it should be a part of the 4 behind the link before: "
            "1, 2");
  EXPECT_NE(
      complaint(linked(R"([{"name": "QPI", "sites": 4, "bandwidth": 0, "latency": 0}])")).find("link 1: field 'band"),
      std::string::npos);
  EXPECT_NE(complaint(linked(R"([{"name": "a", "name": "b"}])")).find("link 1: field 'name' stands there twice"),
            std::string::npos);
  EXPECT_NE(complaint(linked("[]")).find("'links' has 0"), std::string::npos);
  EXPECT_NE(complaint(linked("3")).find("'links' is 3; it should be a list"), std::string::npos);
}

TEST(Machines, HaveSeveralEqualGroupsBehindTheOutermostLink) {
  const auto of_sites = [](int sites, int behind) {
    const std::string text = std::to_string(sites) + R"(, "links": [{"name": "QPI", "sites": )" +
                             std::to_string(behind) + R"(, "bandwidth": 9.6e9, "latency": 0}])";
    return with("\"sites\": 3", "\"sites\": " + text);
  };
  for (int sites = 1; sites <= 12; ++sites) {
    for (int behind = 1; behind <= 14; ++behind) {
      if (behind < sites && sites % behind == 0) {
        EXPECT_EQ(parse_machine(of_sites(sites, behind), "m.json").sets.front().links.front().sites, behind);
      } else {
        EXPECT_NE(complaint(of_sites(sites, behind)).find("link 1: "), std::string::npos) << sites << " " << behind;
      }
    }
  }
  EXPECT_EQ(
      complaint(of_sites(8, 8)),
      "m.json is not a machine: link 1: field 'sites' is 8; it should be a part of the 8 of the machine: 1, 2, 4");
  EXPECT_EQ(complaint(of_sites(1, 1)),
            "m.json is not a machine: link 1: field 'sites' is 1; the 1 of the machine has no parts that a link could "
            "connect: leave this one out");
}

TEST(Machines, ThatAreWrongAreRefusedByField) {
  for (const auto& [from, to, field] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {R"("mine")", "7", "name"},
           {R"("mine")", R"("")", "name"},
           {R"("measured")", "null", "about"},
           {R"("sites": 3)", R"("sites": 0)", "sites"},
           {R"("sites": 3)", R"("sites": -3)", "sites"},
           {R"("sites": 3)", R"("sites": 2.5)", "sites"},
           {R"("sites": 3)", R"("sites": 65537)", "sites"},
           {R"("cores": 2)", R"("cores": 0)", "cores"},
           {R"("cores": 2)", R"("cores": "2")", "cores"},
           {"1e9", "-1", "flops_per_core"},
           {"2e9", "[2e9]", "memory_bandwidth"},
           {"3e8", "true", "network_bandwidth"},
           {R"("network_latency": 0)", R"("network_latency": -1)", "network_latency"},
           {"1e-6", "{}", "task_seconds"},
           {"4000000000", "0", "memory"},
           {"4000000000", "1e9", "memory"},
           {"4000000000", "18446744073709551615", "memory"},
           {"4000000000", "99999999999999999999999", "memory"},
       }) {
    const std::string said = complaint(with(from, to));
    EXPECT_TRUE(said.starts_with("m.json is not a machine: field '" + field + "' is ")) << said;
    EXPECT_NE(said.find("; it should be "), std::string::npos) << said;
  }
}

/// A set of figures as a file has it, with more fields or others.
std::string set_of(const std::string& ranks, const std::string& cores = "2", const std::string& more = "") {
  return R"({"ranks": )" + ranks + R"(, "about": "on )" + ranks + R"( ranks", "cores": )" + cores +
         R"(, "flops_per_core": 1e9, "memory_bandwidth": 2e9, "network_bandwidth": 3e8, "network_latency": 0,)"
         R"( "task_seconds": 1e-6, "memory": 4000000000)" +
         more + "}";
}

std::string measured(const std::string& sets) { return R"({"name": "mine", "sites": 4, "measured": [)" + sets + "]}"; }

MachineSets measured_on(const std::vector<std::int64_t>& numbers) {
  MachineSets machine;
  for (const std::int64_t ranks : numbers)
    machine.sets.push_back({.name = "mine", .about = fmt::format("on {} ranks", ranks), .sites = 4, .ranks = ranks});
  return machine;
}

std::vector<std::int64_t> numbers_of(const MachineSets& machine) {
  std::vector<std::int64_t> numbers;
  for (const Machine& set : machine.sets) numbers.push_back(set.ranks);
  return numbers;
}

TEST(MeasuredMachines, HaveASetOfFiguresForEachNumberOfRanks) {
  const std::string text =
      measured(set_of("8") + ", " + set_of("1") + ", " + set_of("2", "3", R"(, "sites_per_node": 2)"));
  const MachineSets machine = parse_machine(text, "m.json");
  EXPECT_EQ(numbers_of(machine), (std::vector<std::int64_t>{1, 2, 8}));
  for (const Machine& set : machine.sets) {
    EXPECT_EQ(set.name, "mine");
    EXPECT_EQ(set.sites, 4);
    EXPECT_EQ(set.about, fmt::format("on {} ranks", set.ranks));
    EXPECT_EQ(set.cores, set.ranks == 2 ? 3 : 2);
    EXPECT_EQ(set.sites_per_node, set.ranks == 2 ? 2 : 1);
  }
  EXPECT_EQ(parse_machine(to_json(machine), "written.json"), machine);
}

TEST(MeasuredMachines, GiveTheFiguresOfAsManyRanksElseOfTheNearest) {
  const std::vector<std::tuple<std::vector<std::int64_t>, std::int64_t, std::int64_t>> cases{
      {{0}, 1, 0},       {{0}, 9, 0},           {{1}, 1, 1},    {{1}, 8, 1},
      {{2}, 1, 2},       {{2, 4}, 1, 2},        {{2, 4}, 2, 2}, {{2, 4}, 3, 2},  // of two as near the smaller
      {{2, 4}, 4, 4},    {{2, 4}, 65536, 4},    {{2, 5}, 4, 5}, {{2, 5}, 3, 2},
      {{1, 2, 4}, 1, 1}, {{1, 16}, 2, 16},  // one rank has no network
      {{1, 16}, 1, 1},   {{1, 65536}, 2, 65536}};
  for (const auto& [measured, sites, used] : cases)
    EXPECT_EQ(figures_for(measured_on(measured), sites).ranks, used) << sites << " " << measured.size();
  EXPECT_EQ(figures_for(measured_on({2, 4, 8}), std::nullopt).ranks, 4);  // its sites
  EXPECT_EQ(figures_for(measured_on({2, 4, 8}), 8).about, "on 8 ranks");
}

TEST(MeasuredMachines, KeepTheOtherSetsWhenOneIsMeasured) {
  const Machine found{.name = "calibrated", .about = "new", .cores = 7, .ranks = 3};
  for (const auto& [before, after] : std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>>{
           {{1}, {1, 3}}, {{3}, {3}}, {{1, 3, 5}, {1, 3, 5}}, {{4}, {3, 4}}, {{1, 2, 4}, {1, 2, 3, 4}}, {{0}, {3}}}) {
    const MachineSets machine = with_figures(measured_on(before), found);
    EXPECT_EQ(numbers_of(machine), after);
    const bool is_anew = before.front() == 0;
    for (const Machine& set : machine.sets) {
      EXPECT_EQ(set.about, set.ranks == 3 ? "new" : fmt::format("on {} ranks", set.ranks));
      EXPECT_EQ(set.name, is_anew ? "calibrated" : "mine");
      EXPECT_EQ(set.sites, is_anew ? 1 : 4);
    }
  }
}

TEST(MeasuredMachines, AreKeptForSoManyNumbersOfRanks) {
  MachineSets machine = measured_on({1});
  for (std::int64_t ranks = 2; machine.sets.size() < most_machine_sets; ++ranks)
    machine = with_figures(machine, {.about = "new", .ranks = ranks});
  EXPECT_EQ(parse_machine(to_json(machine), "m.json"), machine);
  EXPECT_EQ(with_figures(machine, {.about = "newer", .ranks = 9}).sets[8].about, "newer");
  EXPECT_THROW(with_figures(machine, {.about = "new", .ranks = 65536}), UserError);
  std::string many = set_of("1");
  for (int ranks = 2; ranks <= 3000; ++ranks) many += "," + set_of(std::to_string(ranks));
  EXPECT_EQ(complaint(measured(many)),
            "m.json is not a machine: field 'measured' has 3000 sets of figures; it should have 1 to 256");
}

TEST(MeasuredMachines, ThatAreWrongAreRefusedBySetAndField) {
  const std::string one = set_of("1") + ", ";
  for (const auto& [sets, said] : std::vector<std::pair<std::string, std::string>>{
           {"", "field 'measured' has 0 sets of figures; it should have 1 to 256"},
           {one + "7", "set 2 of 'measured': it is number, not an object of fields"},
           {one + set_of("0"),
            "set 2 of 'measured': field 'ranks' is 0; it should be a whole number from 1 to 65536, "
            "how many it was measured on"},
           {one + set_of("-2"), "set 2 of 'measured': field 'ranks' is -2; it should be "},
           {one + set_of("1.5"), "set 2 of 'measured': field 'ranks' is 1.5; it should be "},
           {one + set_of("65537"), "set 2 of 'measured': field 'ranks' is 65537; it should be "},
           {one + set_of("[2]"), "set 2 of 'measured': field 'ranks' is array; it should be "},
           {one + set_of("2") + ", " + set_of("1"), "set 3 of 'measured': field 'ranks' is 1, as in set 1"},
           {one + set_of("2", "-1"),
            "set 2 of 'measured': field 'cores' is -1; it should be a number above 0, per site"},
           {one + set_of("2", "2", R"(, "sites_per_node": 3)"),
            "set 2 of 'measured': field 'sites_per_node' is 3; it should be a whole number from 1 to 2, "},
           {one + set_of("2", "2", R"(, "cores": 2)"), "set 2 of 'measured': field 'cores' stands there twice"},
           {one + set_of("2", "2", R"(, "core": 2)"),
            "set 2 of 'measured': there is no field 'core'; did you mean 'cores'?"},
           {one + set_of("2", "2", R"(, "sites": 2)"), "set 2 of 'measured': there is no field 'sites'; "},
           {"{}", "set 1 of 'measured': it has no field 'ranks'"},
           {R"({"ranks": 1})", "set 1 of 'measured': it has no field 'about'"},
       }) {
    EXPECT_TRUE(complaint(measured(sets)).starts_with("m.json is not a machine: " + said)) << complaint(measured(sets));
  }
  EXPECT_NE(complaint(measured(set_of("1", "NaN"))).find("this is not JSON"), std::string::npos);
  EXPECT_NE(complaint(measured(set_of("1", "1e999"))).find("beyond the range"), std::string::npos);
  EXPECT_EQ(complaint(R"({"name": "mine", "sites": 4, "measured": 3})"),
            "m.json is not a machine: field 'measured' is 3; it should be a list of 1 to 256 sets of figures");
  EXPECT_EQ(complaint(R"({"name": "mine", "sites": 4, "measurd": []})"),
            "m.json is not a machine: there is no field 'measurd'; did you mean 'measured'?");
  EXPECT_EQ(complaint(with("\"sites\": 3", "\"sites\": 3, \"measured\": []")),
            "m.json is not a machine: field 'about' stands beside 'measured'; it should be in the sets there");
}

TEST(Machines, ThatAreNoJsonAreRefused) {
  for (const std::string& text : {std::string(), std::string("{"), right + "}", std::string("{\"name\": \"\xff\"}"),
                                  std::string(500'000, '['), with("1e9", "1e999"), std::string("\0", 1)}) {
    EXPECT_NE(complaint(text).find("not JSON"), std::string::npos) << complaint(text);
  }
  EXPECT_EQ(complaint("{\n \"name\": 1,}"), "m.json:2:12: this is not JSON");
  EXPECT_EQ(complaint("[1]"), "m.json is not a machine: it is array, not an object of fields");
  EXPECT_NE(complaint(std::string(500'000, '[') + std::string(500'000, ']')).find("not an object"), std::string::npos);
}

}  // namespace
}  // namespace einrel::test
