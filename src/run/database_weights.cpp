#include "run/database_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/settings.h"
#include "base/text.h"

namespace einrel {
namespace {

using nlohmann::json;

constexpr std::size_t most_servers = 1000;

[[noreturn]] void refuse(const std::string& source, const std::string& what) {
  throw UserError(
      fmt::format("{} has no weights of databases: {}\n  help: delete it, and einrel calibrate --database URL writes "
                  "it anew",
                  printable(source), what));
}

DatabaseWeights read_entry(const json& entry, const std::string& source, std::size_t number) {
  const auto fail = [&](const std::string& what) { refuse(source, fmt::format("entry {}: {}", number, what)); };
  if (!entry.is_object()) fail(fmt::format("it is {}, not an object", entry.type_name()));
  if (entry.size() != format_components.size() + 2)
    fail(fmt::format("it has {} fields; it should have {}", entry.size(), format_components.size() + 2));
  DatabaseWeights database;
  for (const auto& [name, text] : {std::pair("server", &database.server), std::pair("about", &database.about)}) {
    const auto found = entry.find(name);
    if (found == entry.end() || !found->is_string()) fail(fmt::format("field '{}' should be a text", name));
    *text = found->get<std::string>();
  }
  for (const FormatComponent& field : format_components) {
    const auto found = entry.find(field.weight_name);
    if (found == entry.end() || !found->is_number() || !(found->get<double>() >= 0) ||
        !std::isfinite(found->get<double>()))
      fail(fmt::format("field '{}' should be a number from 0 on", field.weight_name));
    database.weights.*field.weight = found->get<double>();
  }
  return database;
}

}  // namespace

FormatWeights assumed_weights(sql::Dialect dialect) {
  return dialect == sql::Dialect::postgres ? postgres_weights : FormatWeights{};
}

std::vector<DatabaseWeights> parse_database_weights(const std::string& text, const std::string& source) {
  const json all = json::parse(text, nullptr, false);
  if (all.is_discarded()) refuse(source, "it is not JSON");
  if (!all.is_object() || all.size() != 1 || !all.contains("databases") || !all["databases"].is_array())
    refuse(source, "it is no object with a list 'databases' alone");
  if (all["databases"].size() > most_servers) refuse(source, fmt::format("it has more than {} entries", most_servers));
  std::vector<DatabaseWeights> databases;
  std::set<std::string> servers;
  for (const json& entry : all["databases"]) {
    databases.push_back(read_entry(entry, source, databases.size() + 1));
    if (!servers.insert(databases.back().server).second)
      refuse(source, fmt::format("'{}' stands there twice", printable(databases.back().server)));
  }
  return databases;
}

std::vector<DatabaseWeights> calibrated_databases() {
  const std::string path = settings_path(database_weights_file);
  std::error_code ignored;
  if (path.empty() || !std::filesystem::exists(path, ignored)) return {};
  constexpr std::size_t most_bytes = std::size_t{1} << 20U;
  const FileBytes file = map_file(path);
  if (file.bytes.size() > most_bytes) refuse(path, "it is larger than 1 MiB");
  return parse_database_weights(std::string(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()), path);
}

FormatWeights weights_for(const std::string& server, sql::Dialect dialect) {
  for (const DatabaseWeights& database : calibrated_databases()) {
    if (database.server == server) return database.weights;
  }
  return assumed_weights(dialect);
}

FormatWeights weights_for_scripts(sql::Dialect dialect) {
  if (dialect == sql::Dialect::duckdb)
    throw UserError("DuckDB has no functions that compute chunks; with --formats element a script needs none");
  FormatWeights weights = dialect == sql::Dialect::sqlite ? weights_for("sqlite", dialect) : assumed_weights(dialect);
  weights.workers = 1;  // nobody shares the statements of a script
  return weights;
}

std::vector<DatabaseWeights> with_weights(std::vector<DatabaseWeights> kept, DatabaseWeights measured) {
  const auto same = std::find_if(kept.begin(), kept.end(),
                                 [&](const DatabaseWeights& each) { return each.server == measured.server; });
  if (same != kept.end()) {
    *same = std::move(measured);
  } else if (kept.size() == most_servers) {
    throw UserError(fmt::format("{} has weights of {} databases, the most that are kept; remove some",
                                printable(settings_path(database_weights_file)), most_servers));
  } else {
    kept.push_back(std::move(measured));
  }
  return kept;
}

std::string to_json(const std::vector<DatabaseWeights>& databases) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const DatabaseWeights& database : databases) {
    nlohmann::ordered_json entry{{"server", database.server}, {"about", database.about}};
    for (const FormatComponent& field : format_components) entry[field.weight_name] = database.weights.*field.weight;
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json all{{"databases", std::move(list)}};
  return all.dump(2, ' ', true, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace einrel
