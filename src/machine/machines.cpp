#include "machine/machines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/ids.h"
#include "base/mapped_file.h"
#include "base/source.h"
#include "base/suggest.h"
#include "base/text.h"
#include "machine/machine_texts.h"

namespace einrel {
namespace {

using nlohmann::json;

/// Everything that may be in a machine's file, and all of it but what sites of a node share must.
const std::vector<std::string>& field_names() {
  static const std::vector<std::string> names{"name",
                                              "about",
                                              "sites",
                                              "cores",
                                              "flops_per_core",
                                              "memory_bandwidth",
                                              "network_bandwidth",
                                              "network_latency",
                                              "task_seconds",
                                              "memory",
                                              "sites_per_node",
                                              "flops_alone",
                                              "memory_alone",
                                              "network_alone"};
  return names;
}

/// The fields of one object, each checked as it is taken.
class Fields {
 public:
  Fields(const json& object, const std::string& source) : object_(object), source_(source) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{} is not a machine: {}", printable(source_), what));
  }

  void check_names() const {
    const std::vector<std::string>& known = field_names();
    for (const auto& [name, value] : object_.items()) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const std::string hint = did_you_mean(name, known);
      fail(fmt::format("there is no field '{}'; {}", printable(name),
                       hint.empty() ? fmt::format("the fields are {}", fmt::join(known, ", ")) : hint));
    }
  }

  std::string text(const char* name) const {
    const json& value = at(name);
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) wrong(name, "a text that is not empty");
    return value.get<std::string>();
  }

  double positive(const char* name, const char* unit) const {
    const json& value = at(name);
    if (!value.is_number() || !(value.get<double>() > 0)) wrong(name, fmt::format("a number above 0, {}", unit));
    return value.get<double>();
  }

  double seconds(const char* name) const {
    const json& value = at(name);
    if (!value.is_number() || !(value.get<double>() >= 0)) wrong(name, "0 or more seconds");
    return value.get<double>();
  }

  double times_alone(const char* name) const {
    if (!object_.contains(name)) return 1;
    const json& value = at(name);
    if (!value.is_number() || !(value.get<double>() >= 1)) wrong(name, "1 or more: times as much as beside others");
    return value.get<double>();
  }

  std::int64_t whole(const char* name, std::int64_t most, const char* unit) const {
    const json& value = at(name);
    const bool is_in_range = value.is_number_unsigned() && value.get<std::uint64_t>() >= 1 &&
                             value.get<std::uint64_t>() <= static_cast<std::uint64_t>(most);
    if (!is_in_range) wrong(name, fmt::format("a whole number from 1 to {}, {}", most, unit));
    return value.get<std::int64_t>();
  }

 private:
  const json& at(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) fail(fmt::format("it has no field '{}'", name));
    return *found;
  }

  [[noreturn]] void wrong(const char* name, const std::string& wanted) const {
    const json& value = object_[name];
    const std::string given = value.is_structured() ? value.type_name() : printable(value.dump());
    fail(fmt::format("field '{}' is {}; it should be {}", name, given, wanted));
  }

  const json& object_;
  const std::string& source_;
};

/// One flat object, without fields that stand twice. Throws UserError.
json parse_object(std::string_view text, const std::string& source) {
  std::set<std::string> seen;
  std::string repeated;
  const auto watch = [&](int depth, json::parse_event_t event, const json& parsed) {
    if (event == json::parse_event_t::key && depth == 1 && !seen.insert(parsed.get<std::string>()).second)
      repeated = parsed.get<std::string>();
    return true;
  };
  json object;
  try {
    object = json::parse(text, watch);
  } catch (const json::parse_error& error) {
    const SourceText lines(source, std::string(text));
    const LineColumn at = lines.locate(std::min(text.size(), error.byte == 0 ? 0 : error.byte - 1));
    throw UserError(fmt::format("{}:{}:{}: this is not JSON", printable(source), at.line, at.column));
  } catch (const json::exception&) {
    throw UserError(fmt::format("{} is not JSON: it has a number beyond the range of f64", printable(source)));
  }
  const Fields fields(object, source);
  if (!object.is_object()) fields.fail(fmt::format("it is {}, not an object of fields", object.type_name()));
  if (!repeated.empty()) fields.fail(fmt::format("field '{}' stands there twice", printable(repeated)));
  fields.check_names();
  return object;
}

}  // namespace

