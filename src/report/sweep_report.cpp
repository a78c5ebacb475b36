#include "report/sweep_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <variant>

#include "base/text.h"
#include "report/plan_facts.h"
#include "run/plan_file.h"

namespace einrel {
namespace {

/// Seconds of the first plan of the same machine and planner, which others are compared with.
std::optional<double> first_seconds(const std::vector<SweptPlan>& plans, const SweptPlan& of) {
  for (const SweptPlan& plan : plans) {
    const auto* const report = std::get_if<PlanReport>(&plan.plan);
    if (report != nullptr && plan.machine == of.machine && plan.planner() == of.planner())
      return report->costs.seconds_of_later_steps();
  }
  return std::nullopt;
}

/// "each of 100 steps but the first, ": what figures are of; nothing where it is a whole run.
std::string steps_text(const std::vector<SweptPlan>& plans) {
  for (const SweptPlan& plan : plans) {
    const auto* const report = std::get_if<PlanReport>(&plan.plan);
    if (report != nullptr && report->costs.steps > 1)
      return fmt::format("each of {} steps but the first, ", report->costs.steps);
  }
  return "";
}

/// A field with commas or quotes in it stands in quotes.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace

std::string sweep_text(const Compiled& compiled, const std::vector<SweptPlan>& plans) {
  const bool has_price =
      std::any_of(plans.begin(), plans.end(), [](const SweptPlan& plan) { return plan.dollars().has_value(); });
  std::string text = fmt::format("{}: {}plans by number of sites\n\n", printable(compiled.name), steps_text(plans));
  text += fmt::format("{:<18} {:>6} {:<16} {:>10} {:>10} {:>10} {:>10} {:>12} {:>11} {:>15}{}\n", "machine", "sites",
                      "planner", "seconds", "as fast", "of moving", "moved", "at most/site", "peak memory",
                      "sites computing", has_price ? fmt::format(" {:>14}", "$, 1,000 runs") : "");
  for (const SweptPlan& plan : plans) {
    text += fmt::format("{:<18} {:>6} {:<16} ", printable(plan.machine), plan.sites, plan.planner());
    if (const auto* const refusal = std::get_if<PlanRefusal>(&plan.plan)) {
      text += fmt::format("no plan: {}\n", refusal->reason);
      continue;
    }
    const auto& report = std::get<PlanReport>(plan.plan);
    const PlanCosts& costs = report.costs;
    const double as_fast =
        costs.seconds_of_later_steps() > 0 ? *first_seconds(plans, plan) / costs.seconds_of_later_steps() : 1;
    text +=
        fmt::format("{:>10} {:>8.3g} x {:>10} {:>10} {:>12} {:>11} {:>15}{}\n",
                    seconds_text(costs.seconds_of_later_steps()), as_fast, seconds_text(costs.moving_of_later_steps()),
                    bytes_text(costs.bytes_of_later_steps()), bytes_text(costs.most_received_later()),
                    bytes_text(report.peak.bytes), sites_computing_text(compiled.graph, report.plan),
                    plan.dollars() ? fmt::format(" {:>14.3g}", 1000 * *plan.dollars()) : "");
  }
  for (const EnoughSites& each : enough_sites(plans)) {
    text += fmt::format("\nnote: on {}, {} {} within 5 % as fast as the best of up to {}, planned by {}\n",
                        printable(each.machine), each.sites, each.sites == 1 ? "site is" : "sites are", each.asked,
                        each.planner);
  }
  return text;
}

std::string sweep_csv(const Compiled& compiled, const std::vector<SweptPlan>& plans) {
  std::string text =
      "machine,sites,planner,seconds,moving_seconds,bytes,most_received,peak_memory,fewest_computing,most_computing,"
      "plan_seconds,dollars,refused\n";
  for (const SweptPlan& plan : plans) {
    text += fmt::format("{},{},{},", csv_field(plan.machine), plan.sites, plan.planner());
    if (const auto* const refusal = std::get_if<PlanRefusal>(&plan.plan)) {
      text += fmt::format(",,,,,,,,,{}\n", csv_field(refusal->reason));
      continue;
    }
    const auto& report = std::get<PlanReport>(plan.plan);
    const auto [fewest, most] = sites_computing(compiled.graph, report.plan);
    const PlanCosts& costs = report.costs;
    text += fmt::format("{},{},{},{},{},{},{},{},{},\n", costs.seconds_of_later_steps(), costs.moving_of_later_steps(),
                        costs.bytes_of_later_steps(), costs.most_received_later(), report.peak.bytes, fewest, most,
                        report.seconds, plan.dollars() ? fmt::format("{}", *plan.dollars()) : "");
  }
  return text;
}

std::string sweep_json(const Compiled& compiled, const std::vector<SweptPlan>& plans) {
  using nlohmann::ordered_json;
  ordered_json rows = ordered_json::array();
  for (const SweptPlan& plan : plans) {
    ordered_json row{{"machine", plan.machine}, {"sites", plan.sites}, {"planner", plan.planner()}};
    if (const auto* const refusal = std::get_if<PlanRefusal>(&plan.plan)) {
      row["refused"] = refusal->reason;
    } else {
      const auto& report = std::get<PlanReport>(plan.plan);
      const auto [fewest, most] = sites_computing(compiled.graph, report.plan);
      const PlanCosts& costs = report.costs;
      row["seconds"] = costs.seconds_of_later_steps();
      row["moving_seconds"] = costs.moving_of_later_steps();
      row["bytes"] = costs.bytes_of_later_steps();
      row["most_received"] = costs.most_received_later();
      row["peak_memory"] = report.peak.bytes;
      row["sites_computing"] = {fewest, most};
      row["plan_seconds"] = report.seconds;
      if (report.plan.at_least && costs.steps == 1) row["at_least_seconds"] = *report.plan.at_least;
      if (plan.dollars()) row["dollars"] = *plan.dollars();
    }
    rows.push_back(std::move(row));
  }
  ordered_json enough = ordered_json::array();
  for (const EnoughSites& each : enough_sites(plans))
    enough.push_back({{"machine", each.machine}, {"planner", each.planner}, {"sites", each.sites}, {"of", each.asked}});
  const ordered_json json{{"version", report_version},
                          {"program", compiled.name},
                          {"sweep", std::move(rows)},
                          {"enough", std::move(enough)}};
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace einrel
