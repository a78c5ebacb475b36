#include "arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>
#include <type_traits>

#include "base/error.h"
#include "base/text.h"
#include "ia/from_tra.h"
#include "kernel/workers.h"

namespace einrel::cli {
namespace {

/// All of `text` as a number, if it is one.
template <class Number>
std::optional<Number> number_in(const std::string& text) {
  Number value{};
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (text.starts_with('+') && !text.starts_with("+-")) ++begin;
  auto result = std::from_chars(begin, end, value);
  if constexpr (std::is_floating_point_v<Number>) {
    if (result.ec == std::errc::result_out_of_range && result.ptr == end) {
      value = std::strtod(begin, nullptr);  // too small becomes 0; too large, infinity, is refused below
      if (std::isfinite(value)) result.ec = std::errc();
    }
  }
  return result.ec == std::errc() && result.ptr == end ? std::optional(value) : std::nullopt;
}

/// The same. Throws UserError that shows the option and what is wanted.
template <class Number>
Number parse_number(const std::string& option, const std::string& text, const char* wanted) {
  const std::optional<Number> value = number_in<Number>(text);
  if (!value) throw UserError(fmt::format("{0}{1}: '{1}' is not {2}", option, printable(text), wanted));
  return *value;
}

/// The number in front of a size, and how many bytes its unit has: k, M, G or T in either case, powers of 1000, of 1024
/// with an i behind it; a B may follow, or stand alone. nullopt for another unit.
std::pair<std::string, std::optional<double>> split_unit(const std::string& size) {
  const auto is_letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; };
  const auto end = std::find_if_not(size.rbegin(), size.rend(), is_letter).base();
  std::string number(size.begin(), end);
  if (number.ends_with(' ')) number.pop_back();
  std::string unit(end, size.end());
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  if (unit.ends_with('b')) unit.pop_back();
  if (unit.empty()) return {number, 1};
  constexpr std::string_view prefixes = "kmgt";
  const std::size_t power = prefixes.find(unit.front());
  const bool binary = unit.size() == 2 && unit.back() == 'i';
  if (power == std::string_view::npos || unit.size() > (binary ? 2 : 1)) return {number, std::nullopt};
  return {number, std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1))};
}

}  // namespace

std::vector<std::pair<std::string, std::string>> parse_assignments(const std::string& option,
                                                                   const std::vector<std::string>& given) {
  std::vector<std::pair<std::string, std::string>> pairs;
  std::set<std::string> names;
  for (const std::string& text : given) {
    const std::size_t sign = text.find('=');
    if (sign == std::string::npos || sign == 0 || sign + 1 == text.size()) {
      throw UserError(fmt::format("{} {}: write {} NAME=VALUE", option, printable(text), option));
    }
    pairs.emplace_back(text.substr(0, sign), text.substr(sign + 1));
    if (!names.insert(pairs.back().first).second) {
      throw UserError(fmt::format("{} gives '{}' twice", option, printable(pairs.back().first)));
    }
  }
  return pairs;
}

std::vector<std::string> parse_names(const std::string& option, const std::vector<std::string>& given) {
  constexpr const char* blanks = " \t";
  std::vector<std::string> names;
  if (given.empty()) return names;
  const std::string all = fmt::format("{}", fmt::join(given, ","));
  for (std::size_t from = 0, comma = 0; comma != std::string::npos; from = comma + 1) {
    comma = all.find(',', from);
    const std::string text = all.substr(from, comma - from);
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == std::string::npos)
      throw UserError(
          fmt::format("{0} '{1}': a name is empty; write {0} NAME,NAME, or leave {0} out", option, printable(all)));
    names.push_back(text.substr(begin, text.find_last_not_of(blanks) + 1 - begin));
  }
  return names;
}

std::map<std::string, std::int64_t> parse_dims(const std::vector<std::string>& given) {
  constexpr const char* extent_words = "a whole number from 0 to 2^63-1";
  std::map<std::string, std::int64_t> dims;
  for (const auto& [name, text] : parse_assignments("--dim", given)) {
    dims[name] = parse_number<std::int64_t>("--dim " + printable(name) + "=", text, extent_words);
    if (dims[name] < 0)
      throw UserError(fmt::format("--dim {0}={1}: '{1}' is not {2}", printable(name), printable(text), extent_words));
  }
  return dims;
}

GivenPlacements parse_placements(const std::vector<std::string>& given) {
  GivenPlacements placements;
  for (const auto& [name, text] : parse_assignments("--placement", given)) {
    GivenPlacement& placement = placements[name];
    if (text == "whole") continue;
    const std::string said = fmt::format("--placement {}={}", printable(name), printable(text));
    std::stringstream digits(text);
    for (std::string digit; std::getline(digits, digit, ',');) {
      const std::size_t colon = digit.find(':');
      if (colon == std::string::npos || colon == 0)
        throw UserError(fmt::format("{}: '{}' is no LABEL:SITES\n  help: write X=b:4,f:2, X=copies:4 or X=whole", said,
                                    printable(digit)));
      placement.emplace_back(
          digit.substr(0, colon),
          parse_number<std::int64_t>(fmt::format("{}: ", said), digit.substr(colon + 1), "a whole number of sites"));
    }
  }
  return placements;
}

std::int64_t parse_sites(const std::string& given) {
  const std::string wanted = fmt::format("a whole number from 1 to {}", most_sites);
  const auto sites = parse_number<std::int64_t>("--sites ", given, wanted.c_str());
  if (sites < 1 || sites > most_sites)
    throw UserError(fmt::format("--sites {0}: '{0}' is not {1}", printable(given), wanted));
  return sites;
}

