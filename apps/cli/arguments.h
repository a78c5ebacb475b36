#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exec/job/job.h"
#include "plan/placed_inputs.h"

namespace einrel::cli {

/// NAME=VALUE pairs as given, in order. Throws UserError for one without '=' or name, or a name given twice.
std::vector<std::pair<std::string, std::string>> parse_assignments(const std::string& option,
                                                                   const std::vector<std::string>& given);

/// The names of --report a,b say, without blanks around them. Throws UserError where there is none between two commas.
std::vector<std::string> parse_names(const std::string& option, const std::vector<std::string>& given);

/// --dim b=128 ...; throws UserError unless every value is a whole number of 0 or more.
std::map<std::string, std::int64_t> parse_dims(const std::vector<std::string>& given);

/// --scalar eta=0.1 ...; throws UserError unless every value is a number.
std::map<std::string, double> parse_scalars(const std::vector<std::string>& given);

/// --placement X=b:4,f:2 ...; throws UserError for what is no such text. X=whole is no digit at all.
GivenPlacements parse_placements(const std::vector<std::string>& given);

/// --sites N; throws UserError unless it is a whole number that plans can be made for.
std::int64_t parse_sites(const std::string& given);

/// How the user limits memory, for messages of the engine.
constexpr std::string_view memory_option = "--memory SIZE";

/// --memory SIZE: bytes, as in 1000; k, M, G and T, with or without B and in either case, are powers of 1000, Ki, Mi,
/// Gi and Ti of 1024; nullopt for `none`. Throws UserError unless it is from 1 to 2^63-1, and for a number below 1000
/// that has no unit.
std::optional<std::int64_t> parse_memory(const std::string& given);

/// --threads N; all cores that this process may use when nothing is given. Throws UserError unless it is a whole number
/// of 1 or more.
std::size_t parse_threads(const std::string& given);

/// The same in a job: without --threads, the ranks of a machine share its cores.
std::size_t threads_of(const std::string& given, const Job& job);

/// The N of an option, --repeat say; throws UserError unless it is a whole number from 1 to 2^63-1.
std::int64_t parse_times(const std::string& option, const std::string& given);

/// --timeout SECONDS; throws UserError unless it is a number above 0.
double parse_timeout(const std::string& given);

/// --random SEED; throws UserError unless it is a whole number from 0 to 2^64-1.
std::optional<std::uint64_t> parse_seed(const std::optional<std::string>& given);

/// The number of an option, --hold-out say; throws UserError unless it is above 0 and below 1.
double parse_share(const std::string& option, const std::string& given);

/// --slow SITE=SPEED ...; throws UserError unless every site is a whole number of 0 or more and its speed from 0.001 to
/// 1000 times that of the others.
std::map<std::int64_t, double> parse_speeds(const std::vector<std::string>& given);

/// Whether the value of an option is `yes`; throws UserError unless it is that or `no`.
bool parse_yes(const std::string& option, const std::string& given);

/// --seed N of training; throws UserError unless it is a whole number from 0 to 2^64-1.
std::uint64_t parse_seed_number(const std::string& option, const std::string& given);

/// The first twenty items, and how many more there are.
std::string join_some(const std::vector<std::string>& items, const char* separator);

}  // namespace einrel::cli
