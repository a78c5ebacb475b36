#include "machine/machines.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>
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
  const std::vector<Machine>& machines = all_machines();
  ASSERT_GE(machines.size(), 10U);
  std::set<std::string> names;
  for (const Machine& machine : machines) {
    EXPECT_TRUE(names.insert(machine.name).second) << machine.name;
    EXPECT_EQ(machine_named(machine.name), machine);
    EXPECT_GE(machine.about.size(), 20U) << machine.name;
  }
  Machine laptop = machines.front();
  laptop.about = "";
  EXPECT_EQ(laptop, Machine{});
  EXPECT_EQ(machine_named("m6in-cluster").sites, 16);
  EXPECT_EQ(machine_named("v100-server").memory, std::int64_t{32} << 30U);
}

TEST(Machines, AreFoundByNameOrFile) {
  EXPECT_EQ(machine_of("a100-server").name, "a100-server");
  try {
    machine_of("a10-server");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'a100-server'?"), std::string::npos) << error.what();
  }
  const std::string path = testing::TempDir() + "einrel_machine.json";
  std::ofstream(path) << right;
  EXPECT_EQ(machine_of(path).sites, 3);
  std::ofstream(path) << right << std::string(1U << 20U, ' ');
  EXPECT_THROW(machine_of(path), UserError);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_THROW(machine_of(path), UserError);
  EXPECT_THROW(machine_of(testing::TempDir()), UserError);
  EXPECT_THROW(machine_of("missing.json"), UserError);
}

TEST(Machines, HaveEveryFieldAndNoOther) {
  const Machine machine = parse_machine(right, "m.json");
  EXPECT_EQ(machine, (Machine{"mine", "measured", 3, 2, 1e9, 2e9, 3e8, 0, 1e-6, 4'000'000'000}));
  EXPECT_EQ(complaint(with(R"("cores": 2, )", "")), "m.json is not a machine: it has no field 'cores'");
  EXPECT_EQ(complaint(with("cores", "core")),
            "m.json is not a machine: there is no field 'core'; did you mean 'cores'?");
  EXPECT_EQ(complaint(with(R"("sites": 3)", R"("sites": 3, "sites": 4)")),
            "m.json is not a machine: field 'sites' stands there twice");
}

TEST(Machines, MaySayWhatSitesOfANodeShare) {
  const Machine machine = parse_machine(
      with("\"sites\": 3",
           "\"sites\": 3, \"sites_per_node\": 2, \"flops_alone\": 1.5, \"memory_alone\": 2, \"network_alone\": 3"),
      "m.json");
  EXPECT_EQ(machine.sites_per_node, 2);
  EXPECT_EQ(machine.flops_alone, 1.5);
  EXPECT_EQ(machine.memory_alone, 2);
  EXPECT_EQ(machine.network_alone, 3);
  EXPECT_EQ(parse_machine(to_json(machine), "m.json"), machine);
  EXPECT_NE(complaint(with("\"sites\": 3", "\"sites\": 3, \"memory_alone\": 2")).find("'sites_per_node' is not"),
            std::string::npos);
  for (const std::string wrong :
       {"\"sites_per_node\": 0", "\"flops_alone\": 0.5", "\"memory_alone\": \"2\"", "\"network_alone\": 0"}) {
    const std::string said = complaint(with("\"sites\": 3", "\"sites\": 3, " + wrong));
    EXPECT_NE(said.find("; it should be "), std::string::npos) << said;
  }
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
