#include "machine/machines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/ids.h"
#include "base/mapped_file.h"
#include "base/settings.h"
#include "base/source.h"
#include "base/suggest.h"
#include "base/text.h"
#include "machine/machine_texts.h"

namespace einrel {
namespace {

using nlohmann::json;

using Names = std::vector<std::string>;

constexpr std::size_t most_links = 8;  // one inside the other

/// Of one set of figures. All but the last nine must be there: the cache, what sites of a node share, links, kernels,
/// other types than f32, the price.
const Names& names_of_figures() {
  static const Names names{
      "about",         "cores",  "flops_per_core", "memory_bandwidth", "network_bandwidth", "network_latency",
      "task_seconds",  "memory", "cache",          "sites_per_node",   "flops_alone",       "memory_alone",
      "network_alone", "links",  "kernel_times",   "flops_of",         "dollars_per_hour"};
  return names;
}

Names names_of_figures_and(Names names) {
  names.insert(names.end(), names_of_figures().begin(), names_of_figures().end());
  return names;
}

/// The fields of one object, each checked as it is taken.
class Fields {
 public:
  /// `place` says where in the file: "" or "set 2 of 'measured': ".
  Fields(const json& object, const std::string& source, std::string place = "")
      : object_(object), source_(source), place_(std::move(place)) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw UserError(fmt::format("{} is not a machine: {}{}", printable(source_), place_, what));
  }

  bool has(const char* name) const { return object_.contains(name); }