std::optional<std::int64_t> parse_memory(const std::string& given) {
  std::string lower = given;  // as units may be in either case
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (lower == "none") return std::nullopt;
  constexpr std::int64_t least_without_unit = 1000;  // somebody left the unit out
  constexpr const char* wanted = "a size from 1 byte to 2^63-1, as in 16GB, 512MiB, 1.5G or 1000, or none";
  const auto [number, unit] = split_unit(given);
  const auto refused = [&] {
    return UserError(fmt::format("--memory {0}: '{0}' is not {1}", printable(given), wanted));
  };
  if (!unit) throw refused();
  if (*unit == 1) {
    const std::optional<std::int64_t> size = number_in<std::int64_t>(number);
    if (!size || *size < 1) throw refused();
    if (*size < least_without_unit && std::isdigit(static_cast<unsigned char>(given.back())) != 0) {
      throw UserError(
          fmt::format("--memory {0}: that would be {0} B, which holds next to nothing; give a unit, as "
                      "in {0}GB or {0}MB",
                      *size));
    }
    return size;
  }
  const double size = number_in<double>(number).value_or(0) * *unit;
  if (!(size >= 1 && size < 0x1p63)) throw refused();
  return static_cast<std::int64_t>(size);
}

std::size_t parse_threads(const std::string& given) {
  if (given.empty()) return std::min(available_cores(), most_threads);
  const std::string wanted = fmt::format("a whole number from 1 to {}", most_threads);
  const auto threads = parse_number<std::size_t>("--threads ", given, wanted.c_str());
  if (threads < 1 || threads > most_threads) {
    throw UserError(fmt::format("--threads {0}: '{0}' is not {1}", printable(given), wanted));
  }
  return threads;
}

std::map<std::string, double> parse_scalars(const std::vector<std::string>& given) {
  std::map<std::string, double> scalars;
  for (const auto& [name, text] : parse_assignments("--scalar", given)) {
    scalars[name] = parse_number<double>("--scalar " + printable(name) + "=", text, "a number in the range of f64");
  }
  return scalars;
}

std::map<std::int64_t, double> parse_speeds(const std::vector<std::string>& given) {
  constexpr double slowest = 1e-3;
  constexpr double fastest = 1e3;
  std::map<std::int64_t, double> speeds;
  for (const auto& [name, text] : parse_assignments("--slow", given)) {
    const auto site = parse_number<std::int64_t>("--slow ", name, "a site's number, 0 or more");
    if (site < 0) throw UserError(fmt::format("--slow {}: a site's number is 0 or more", printable(name)));
    const std::string option = "--slow " + printable(name) + "=";
    const auto speed = parse_number<double>(option, text, "how many times as fast the site is, as in 0.5");
    if (!(speed >= slowest && speed <= fastest))
      throw UserError(fmt::format("{}{}: it has to be from {} to {}", option, printable(text), slowest, fastest));
    speeds[site] = speed;
  }
  return speeds;
}

std::size_t threads_of(const std::string& given, const Job& job) {
  const std::size_t threads = parse_threads(given);
  if (!given.empty() || !job.is_started) return threads;
  constexpr double rounding = 1e-6;  // of thirds that make a whole
  return std::clamp<std::size_t>(static_cast<std::size_t>(job.cores + rounding), 1, threads);
}

std::int64_t parse_times(const std::string& option, const std::string& given) {
  const char* const wanted = "a whole number from 1 to 2^63-1";
  const std::string before = option.ends_with('=') ? option : option + " ";
  const auto times = parse_number<std::int64_t>(before, given, wanted);
  if (times < 1) throw UserError(fmt::format("{0}{1}: '{1}' is not {2}", before, printable(given), wanted));
  return times;
}

double parse_timeout(const std::string& given) {
  const auto seconds = parse_number<double>("--timeout ", given, "a number of seconds");
  if (!(seconds > 0)) throw UserError(fmt::format("--timeout {}: it has to be more than 0 seconds", printable(given)));
  return seconds;
}

std::uint64_t parse_seed_number(const std::string& option, const std::string& given) {
  return parse_number<std::uint64_t>(option + " ", given, "a whole number from 0 to 2^64-1");
}

std::optional<std::uint64_t> parse_seed(const std::optional<std::string>& given) {
  return given ? std::optional(parse_seed_number("--random", *given)) : std::nullopt;
}

double parse_share(const std::string& option, const std::string& given) {
  const auto share = parse_number<double>(option + " ", given, "a number between 0 and 1");
  if (!(share > 0 && share < 1))
    throw UserError(fmt::format("{0} {1}: '{1}' is not a number between 0 and 1", option, printable(given)));
  return share;
}

bool parse_yes(const std::string& option, const std::string& given) {
  if (given != "yes" && given != "no") throw UserError(fmt::format("{} {}: write yes or no", option, printable(given)));
  return given == "yes";
}

std::string join_some(const std::vector<std::string>& items, const char* separator) {
  constexpr std::size_t most = 20;
  const std::size_t shown = std::min(items.size(), most);
  const std::string text =
      fmt::format("{}", fmt::join(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(shown), separator));
  return shown < items.size() ? fmt::format("{}{}and {} more", text, separator, items.size() - shown) : text;
}

}  // namespace einrel::cli
