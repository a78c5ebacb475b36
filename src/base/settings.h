#pragma once

#include <string>

namespace einrel {

/// Where a file of the user's settings lies: einrel/NAME in XDG_CONFIG_HOME, else in ~/.config; "" when there is no
/// such folder.
std::string settings_path(const std::string& name);

/// The same, with its folder made and looked at: the file can be written, or replaced. Throws UserError.
std::string prepare_settings(const std::string& name);

}  // namespace einrel
