#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "machine/machine_sets.h"

namespace einrel {

/// The machines of the folder machines/, one file each, which are built into the library: laptop first, the others by
/// name. To add one: a file.
const std::vector<MachineSets>& all_machines();

/// Throws UserError naming the nearest when there is none of this name.
MachineSets machine_named(std::string_view name);

/// A machine as JSON: one object with every field of Machine but `ranks` under its name and no other; or one with
/// `name`, `sites` and `measured`, a list of sets with all the other fields. `source` is what messages call it. Throws
/// UserError naming source, field and what it should be.
MachineSets parse_machine(std::string_view text, const std::string& source);

/// A file of the user's. Throws UserError when it cannot be read, is larger than 1 MiB or is no machine.
MachineSets read_machine(const std::string& path);

/// The JSON that read_machine reads.
std::string to_json(const MachineSets& machine);

/// Its file among the user's settings, see base/settings.h.
inline constexpr const char* calibrated_file = "machine.json";
/// Where `einrel calibrate` leaves what it measured: einrel/machine.json in the user's folder for settings
/// (XDG_CONFIG_HOME, else ~/.config); "" when there is no such folder.
std::string calibrated_path();

/// What calibrated_path has. None where there is no such file; throws as read_machine does.
std::optional<MachineSets> calibrated_machine();

/// The machine of a user who names none: the calibrated one, else a laptop; with the figures for so many sites, see
/// figures_for. Throws as read_machine does.
Machine default_machine(std::optional<std::int64_t> sites);

/// What a user calls a machine: the name of one, or a file: with '/' or ending in .json.
Machine machine_of(const std::string& name_or_path, std::optional<std::int64_t> sites);

}  // namespace einrel