const std::vector<Machine>& all_machines() {
  static const std::vector<Machine> machines = [] {
    std::vector<Machine> made;
    for (const MachineText& file : machine_texts()) made.push_back(parse_machine(file.text, std::string(file.name)));
    std::sort(made.begin(), made.end(), [](const Machine& a, const Machine& b) { return a.name < b.name; });
    std::stable_partition(made.begin(), made.end(), [](const Machine& m) { return m.name == Machine{}.name; });
    return made;
  }();
  return machines;
}

Machine machine_named(std::string_view name) {
  std::vector<std::string> names;
  for (const Machine& machine : all_machines()) {
    if (machine.name == name) return machine;
    names.push_back(machine.name);
  }
  const std::string hint = did_you_mean(name, names);
  throw UserError(fmt::format("there is no machine '{}'; {}; a file is written as ./FILE.json", printable(name),
                              hint.empty() ? fmt::format("there are {}", fmt::join(names, ", ")) : hint));
}

Machine parse_machine(std::string_view text, const std::string& source) {
  const json object = parse_object(text, source);
  const Fields fields(object, source);
  Machine machine;
  machine.name = fields.text("name");
  machine.about = fields.text("about");
  machine.sites = fields.whole("sites", most_sites, "how many there are");
  machine.cores = fields.positive("cores", "per site");
  machine.flops_per_core = fields.positive("flops_per_core", "scalar operations a second on f32");
  machine.memory_bandwidth = fields.positive("memory_bandwidth", "bytes a second per site");
  machine.network_bandwidth = fields.positive("network_bandwidth", "bytes a second that a site receives");
  machine.network_latency = fields.seconds("network_latency");
  machine.task_seconds = fields.seconds("task_seconds");
  machine.memory = fields.whole("memory", INT64_MAX, "bytes per site");
  if (object.contains("sites_per_node"))
    machine.sites_per_node = fields.whole("sites_per_node", most_sites, "how many share one node");
  for (const auto& [name, times] :
       {std::pair("flops_alone", &Machine::flops_alone), std::pair("memory_alone", &Machine::memory_alone),
        std::pair("network_alone", &Machine::network_alone)}) {
    machine.*times = fields.times_alone(name);
    if (machine.sites_per_node == 1 && machine.*times > 1)
      fields.fail(fmt::format("field '{}' is above 1, but 'sites_per_node' is not: a site is alone then", name));
  }
  return machine;
}

Machine read_machine(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{1} << 20U;
  const FileBytes file = map_file(path);
  if (file.bytes.size() > most_bytes)
    throw UserError(fmt::format("{} is not a machine: it is larger than 1 MiB", printable(path)));
  return parse_machine(std::string(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()), path);
}

Machine machine_of(const std::string& name_or_path) {
  const bool is_file = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json");
  return is_file ? read_machine(name_or_path) : machine_named(name_or_path);
}

std::string to_json(const Machine& machine) {
  const nlohmann::ordered_json object{{"name", machine.name},
                                      {"about", machine.about},
                                      {"sites", machine.sites},
                                      {"cores", machine.cores},
                                      {"flops_per_core", machine.flops_per_core},
                                      {"memory_bandwidth", machine.memory_bandwidth},
                                      {"network_bandwidth", machine.network_bandwidth},
                                      {"network_latency", machine.network_latency},
                                      {"task_seconds", machine.task_seconds},
                                      {"memory", machine.memory},
                                      {"sites_per_node", machine.sites_per_node},
                                      {"flops_alone", machine.flops_alone},
                                      {"memory_alone", machine.memory_alone},
                                      {"network_alone", machine.network_alone}};
  return object.dump(2) + "\n";
}

std::string calibrated_path() {
  const auto set = [](const char* name) { return std::getenv(name) != nullptr && *std::getenv(name) != '\0'; };
  if (set("XDG_CONFIG_HOME")) return std::string(std::getenv("XDG_CONFIG_HOME")) + "/einrel/machine.json";
  if (set("HOME")) return std::string(std::getenv("HOME")) + "/.config/einrel/machine.json";
  return "";
}

Machine default_machine() {
  const std::string path = calibrated_path();
  std::error_code ignored;
  return !path.empty() && std::filesystem::exists(path, ignored) ? read_machine(path) : Machine{};
}

}  // namespace einrel