  void check_names(const Names& known) const {
    if (!object_.is_object()) fail(fmt::format("it is {}, not an object of fields", object_.type_name()));
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
    if (!has(name)) return 1;
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

  std::map<DType, double> rates_by_dtype(const char* name) const {
    const json& value = at(name);
    if (!value.is_object()) wrong(name, "an object: types, and scalar operations a second of a core on each");
    std::map<DType, double> rates;
    for (const auto& [type, rate] : value.items()) {
      const std::optional<DType> dtype = dtype_named(type);
      if (!dtype || dtype == DType::f32)
        fail(fmt::format("'{}' of field '{}' should be f64, bf16, f16, i32, i64 or bool", printable(type), name));
      if (!rate.is_number() || !(rate.get<double>() > 0))
        fail(
            fmt::format("'{}' of field '{}' is {}; it should be a number above 0", type, name, printable(rate.dump())));
      rates[*dtype] = rate.get<double>();
    }
    return rates;
  }

  std::map<std::string, double> times_by_name(const char* name) const {
    const json& value = at(name);
    if (!value.is_object())
      wrong(name, "an object: names of kernels, and how many times as long they take as modelled");
    std::map<std::string, double> times;
    for (const auto& [kernel, number] : value.items()) {
      constexpr double most = 1e6;  // beyond, and below its inverse, nobody has measured
      if (!number.is_number() || !(number.get<double>() >= 1 / most && number.get<double>() <= most))
        fail(fmt::format("'{}' of field '{}' is {}; it should be a number from 1e-06 to 1e+06", printable(kernel), name,
                         printable(number.dump())));
      times[kernel] = number.get<double>();
    }
    return times;
  }

  const json& list(const char* name, std::size_t most, const char* unit) const {
    const json& value = at(name);
    if (!value.is_array()) wrong(name, fmt::format("a list of 1 to {} {}", most, unit));
    if (value.empty() || value.size() > most)
      fail(fmt::format("field '{}' has {} {}; it should have 1 to {}", name, value.size(), unit, most));
    return value;
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
  std::string place_;
};

std::string place_of_set(std::size_t number) { return fmt::format("set {} of 'measured': ", number); }
std::string place_of_link(std::size_t number) { return fmt::format("link {}: ", number); }

/// Fields that stand twice in an object: parsing keeps the last of them.
class RepeatedFields {
 public:
  void see(int depth, json::parse_event_t event, const json& parsed) {
    const auto at = static_cast<std::size_t>(depth);
    constexpr std::size_t in_set = 3;  // of a list of the machine
    if (event == json::parse_event_t::object_start) {
      seen_.resize(std::max(seen_.size(), at + 2));
      seen_[at + 1].clear();
      if (at + 1 == in_set) ++sets_;
    }
    if (event != json::parse_event_t::key) return;
    const auto name = parsed.get<std::string>();
    if (at == 1) {
      sets_ = 0;
      is_of_links_ = name == "links";
    }
    if (seen_[at].insert(name).second || !found_.empty()) return;
    const std::string place = at < in_set ? "" : is_of_links_ ? place_of_link(sets_) : place_of_set(sets_);
    found_ = fmt::format("{}field '{}' stands there twice", place, printable(name));
  }
  const std::string& found() const { return found_; }

 private:
  std::vector<std::set<std::string>> seen_;  // by depth
  std::size_t sets_ = 0;                     // or links
  bool is_of_links_ = false;
  std::string found_;
};

/// An object in which no field stands twice, nor in the sets of its list. Throws UserError.
json parse_object(std::string_view text, const std::string& source) {
  RepeatedFields repeated;
  const auto watch = [&](int depth, json::parse_event_t event, const json& parsed) {
    repeated.see(depth, event, parsed);
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
  if (!repeated.found().empty()) fields.fail(repeated.found());
  return object;
}

/// What the sites behind a link may be: a part of those of the machine, or behind the link before.
std::string parts_text(std::int64_t outer, const char* of) {
  std::vector<std::int64_t> parts;
  for (std::int64_t part = 1; part < outer; ++part) {
    if (outer % part == 0) parts.push_back(part);
  }
  if (parts.empty()) return fmt::format("the 1 {} has no parts that a link could connect: leave this one out", of);
  return fmt::format("it should be a part of the {} {}: {}", outer, of, fmt::join(parts, ", "));
}

/// The links of a machine of so many sites, each with fewer sites behind it than the one before, which they divide.
std::vector<Link> read_links(const Fields& fields, const std::string& source, std::int64_t sites) {
  std::vector<Link> links;
  for (const json& object : fields.list("links", most_links, "links, from the outside in")) {
    const Fields link(object, source, place_of_link(links.size() + 1));
    link.check_names({"name", "sites", "bandwidth", "latency"});
    links.push_back({link.text("name"), link.whole("sites", most_sites, "in each of the groups that it connects"),
                     link.positive("bandwidth", "bytes a second that a group receives"), link.seconds("latency")});
    const auto alike =
        std::count_if(links.begin(), links.end(), [&](const Link& l) { return l.name == links.back().name; });
    if (alike > 1) link.fail(fmt::format("field 'name' is '{}', as of another link", printable(links.back().name)));
    const std::int64_t outer = links.size() == 1 ? sites : links[links.size() - 2].sites;
    if (links.back().sites >= outer || outer % links.back().sites != 0)
      link.fail(fmt::format("field 'sites' is {}; {}", links.back().sites,
                            parts_text(outer, links.size() == 1 ? "of the machine" : "behind the link before")));
  }
  return links;
}

/// Into a machine whose name, sites and ranks are known.
void read_figures(const Fields& fields, const std::string& source, Machine& machine) {
  machine.about = fields.text("about");
  machine.cores = fields.positive("cores", "per site");
  machine.processor.flops_per_core = fields.positive("flops_per_core", "scalar operations a second on f32");
  machine.memory_bandwidth = fields.positive("memory_bandwidth", "bytes a second per site");
  machine.network_bandwidth = fields.positive("network_bandwidth", "bytes a second that a site receives");
  machine.network_latency = fields.seconds("network_latency");
  machine.task_seconds = fields.seconds("task_seconds");
  machine.memory = fields.whole("memory", INT64_MAX, "bytes per site");
  if (fields.has("cache"))
    machine.processor.second_cache = fields.whole("cache", INT64_MAX, "bytes of a core's second-level cache");
  if (fields.has("links")) machine.links = read_links(fields, source, machine.sites);
  if (fields.has("flops_of")) machine.flops_of = fields.rates_by_dtype("flops_of");
  if (fields.has("dollars_per_hour")) machine.dollars_per_hour = fields.positive("dollars_per_hour", "of one site");
  if (fields.has("kernel_times")) machine.kernel_times = fields.times_by_name("kernel_times");
  if (fields.has("sites_per_node")) {
    const std::int64_t most = machine.ranks > 0 ? machine.ranks : most_sites;
    machine.sites_per_node = fields.whole("sites_per_node", most, "how many share one node");
  }
  for (const auto& [name, times] :
       {std::pair("flops_alone", &Machine::flops_alone), std::pair("memory_alone", &Machine::memory_alone),
        std::pair("network_alone", &Machine::network_alone)}) {
    machine.*times = fields.times_alone(name);
    if (machine.sites_per_node == 1 && machine.*times > 1)
      fields.fail(fmt::format("field '{}' is above 1, but 'sites_per_node' is not: a site is alone then", name));
  }
}

/// The sets of the field 'measured', each for a machine of this name and these sites.
std::vector<Machine> read_sets(const Fields& fields, const Machine& machine, const std::string& source) {
  const json& list = fields.list("measured", most_machine_sets, "sets of figures");
  std::vector<Machine> sets;
  std::map<std::int64_t, std::size_t> number_of;  // by ranks
  for (const json& object : list) {
    const std::size_t number = sets.size() + 1;
    const Fields figures(object, source, place_of_set(number));
    figures.check_names(names_of_figures_and({"ranks"}));
    Machine& set = sets.emplace_back(machine);
    set.ranks = figures.whole("ranks", most_sites, "how many it was measured on");
    const auto [other, is_new] = number_of.emplace(set.ranks, number);
    if (!is_new) figures.fail(fmt::format("field 'ranks' is {}, as in set {}", set.ranks, other->second));
    read_figures(figures, source, set);
  }
  std::sort(sets.begin(), sets.end(), [](const Machine& a, const Machine& b) { return a.ranks < b.ranks; });
  return sets;
}

nlohmann::ordered_json figures_json(const Machine& machine) {
  nlohmann::ordered_json figures{{"about", machine.about},
                                 {"cores", machine.cores},
                                 {"flops_per_core", machine.processor.flops_per_core},
                                 {"memory_bandwidth", machine.memory_bandwidth},
                                 {"network_bandwidth", machine.network_bandwidth},
                                 {"network_latency", machine.network_latency},
                                 {"task_seconds", machine.task_seconds},
                                 {"memory", machine.memory},
                                 {"cache", machine.processor.second_cache},
                                 {"sites_per_node", machine.sites_per_node},
                                 {"flops_alone", machine.flops_alone},
                                 {"memory_alone", machine.memory_alone},
                                 {"network_alone", machine.network_alone}};
  for (const auto& [dtype, rate] : machine.flops_of) figures["flops_of"][std::string(name_of(dtype))] = rate;
  if (machine.dollars_per_hour > 0) figures["dollars_per_hour"] = machine.dollars_per_hour;
  if (!machine.kernel_times.empty()) figures["kernel_times"] = machine.kernel_times;
  for (const Link& link : machine.links)
    figures["links"].push_back(
        {{"name", link.name}, {"sites", link.sites}, {"bandwidth", link.bandwidth}, {"latency", link.latency}});
  return figures;
}

}  // namespace

const std::vector<MachineSets>& all_machines() {
  static const std::vector<MachineSets> machines = [] {
    std::vector<MachineSets> made;
    for (const MachineText& file : machine_texts()) made.push_back(parse_machine(file.text, std::string(file.name)));
    std::sort(made.begin(), made.end(),
              [](const auto& a, const auto& b) { return a.sets.front().name < b.sets.front().name; });
    std::stable_partition(made.begin(), made.end(),
                          [](const auto& m) { return m.sets.front().name == Machine{}.name; });
    return made;
  }();
  return machines;
}

MachineSets machine_named(std::string_view name) {
  Names names;
  for (const MachineSets& machine : all_machines()) {
    names.push_back(machine.sets.front().name);
    if (names.back() == name) return machine;
  }
  const std::string hint = did_you_mean(name, names);
  throw UserError(fmt::format("there is no machine '{}'; {} file is written as ./FILE.json", printable(name),
                              hint.empty() ? fmt::format("there are {}; a", fmt::join(names, ", ")) : hint + " A"));
}

MachineSets parse_machine(std::string_view text, const std::string& source) {
  const json object = parse_object(text, source);
  const Fields fields(object, source);
  const bool is_measured = fields.has("measured");
  for (const std::string& name : names_of_figures()) {
    if (is_measured && fields.has(name.c_str()))
      fields.fail(fmt::format("field '{}' stands beside 'measured'; it should be in the sets there", name));
  }
  const Names of_machine{"name", "sites", "measured"};
  fields.check_names(is_measured ? of_machine : names_of_figures_and(of_machine));
  Machine machine;
  machine.name = fields.text("name");
  machine.sites = fields.whole("sites", most_sites, "how many there are");
  if (is_measured) return {read_sets(fields, machine, source)};
  read_figures(fields, source, machine);
  return {{machine}};
}

MachineSets read_machine(const std::string& path) {
  constexpr std::size_t most_bytes = std::size_t{1} << 20U;
  const FileBytes file = map_file(path);
  if (file.bytes.size() > most_bytes)
    throw UserError(fmt::format("{} is not a machine: it is larger than 1 MiB", printable(path)));
  return parse_machine(std::string(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()), path);
}

Machine machine_of(const std::string& name_or_path, std::optional<std::int64_t> sites) {
  const bool is_file = name_or_path.find('/') != std::string::npos || name_or_path.ends_with(".json");
  return figures_for(is_file ? read_machine(name_or_path) : machine_named(name_or_path), sites);
}

std::string to_json(const MachineSets& machine) {
  const Machine& first = machine.sets.front();
  nlohmann::ordered_json object{{"name", first.name}, {"sites", first.sites}};
  if (first.ranks == 0) object.update(figures_json(first));
  for (const Machine& set : machine.sets) {
    if (set.ranks == 0) continue;
    nlohmann::ordered_json figures{{"ranks", set.ranks}};
    figures.update(figures_json(set));
    object["measured"].push_back(std::move(figures));
  }
  return object.dump(2) + "\n";
}

std::string calibrated_path() { return settings_path(calibrated_file); }

std::optional<MachineSets> calibrated_machine() {
  const std::string path = calibrated_path();
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return std::nullopt;
  return read_machine(path);
}

Machine default_machine(std::optional<std::int64_t> sites) {
  const std::optional<MachineSets> calibrated = calibrated_machine();
  return calibrated ? figures_for(*calibrated, sites) : Machine{};
}

}  // namespace einrel
