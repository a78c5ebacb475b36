#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "machine/machine.h"

namespace einrel {

/// The machines of the folder machines/, one file each, which are built into the library: laptop first, the others by
/// name. To add one: a file.
const std::vector<Machine>& all_machines();

/// Throws UserError naming the nearest when there is none of this name.
Machine machine_named(std::string_view name);

/// A machine as JSON: one object with every field of Machine under its name and no other. `source` is what messages
/// call it. Throws UserError naming source, field and what it should be.
Machine parse_machine(std::string_view text, const std::string& source);

/// A file of the user's. Throws UserError when it cannot be read, is larger than 1 MiB or is no machine.
Machine read_machine(const std::string& path);

/// The JSON that read_machine reads.
std::string to_json(const Machine& machine);

/// Where `einrel calibrate` leaves what it measured: einrel/machine.json in the user's folder for settings
/// (XDG_CONFIG_HOME, else ~/.config); "" when there is no such folder.
std::string calibrated_path();

/// The machine of a user who names none: the calibrated one, else a laptop. Throws as read_machine does.
Machine default_machine();

/// What a user calls a machine: the name of one, or a file: with '/' or ending in .json.
Machine machine_of(const std::string& name_or_path);

}  // namespace einrel
